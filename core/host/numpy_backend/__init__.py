"""The `numpy` backend: every primitive by NumPy, convolution and matrix products by its BLAS."""

from .backend import NumpyBackend

__all__ = ["NumpyBackend"]
