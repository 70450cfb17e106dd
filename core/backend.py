"""Backends by name: the registry, the default, and operations added from outside. protocol.py says what one must do."""

from .errors import BackendError


class Backend:
    """Base of all backends: a name and an index. What a backend must do is written down in protocol.py."""

    name = "abstract"
    OVERRIDES = ()  # type: tuple[str, ...]

    def __init__(self, index=0):
        self.index = index

    def __repr__(self):
        return self.name if not self.index else "{}:{}".format(self.name, self.index)

    def realize(self, *tensors):
        """Compute what is still recorded lazily. Nothing to do for an eager backend."""

    def __reduce__(self):
        # Copies and pickles of a tensor or module name the backend; they never hold a second one.
        return get_backend, (repr(self),)


_factories = {}
_instances = {}
_default = None


def register(name, factory):
    """Make a backend known: `factory(index)` returns a Backend. Raises BackendError where the name is taken."""
    if name in names():
        raise BackendError("backend {!r} is registered already; choose another name".format(name))
    _factories[name] = factory


def extend(backend_class, name=None):
    """Decorator: add an operation (a function of (backend, *args)) to a backend class, under its own name or `name`.

    The functional layer, or your own function, finds it with `operation(x.backend, name)`. See examples/custom_kernel.
    """

    def add(function):
        setattr(backend_class, name or function.__name__, function)
        return function

    return add


def operation(backend, name):
    """The backend's own method for a composite or an added operation, or None."""
    return getattr(backend, name, None)


# name -> (module, class, what provides its library) of the backends that come with emberlet
_OWN = {
    "python": ("python_backend", "PythonBackend", ""),
    "numpy": ("host.numpy_backend", "NumpyBackend", "NumPy: pip install emberlet[numpy]"),
    "wgpu": ("wgpu_backend", "WgpuBackend", "wgpu-py: pip install emberlet[wgpu]"),
}


def _make(name, index):
    if name not in _OWN:
        return _factories[name](index)
    module, class_name, needs = _OWN[name]
    try:
        found = getattr(__import__("emberlet." + module, None, None, ("*",)), class_name)
    except ImportError as error:
        raise BackendError("backend {!r} needs {} ({})".format(name, needs, error))
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
                _default = get_backend("numpy")
            except (BackendError, ImportError):
                _default = get_backend("python")
        return _default
    found = _instances.get(backend)
    if found is None:
        name, _, index = str(backend).partition(":")
        if name not in names() or (index and not index.isdigit()):
            raise BackendError("there is no backend {!r}; there are {}".format(backend, ", ".join(names())))
        if index == "0":  # "numpy:0" is "numpy"
            found = get_backend(name)
        else:
            found = _make(name, int(index or 0))
        _instances[backend] = found
    return found


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
    global _default
    _default = None if backend is None else get_backend(backend)
