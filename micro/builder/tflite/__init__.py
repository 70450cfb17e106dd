"""Models in TensorFlow Lite's format: read through the package `tflite`, and translated like ONNX models.

Models with int8 weights and activations use TensorFlow Lite's integer arithmetic (quantization/doubled.py), so their
bytes equal those of its reference kernels and of TensorFlow Lite Micro.
"""
