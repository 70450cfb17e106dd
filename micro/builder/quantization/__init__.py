"""Int8: ranges and grids of tensors, a float32 graph in integers, and the integer arithmetic itself."""
