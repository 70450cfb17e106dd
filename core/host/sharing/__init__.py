"""Tensors shared with other libraries (NumPy, DLPack, the buffer protocol), pickled and copied."""
