"""The methods of Param that running a loaded model never needs: identity, copies, mappers, moves between backends.

The class gets these when one is first used on a microcontroller, and at once elsewhere (see __init__.py).
"""

try:
    from _thread import allocate_lock

    _id_lock = allocate_lock()
except ImportError:  # a port without threads
    _id_lock = None


def _id(self):
    """The ParamId, created on first use."""
    found = self._id
    if found is None or isinstance(found, int):
        from .identity import ParamId

        if _id_lock is None:
            return _made_id(self, ParamId)
        with _id_lock:  # and not acquire(): an interrupt behind it would leave the lock held
            return _made_id(self, ParamId)
    return found


def _made_id(self, ParamId):
    """The ParamId, made unless another thread has made it meanwhile."""
    found = self._id
    if not isinstance(found, ParamId):
        found = self._id = ParamId(found)
    return found


def _size(self):
    """The number of elements."""
    n = 1
    for d in self.shape:
        n *= d
    return n


def represent(self):
    state = "" if self.is_initialized else ", lazy"
    for word, mapper in (("load", self._on_load), ("save", self._on_save)):
        if mapper:
            state += ", {} mapper".format(word)
    return "Param({}, {}{})".format(self.shape, self.dtype, state)


def _is_initialized(self):
    """Whether the value exists; asking does not initialize it."""
    return self._value is not None


def clone(self):
    """Another Param of the same identity and mappers. A lazy one stays lazy and makes a value of its own."""
    p = self._alone(_copied)
    p._on_load = self._on_load
    p._on_save = self._on_save
    return p


def _copied(self, _):
    if self._value is None:
        return self.uninitialized(self._init, self._shape, self._dtype, self._backend, self.require_grad, self.id)
    return type(self)(_alias(self._value), self.id, self.require_grad)


def _deepcopy(self, memo):
    return clone(self)


def _alias(tensor):
    """Another tensor of the same elements: assigning to one of the two does not change the other."""
    return type(tensor)(tensor.data, tensor.dtype, tensor.shape, tensor.backend)


def _reduce(self):
    """Pickled with its value, which is initialized now if the Param is lazy, because an initializer may be any
    function."""
    return restored, (type(self), self.val(), self.id.value, self.require_grad, self._on_load, self._on_save)


def restored(kind, value, id, require_grad, on_load, on_save):
    """The Param that `_reduce` pickled."""
    param = kind(value, id, require_grad)
    param._on_load = on_load
    param._on_save = on_save
    return param


def map(self, function):
    """Replace the value by function(value), initializing it first if lazy; identity and mappers are kept.

    Raises EmberletError, and keeps the value, if the function does not return a Tensor.
    """
    return self.set(function(self.val()))


def init_mapper(self, function):
    """Apply function(tensor) to the initialized value: now if it exists, else after the initializer (and after earlier
    such functions). It is not applied to a value that is loaded instead."""
    return self if self._alone(_later, function) else map(self, function)


def _later(self, function):
    """Whether the Param is lazy; then its initializer applies the function, too."""
    if self._value is not None:
        return False
    init = self._init
    self._init = lambda shape, dtype, backend: function(init(shape, dtype, backend))
    return True


def load_mapper(self, function):
    """Apply function(tensor) to every value that is loaded from a record."""
    self._on_load = function
    return self


def save_mapper(self, function):
    """Apply function(tensor) to the value that is saved in a record; the Param keeps its own value."""
    self._on_save = function
    return self


def set_require_grad(self, require_grad):
    """Set whether training changes the Param; returns the Param."""
    self.require_grad = require_grad
    return self


def to(self, backend):
    """Move the value to another backend; a lazy Param will be initialized there."""
    return self._alone(_moved, backend)


def _moved(self, backend):
    if self._value is None:
        self._backend = backend
    else:
        self._value = self._value.to(backend)
    return self


def cast(self, dtype):
    """Convert the value to another dtype; a lazy Param will be initialized in it. Returns self. Raises DTypeError for a
    dtype that does not exist."""
    from .. import dtypes

    return self._alone(_converted, dtypes.dtype(dtype))


def _converted(self, dtype):
    if self._value is None:
        self._dtype = dtype
    else:
        self._value = self._value.astype(dtype)
    return self


def saved(self):
    """The value for a record, through the save mapper. Assigning to it does not change the Param."""
    return self._on_save(self.val()) if self._on_save else _alias(self.val())


METHODS = {
    "is_initialized": property(_is_initialized),
    "id": property(_id),
    "size": property(_size),
    "clone": clone,
    "__copy__": clone,
    "__deepcopy__": _deepcopy,
    "__reduce__": _reduce,
    "map": map,
    "init_mapper": init_mapper,
    "load_mapper": load_mapper,
    "save_mapper": save_mapper,
    "set_require_grad": set_require_grad,
    "to": to,
    "cast": cast,
    "saved": saved,
}


def method(name):
    """The method or property called `name`."""
    if name not in METHODS:
        raise AttributeError("'Param' object has no attribute " + repr(name))
    return METHODS[name]
