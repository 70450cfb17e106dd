"""emberlet: neural networks from ONNX as readable Python, on anything that runs Python.

`import emberlet` loads almost nothing: every name below is looked up when first used, so that a microcontroller
holds in memory only what its model needs. The array functions carry the names and semantics of the Python array API
standard 2024.12; `emberlet.functional` holds the same functions and the neural-network ones.
"""

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

# name -> module that defines it
_HOMES = {
    "Tensor": "tensor",
    "TensorData": "data",
    "DType": "dtypes",
    "Backend": "backend",
    "get_backend": "backend",
    "set_default_backend": "backend",
    "Module": "module",
    "Param": "param",
    "ParamId": "param",
    "Config": "config",
}
_MODULES = ("nn", "functional", "errors", "dtypes", "backend", "burnpack")


def __getattr__(name):
    from . import dtypes, names

    if name in _HOMES:
        found = getattr(__import__("emberlet." + _HOMES[name], None, None, ("*",)), name)
    elif name in _MODULES:
        return __import__("emberlet." + name, None, None, ("*",))
    elif name in dtypes.BY_NAME:
        found = dtypes.BY_NAME[name]
    elif name.endswith("Error"):
        from . import errors

        found = getattr(errors, name)
    elif name in ("pi", "e", "inf", "nan", "newaxis"):
        import math

        found = {"pi": math.pi, "e": math.e, "inf": float("inf"), "nan": float("nan"), "newaxis": None}[name]
    else:
        found = names.function(name)
        if found is None:
            raise AttributeError("module 'emberlet' has no attribute " + repr(name))
    globals()[name] = found
    return found
