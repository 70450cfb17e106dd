"""ONNX's operators as calls of emberlet's functions, so that whole nodes can be tested without a compiler."""

from importlib import import_module

from .call import HANDLERS, Call, backend_of, close, key, run

for _family in (
    *("attention", "indexing", "losses", "quantization", "recurrent", "resizing"),
    *("sampling", "signal", "text", "training"),
):
    import_module("." + _family, __name__)

__all__ = ["HANDLERS", "Call", "backend_of", "close", "key", "run"]
