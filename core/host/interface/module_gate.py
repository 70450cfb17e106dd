"""What CPython adds to Module: all methods at once, other libraries' names for them, constructors of layers that take
NumPy's numbers and other libraries' keywords, and layers that explain wrong arguments."""

from __future__ import annotations

import functools
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

from .documenting import with_example
from .keywords import explained
from .python_numbers import as_python

# Modules whose classes have guarded constructors; those that people write are left as they are.
_LAYERS = "emberlet.nn."


def attach(module: Any) -> None:
    """Complete the class Module."""
    for name, method in import_module("emberlet.module.methods").METHODS.items():
        setattr(module, name, explained(method, partial(_called, name)))
    module.load_from = _asking(module.load_from, "apply_to")
    module.load_record = _asking(module.load_record, "apply_to")
    module.save_into = _asking(module.save_into, "collect_from")
    module.quantize_weights = _asking(module.quantize_weights, "quantize")
    module.load_file = _recording(module.load_file, "load_module")
    module.save_file = _recording(module.save_file, "save_module")
    module.__getattr__ = _absent
    module.__call__ = _forwarded
    module.__init_subclass__ = classmethod(_guard_constructor)


def _called(method: str, module: Any) -> str:
    return f"{type(module).__name__}.{method}"


def _asking(method: FunctionType, name: str) -> Any:
    """`method`; one of Burn's objects (a store of store/burn_stores.py, for one), given as its argument, has its own,
    called `name`."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        own = getattr(args[0], name, None) if len(args) == 1 and not kwargs else None
        return method(self, *args, **kwargs) if own is None else own(self)

    return call


def _recording(method: FunctionType, name: str) -> Any:
    """`method`; one of Burn's recorders (store/recorders.py), given as its second argument, has its own, called
    `name`."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        own = getattr(args[1], name, None) if len(args) > 1 else None
        return method(self, *args, **kwargs) if own is None else own(self, args[0])

    return call


def _absent(self: Any, name: str) -> Any:
    return import_module("emberlet.host.interface.elsewhere.modules").find_method(self, name)


def _forwarded(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    try:
        return self.forward(*args, **kwargs)
    except Exception as error:
        if not type(self).__module__.startswith(_LAYERS):
            raise
        told = import_module("emberlet.host.interface.wrong_arguments").explained_call(type(self), args, kwargs, error)
        if told is None:
            raise
        raise told from error


def _guard_constructor(layer: Any) -> None:
    if layer.__module__.startswith(_LAYERS):
        bare = layer.__init__ is object.__init__
        init = _no_arguments if bare else vars(layer).get("__init__")
        if isinstance(init, FunctionType):
            layer.__init__ = _guarded(init)
        layer.__doc__ = with_example(layer.__doc__, layer)


def _no_arguments(self: Any) -> None:
    pass


def _guarded(init: FunctionType) -> Any:
    @functools.wraps(init)
    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        args, kwargs = as_python((args, kwargs))
        try:
            init(self, *args, **kwargs)
        except Exception as error:
            if kwargs and isinstance(error, TypeError):
                elsewhere = import_module("emberlet.host.interface.elsewhere.modules")
                renamed = elsewhere.renamed_keywords(type(self), init, kwargs)
                if renamed is not None:
                    __init__(self, *args, **renamed)
                    return
            told = import_module("emberlet.host.interface.wrong_arguments").explained_layer(
                type(self), args, kwargs, error
            )
            if told is None:
                raise
            raise told from error

    return __init__
