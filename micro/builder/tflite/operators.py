"""Converts each TensorFlow Lite operator to ONNX nodes: the functions of these files, in one table."""

from . import elementwise, layers, movement, recurrent, variables
from .table import CONVERTERS

__all__ = ["CONVERTERS", "elementwise", "layers", "movement", "recurrent", "variables"]
