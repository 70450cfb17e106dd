"""What CPython adds to Module: all methods at once, other libraries' names for them, constructors of layers that take
NumPy's numbers and other libraries' keywords, and layers that explain wrong arguments."""

from __future__ import annotations

import functools
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

from ...errors import ArgumentError
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
    called `name`, and takes other arguments only if it says so."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = next(iter((*args, *kwargs.values())), None)
        own = getattr(given, name, None)
        if own is None or isinstance(given, type):
            return method(self, *args, **kwargs)
        if len(args) + len(kwargs) > 1 and not hasattr(given, "TAKES_OPTIONS"):
            _refuse(method, given, "it alone", args[1:], kwargs)
        more = {key: value for key, value in kwargs.items() if value is not given}
        found = own(self, *args[1:], **more)
        return self if method.__name__ == "load_record" else found

    return call


def _recording(method: FunctionType, name: str) -> Any:
    """`method`; one of Burn's recorders (store/recorders.py), given as its second argument, has its own, called
    `name`."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = args[1] if len(args) > 1 else None
        if not hasattr(recorder, name):
            return method(self, *args, **kwargs)
        if isinstance(recorder, type):
            recorder = recorder()
        # Burn's load_file takes a device, too: a module's tensors stay where it is
        device = name == "load_module" and len(args) + len(kwargs) == 3 and (not kwargs or "device" in kwargs)
        if len(args) + len(kwargs) > 2 and not device:
            _refuse(method, recorder, "a path and the recorder alone", args[2:], kwargs)
        return getattr(recorder, name)(self, args[0])

    return call


def _refuse(method: FunctionType, given: Any, takes: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    found = ", ".join([*(repr(each) for each in args), *kwargs])
    raise ArgumentError(
        f"{method.__name__} with {type(given).__name__} takes {takes}, found {found}; its class has the options"
    )


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
