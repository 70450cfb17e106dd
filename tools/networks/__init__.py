"""ONNX models that tests and benchmarks share."""
