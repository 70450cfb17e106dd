"""Elements shared with other libraries: NumPy, DLPack, the buffer protocol; and pickle and copy."""
