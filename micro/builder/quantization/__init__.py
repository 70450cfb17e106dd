"""Int8: ranges and grids of tensors, quantizing a float32 graph, and the integer arithmetic itself."""
