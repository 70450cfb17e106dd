"""Layers, one kind per file: parameters, integer arithmetic in NumPy, and MicroPython source."""
