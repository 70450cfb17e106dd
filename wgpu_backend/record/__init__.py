"""Recorded graphs: what tensors on the GPU hold until a value is asked for."""
