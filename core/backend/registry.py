"""Registering and extending backends, listing those that work, setting the default.

`emberlet.backend` imports these functions on first use.
"""

import sys

from ..errors import BackendError, refuse
from . import get_backend, names

_backend = sys.modules["emberlet.backend"]


def missing(name, error):
    """Raise BackendError: the backend's module did not import."""
    if name in ("numpy", "wgpu") and sys.implementation.name != "micropython":
        from ..host.extras import sentence

        raise BackendError("{} ({})".format(sentence("backend {!r}".format(name), [name]), error))
    refuse("backend library", name, "its module", error)


def register(name, factory):
    """Make a backend known: `factory(index)` returns a Backend. Raises BackendError where the name is taken."""
    if name in names():
        refuse("registered", name)
    _backend._factories[name] = factory


def extend(backend_class, name=None):
    """Decorator: add an operation (a function of (backend, *args)) to a backend class, under its own name or `name`.

    The functional layer, or your own function, finds it with `operation(x.backend, name)`. See examples/custom_kernel.
    """

    def add(function):
        setattr(backend_class, name or function.__name__, function)
        return function

    return add


def available():
    """The names of the backends that work here, sorted: their libraries and devices are there."""
    out = []
    for name in names():
        try:
            get_backend(name)
            out.append(name)
        except (BackendError, ImportError):
            pass
    return out


def set_default_backend(backend):
    """Use `backend` (a name or a Backend) wherever none is given; None goes back to numpy, else python."""
    _backend._default = None if backend is None else get_backend(backend)
