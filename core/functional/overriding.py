"""Decorators for functions that a backend may override (`@composite`) or that only check their operands
(`@one_backend`). The `#: …` comment above a function declares the rest; emberlet.host.interface.declarations reads it.
On CPython both decorators check that all tensor arguments are on one backend.

On MicroPython a wrapper costs 100 bytes per function, so functions are not wrapped unless a backend was registered or
extended before their family was loaded.
"""

from ..backend import operation
from ..errors import refuse
from ..tensor import Tensor

_HOST = hasattr(memoryview, "cast")  # not on MicroPython


def composite(function):
    """Decorator: calls go to the backend's method of the same name, if it has one, with the original arguments.

    Within that method the function ignores the method, so an override may call the function it overrides. Raises
    BackendError if the operands are on different backends.
    """
    if not _HOST:
        from ..backend.registry import has_additions

        if not has_additions():
            return function
    name = function.__name__

    def call(*args, **kwargs):
        backend = None
        for a in args:
            if isinstance(a, Tensor):
                if backend is None:
                    backend = a.backend
                elif a.backend is not backend:
                    refuse("backends", backend, a.backend)
            elif isinstance(a, (list, tuple)):
                backend = _among(a, backend)
        if kwargs:
            backend = _among(kwargs.values(), backend)
        if getattr(backend, name, None) is None:
            return function(*args, **kwargs)
        own = operation(backend, name)
        return own(*args, **kwargs) if own else function(*args, **kwargs)

    return _named(call, function)


def one_backend(function):
    """Decorator: raises BackendError if the tensor arguments are on different backends."""
    if not _HOST:
        return function

    def call(*args, **kwargs):
        backend = None
        for a in args:
            if isinstance(a, Tensor):
                if backend is None:
                    backend = a.backend
                elif a.backend is not backend:
                    refuse("backends", backend, a.backend)
            elif isinstance(a, (list, tuple)):
                backend = _among(a, backend)
        if kwargs:
            _among(kwargs.values(), backend)
        return function(*args, **kwargs)

    return _named(call, function)


def _among(values, backend):
    """The common backend of `backend` and the tensors in `values`; lists of numbers are not searched. Raises
    BackendError if they differ."""
    for a in values:
        if isinstance(a, Tensor):
            if backend is None:
                backend = a.backend
            elif a.backend is not backend:
                refuse("backends", backend, a.backend)
        elif isinstance(a, (list, tuple)):
            backend = _among(a, backend)
        elif isinstance(a, (int, float)) and isinstance(values, (list, tuple)) and len(values) > 16:
            break
    return backend


def _named(call, function):
    """`call` with function's name, docstring and (for `help`) signature."""
    if _HOST:
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(call, name, getattr(function, name))
        call.__wrapped__ = function
    return call
