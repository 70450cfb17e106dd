"""The operators of ai.onnx.ml and ONNX's training preview: trees, support vector machines, strings, optimizers."""
