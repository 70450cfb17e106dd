"""One layer a file: what it holds, its integer arithmetic in NumPy, and the MicroPython it becomes."""
