"""What stands above a function that a backend may replace (`@composite`), or that only checks its operands
(`@one_backend`). The comment above both, `#: …`, says the rest: emberlet.host.interface.declarations reads it.

On CPython both check that all tensors among the arguments live on one backend. On MicroPython a wrapper costs 100 bytes
a function: there a function stays as it is unless a backend was registered or extended before its family was loaded.
"""

from ..backend import operation
from ..errors import refuse
from ..tensor import Tensor

_HOST = hasattr(memoryview, "cast")  # not on MicroPython


def composite(function):
    """Decorator: a backend that has a method of the function's name gets its calls, with the arguments as they came.

    Within that method the function computes as if the method were not there: an override may call what it overrides.
    Raises BackendError where the operands live on several backends.
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
    """Decorator: raises BackendError where tensors among the arguments live on several backends."""
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
    """The one backend of the tensors among `values`, and of `backend`; a list of numbers is not searched."""
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
