"""Param: a tensor that is a module's parameter, initialized when first used.

Semantics are those of Burn's `Param`. A lazy Param knows its shape, dtype, backend and initializer, and holds no
memory. The first `val()` initializes it, exactly once even with several threads. Loading a value into a lazy Param
never runs its initializer, so a model costs nothing before its weights arrive.
"""

from ..errors import refuse

try:
    import _thread
except ImportError:  # a port of MicroPython without threads
    _thread = None
else:
    _waits = {}  # thread -> the Param whose lock it is about to take
    _guard = _thread.allocate_lock()


def new_lock():
    """A lock, or None if the port has no threads."""
    return _thread.allocate_lock() if _thread else None


def _zeros(shape, dtype, backend):
    return backend.full(shape, 0, dtype)


def _made(param, _):
    if param._value is None:
        param._value = param._init(param._shape, param._dtype, param.backend)
        param._init = None
    return param._value


def _set(param, given):
    param._value, id = given
    param._init = None
    if id is not None:
        param._id = id
    return param


class Param:
    """A parameter: a Tensor with an identity, possibly lazy.

    `Param(tensor)` holds its value already; `Param.uninitialized(init, shape, dtype, backend)` is lazy. `val()` returns
    the tensor. shape, dtype and backend are known without initializing it. require_grad: whether the value is a leaf
    that requires a gradient where the backend is an autodiff backend.
    """

    __slots__ = (
        "_backend", "_dtype", "_id", "_init", "_lock", "_on_load", "_on_save", "_owner", "_shape", "_value",
        "require_grad",
    )  # fmt: skip

    def __init__(self, value, id=None, require_grad=None):
        self._value = value
        self._id = id
        self._init = self._on_load = self._on_save = self._lock = self._owner = None
        self.require_grad = value.dtype.is_float if require_grad is None else require_grad

    @staticmethod
    def uninitialized(init, shape, dtype=None, backend=None, require_grad=None, id=None):
        """A lazy Param. init(shape, dtype, backend) -> Tensor makes its value; dtype: float32 unless given."""
        from .. import dtypes

        p = object.__new__(Param)
        p._value = p._on_load = p._on_save = p._owner = None
        p._init = init
        p._shape = tuple(shape)
        p._dtype = dtypes.float32 if dtype is None else dtypes.dtype(dtype)
        p._backend = backend
        p._id = id
        p._lock = new_lock()
        p.require_grad = p._dtype.is_float if require_grad is None else require_grad
        return p

    @staticmethod
    def zeros(shape, dtype=None, backend=None, require_grad=None):
        """A lazy Param initialized with zeros: a placeholder for a value to load."""
        return Param.uninitialized(_zeros, shape, dtype, backend, require_grad)

    # -- the value ---------------------------------------------------------------------------------------------------

    def val(self):
        """The value, initialized now if this Param is lazy. If the initializer raises, the Param stays lazy and the
        next call tries again."""
        value = self._value
        return self._alone(_made) if value is None else value

    def _alone(self, do, given=None):
        """do(self, given), while no other thread does anything else here.

        Raises EmberletError if this thread, or one that waits for it, is doing that already: it would never end.
        """
        lock = self._lock
        if not lock:
            return do(self, given)
        me = _thread.get_ident()
        with _guard:
            _waits[me] = self
            if lock.locked():
                from .waiting import check

                check(self, me, _waits)
        with lock:  # and not acquire(): an interrupt behind it would leave the lock held
            self._owner = me
            try:
                with _guard:
                    _waits.pop(me, None)  # unless the handler of a signal that used a Param has done it
                return do(self, given)
            finally:
                self._owner = None

    def set(self, value, id=None):
        """Set another value (a Tensor), keeping the mappers and, unless another is given, the identity.

        Raises EmberletError if it is not a Tensor, such as the None of a mapper that forgot to return.
        """
        if not hasattr(value, "backend"):
            refuse("no value", value)
        return self._alone(_set, (value, id))

    # -- what is known without the value -----------------------------------------------------------------------------

    @property
    def shape(self):
        """Tuple of int."""
        value = self._value
        return self._shape if value is None else value.shape

    @property
    def dtype(self):
        """The dtype of the value, also before it is initialized."""
        value = self._value
        return self._dtype if value is None else value.dtype

    @property
    def backend(self):
        """The backend of the value, also before it is initialized."""
        value = self._value
        if value is not None:
            return value.backend
        from ..backend import get_backend

        return get_backend(self._backend)

    def __repr__(self):
        from .methods import represent

        return represent(self)

    def __getattr__(self, name):
        # Running a loaded model never needs the methods in methods.py; the class gets them on first use.
        from .methods import method

        setattr(Param, name, method(name))
        return getattr(self, name)

    # -- records -----------------------------------------------------------------------------------------------------

    def loaded(self, tensor):
        """`tensor`, from a record, as a value of this Param: on its backend, in its dtype, through the load mapper. The
        Param does not change.

        Raises DTypeError for another kind of number and for integers out of its dtype's range, ShapeError if the
        result's shape differs from the Param's.
        """
        mine = self.dtype
        if tensor.dtype is not mine:
            if tensor.dtype.is_float != mine.is_float or tensor.dtype.is_bool != mine.is_bool:
                refuse("kind", tensor.dtype, mine)
            from .converting import converted

            tensor = converted(tensor, mine)
        backend = self.backend
        if tensor.backend is not backend:
            tensor = tensor.to(backend)
        if self._on_load:
            tensor = self._on_load(tensor)
        if tensor.shape != self.shape:
            refuse("param shape", tensor.shape, self.shape)
        return tensor


if hasattr(memoryview, "cast"):  # not on MicroPython
    from ..host.interface.elsewhere.params import attach

    attach(Param)
