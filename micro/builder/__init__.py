"""Compiles a trained model to MicroPython files: quantization, kernels, memory plan, emission. Needs CPython and
NumPy."""

from emberlet.host.extras import require

require("emberlet.micro.builder", "numpy")
