"""One kind of layer per file: its parameters, its integer arithmetic in NumPy, and its MicroPython source."""
