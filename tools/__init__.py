"""What dev.py installs and checks, and what tests, benchmarks and examples run things with: installed components,
MicroPython's ports, Chromium, the layout of the tree.

The parts that dev.py imports use only the standard library, so that it works before anything is installed.
"""
