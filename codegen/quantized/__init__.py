"""Quantized models from float ones: `writing` writes the generated module with its small weights, `activations` adds
QuantizeLinear and DequantizeLinear to an ONNX model."""
