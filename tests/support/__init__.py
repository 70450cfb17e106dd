"""What tests, benchmarks, examples and dev.py share: interpreters, installed components, the layout of the tree.

Standard library only, so that dev.py can use it before anything is installed.
"""
