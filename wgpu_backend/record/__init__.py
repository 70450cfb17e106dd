"""Recorded graphs: what GPU tensors hold until a value is needed."""
