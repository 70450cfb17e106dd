"""Registering and extending backends, listing those that work, setting the default.

`emberlet.backend` imports these functions on first use.
"""

import sys

from ..errors import BackendError, refuse
from . import get_backend, names

_backend = sys.modules["emberlet.backend"]
_running = set()  # (thread, backend, name) of the overrides that are running

_extended = []  # (class, name) of each operation that `extend` added


def missing(name, error):
    """Raise BackendError: the backend's module did not import."""
    if name in ("numpy", "wgpu") and sys.implementation.name != "micropython":
        from ..host.extras import not_loaded

        raise BackendError(not_loaded("backend {!r}".format(name), name, error))
    refuse("backend library", name, "its module", error)


def lacks(backend, name):
    """What the __getattr__ of a backend gives for a name that it does not have: a method that raises UnsupportedError
    for a primitive. Raises AttributeError for any other name, and for all of them on a device."""
    if sys.implementation.name != "micropython":
        from .protocol import Protocol

        if hasattr(Protocol, name):
            return lambda *args, **kwargs: refuse("no kernel", name, "the {!r}".format(backend))
    raise AttributeError("backend {!r} has no {}".format(backend, name))


def not_within(backend, name, own):
    """`own`, an override of `name`, for one call; None while it runs in this thread, so that it may call the function
    it overrides without recursing."""
    key = (_thread(), id(backend), name)
    if key in _running:
        return None

    def call(*args, **kwargs):
        _running.add(key)
        try:
            return own(*args, **kwargs)
        finally:
            _running.discard(key)

    return call


def _thread():
    try:
        from _thread import get_ident
    except ImportError:  # MicroPython without threads
        return 0
    return get_ident()


def has_additions():
    """Whether a backend was registered or extended from outside."""
    return bool(_backend._factories or _extended)


def was_added(backend_class, name):
    """Whether `extend` added the operation to this class, or to one that it derives from."""
    for where, added in _extended:
        if added == name and issubclass(backend_class, where):
            return True
    return False


def other(backend):
    """The backend for a name that is not in the table: one that wraps another, as in "autodiff:wgpu:1". Raises
    BackendError."""
    name, _, inner = str(backend).partition(":")
    if name != "autodiff":
        refuse("backend", backend, ", ".join(names() + ["autodiff:NAME"]))
    # By name, because the package is built on the functions.
    return __import__("emberlet.autodiff", None, None, ("*",)).autodiff(inner or None)


def register(name, factory):
    """Make a backend known: `factory(index)` returns a Backend. Raises BackendError if the name is taken."""
    if name in names() or name == "autodiff":
        refuse("registered", name)
    _backend._factories[name] = factory


def extend(backend_class, name=None):
    """Decorator: add an operation (a function of (backend, *args)) to a backend class, under its own name or `name`.

    The functional layer, or your own function, finds it with `operation(x.backend, name)`. See examples/custom_kernel.
    """

    def add(function):
        setattr(backend_class, name or function.__name__, function)
        _extended.append((backend_class, name or function.__name__))
        if backend_class in _backend._own_classes:
            _backend._own_classes.remove(backend_class)
        return function

    return add


def available():
    """The names of the backends whose libraries and devices are present, sorted."""
    out = []
    for name in names():
        try:
            get_backend(name)
            out.append(name)
        except (BackendError, ImportError):
            pass
    return out


def set_default_backend(backend):
    """Use `backend` (a name or a Backend) wherever none is given; None restores numpy, or python without NumPy."""
    _backend._default = None if backend is None else get_backend(backend)
