"""From a trained model to MicroPython files: quantization, kernels, memory plan, emission. Needs CPython and NumPy."""
