"""Models in TensorFlow Lite's format: read through the package `tflite`, and translated like ONNX models.

Those whose weights and activations are int8 are computed by TensorFlow Lite's own integer arithmetic (doubled.py): byte
for byte what its reference kernels, and TensorFlow Lite Micro, compute.
"""
