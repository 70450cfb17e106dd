"""ONNX's operators as calls of emberlet's functions, so that whole nodes can be tested without a compiler."""

from . import attention, indexing, quantization, recurrent, resizing
from .call import HANDLERS, Call, backend_of, close, key, run

__all__ = [
    "HANDLERS",
    "Call",
    "attention",
    "backend_of",
    "close",
    "indexing",
    "key",
    "quantization",
    "recurrent",
    "resizing",
    "run",
]
