"""emberlet: neural networks from ONNX as readable Python, on anything that runs Python.

`import emberlet` loads almost nothing: every name below is imported on first use, so that a microcontroller loads only
what its model needs. The array functions carry the names and semantics of the Python array API
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
    "set_print_options": "display",
    "print_options": "display",
    "check_closeness": "display",
    "__array_namespace_info__": "functional.creation.inspection",
    "Module": "module",
    "Param": "param",
    "ParamId": "param.identity",
    "Config": "config",
}
# Modules that `from . import ...` looks up, so that the functions' names need not be searched.
_MODULES = ("functional", "nn", "dtypes", "errors", "shapes", "names", "lookup")


def __dir__():
    return _module("host.public").names()


def _module(name):
    return __import__("emberlet." + name, None, None, ("__name__",))  # "*" would look up every name in __all__


def __getattr__(name):
    # No `from . import ...` in here: MicroPython would call this function for the submodule first.
    home = _HOMES.get(name)
    if home:
        found = getattr(_module(home), name)
    elif name in ("pi", "e", "inf", "nan"):
        # No float("inf"): once somebody has asked for emberlet.float, that is its name here.
        found = {"pi": 3.141592653589793, "e": 2.718281828459045, "inf": 1e999, "nan": -(1e999 - 1e999)}[name]
    elif name == "newaxis":
        found = None
    elif name.startswith("__"):
        raise AttributeError(name)
    elif name in _MODULES:
        return _module(name)
    else:
        found = _module("dtypes").BY_NAME.get(name)
        if found is None and name.endswith("Error"):
            found = getattr(_module("errors"), name)
        if found is None:
            found = _module("lookup").function(name)
        if found is None:
            try:
                found = _module(name)
            except ImportError:
                found = _module("lookup").absent("emberlet", name)
    globals()[name] = found
    return found
