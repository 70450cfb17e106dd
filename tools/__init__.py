"""Tools shared by dev.py, the tests, the benchmarks and the examples: installing and checking, components,
MicroPython's ports, Chromium, the layout of the tree.

The parts that dev.py imports use only the standard library, so that it works before anything is installed.
"""
