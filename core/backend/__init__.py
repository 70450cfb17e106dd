"""Backends by name: the registry, the default, and operations added from outside. protocol.py says what a backend must
implement.

Registering, extending, listing and setting the default are in registry.py, which is loaded on first use.
"""

from ..errors import BackendError


class Backend:
    """Base of all backends: a name and an index. protocol.py documents what a backend must do."""

    name = "abstract"
    OVERRIDES = ()  # type: tuple[str, ...]

    def __init__(self, index=0):
        self.index = index

    def __repr__(self):
        return self.name if not self.index else "{}:{}".format(self.name, self.index)

    def realize(self, *tensors):
        """Compute everything that is recorded lazily. An eager backend has nothing to do."""

    def __reduce__(self):
        # Copies and pickles of a tensor or module refer to the backend by name, so there is never a second one.
        return get_backend, (repr(self),)


_factories = {}
_instances = {}
_own_classes = []  # built in: their operations never call the composite they override
_default = None


def operation(backend, name):
    """The backend's own method for a composite or an added operation; None if there is none, or if it is the caller."""
    own = getattr(backend, name, None)
    if own is None or type(backend) in _own_classes:
        return own
    from .registry import not_within

    return not_within(backend, name, own)


# name -> module of the backends that come with emberlet
_OWN = {
    "python": "python_backend",
    "numpy": "host.numpy_backend",
    "wgpu": "wgpu_backend",
    "wasm": "wgpu_backend.wasm",
    "native": "wgpu_backend.llvm",
}


def _class(name):
    module = __import__("emberlet." + _OWN[name], None, None, ("*",))
    return getattr(module, name[0].upper() + name[1:] + "Backend")


def _make(name, index):
    if name not in _OWN:
        return _factories[name](index)
    try:
        found = _class(name)
    except ImportError as error:
        from .registry import missing

        missing(name, error)
    _own_classes.append(found)
    return found(index)


def names():
    """The names of all known backends, sorted."""
    return sorted(set(_factories) | set(_OWN))


def get_backend(backend=None):
    """The Backend for a name ("numpy", "wgpu", "wgpu:1"), a Backend (returned as it is), or None: the default.

    Raises BackendError for an unknown name or a backend whose library or device is missing.
    """
    global _default
    if isinstance(backend, Backend):
        return backend
    if backend is None:
        if _default is None:
            try:
                _class("numpy")
                _default = get_backend("numpy")
            except (BackendError, ImportError):
                _default = get_backend("python")
        return _default
    found = _instances.get(backend)
    if found is None:
        name, _, index = str(backend).partition(":")
        if index == "0":  # "numpy:0" is "numpy"
            return get_backend(name)
        if name not in names() or (index and (name in ("python", "numpy") or not index.isdigit())):
            from .registry import other

            return other(backend)
        # Another thread's, where it was first: tensors compare their backends.
        found = _instances.setdefault(backend, _make(name, int(index or 0)))
    return found


def __getattr__(name):
    if name not in ("register", "extend", "available", "set_default_backend"):
        raise AttributeError(name)
    return getattr(__import__("emberlet.backend.registry", None, None, ("*",)), name)
