"""What ai.onnx.ml and ONNX's training preview define: trees, support vector machines, texts, optimizers."""
