"""Int8: ranges and grids of tensors, quantization of a float32 graph, and the integer arithmetic."""
