"""Models in TensorFlow Lite's format: read through the package `tflite`, and translated like ONNX models.

Models whose weights and activations are int8 are computed by TensorFlow Lite's own integer arithmetic
(quantization/doubled.py). The bytes are those of its reference kernels and of TensorFlow Lite Micro.
"""
