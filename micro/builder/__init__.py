"""From a trained model to MicroPython files: quantisation, kernels, memory plan, emission. Needs CPython and NumPy."""
