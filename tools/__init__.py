"""What dev.py installs and checks, and what tests, benchmarks and examples run things with: installed components,
MicroPython's ports, Chromium, the layout of the tree.

What dev.py imports of it is the standard library only, so that it works before anything is installed.
"""
