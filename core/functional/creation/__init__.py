"""Tensors from values, values from tensors, and the way from dtype to dtype and backend to backend."""
