"""Tensor: an n-dimensional array that belongs to one backend.

Operators are here; every other method is loaded from the functional families on first use (see names.py), so that a
microcontroller loads only the families its model uses.
"""

from .errors import refuse as _refuse
from .lookup import function as _function
from .lookup import method as _method


class Tensor:
    """An array of one dtype on one backend.

    dtype: DType; shape: tuple of int; backend: Backend; data: the backend's storage (opaque to all other code). On
    CPython they are read-only (host/sharing/fields.py). Create tensors with `emberlet.asarray`, `zeros`, … rather than
    directly. Methods and semantics follow the array API standard 2024.12, and Burn's tensor API for the rest
    (docs/tensors.md).
    """

    def __init__(self, data, dtype, shape, backend):
        self.data = data
        self.dtype = dtype
        self.shape = shape
        self.backend = backend

    @staticmethod
    def from_data(data, dtype=None, backend=None):
        """A tensor from a TensorData, nested lists or another array; `emberlet.asarray` by Burn's name."""
        return _function("asarray")(data, dtype=dtype, backend=backend)

    @property
    def ndim(self):
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """The number of elements."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def nbytes(self):
        """The size of all elements in bytes, packed."""
        return self.dtype.nbytes(self.size)

    @property
    def device(self):
        """The backend's name, with its index unless that is 0: "numpy", "wgpu:1"."""
        return repr(self.backend)

    @property
    def T(self):
        """The transpose of a 2-D tensor."""
        if len(self.shape) != 2:
            _refuse("transpose", self.shape)
        return self.mT

    @property
    def mT(self):
        """The last two axes swapped."""
        return _function("matrix_transpose")(self)

    def __getattr__(self, name):
        function = _method(name)
        if function is None:
            raise AttributeError("Tensor has no attribute {!r}".format(name))
        # The function is also stored in the class, where the next lookup on CPython and MicroPython finds it directly.
        setattr(Tensor, name, function)
        return getattr(self, name)

    def __len__(self):
        if not self.shape:
            _refuse("len")
        return self.shape[0]

    def __repr__(self):
        return _function("format_tensor")(self)

    def __str__(self):
        return _function("describe_tensor")(self)

    def __format__(self, spec):
        return _function("format_with")(self, spec)

    def __hash__(self):
        return id(self)

    def __bool__(self):
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        value = self.item()
        if type(value) is not int:
            _refuse("index", self.dtype)
        return value

    def __getitem__(self, key):
        return _function("getitem")(self, key)

    def __setitem__(self, key, value):
        _function("setitem")(self, key, value)

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]


def _operator(function_name, reverse):
    def method(self, other):
        if not _operand(other):
            return NotImplemented
        if reverse:
            self, other = other, self
        return _function(function_name)(self, other)

    return method


def _prefix(function_name):
    def method(self):
        return _function(function_name)(self)

    return method


def _pairs(words):
    words = words.split()
    return [("__" + words[i] + "__", words[i + 1]) for i in range(0, len(words), 2)]


def _operators():
    # Tables and loops, because forty one-line methods would take more memory on a device.
    arithmetic = _pairs(
        "add add sub subtract mul multiply truediv divide floordiv floor_divide mod remainder pow pow matmul matmul"
        " and _and or _or xor _xor lshift bitwise_left_shift rshift bitwise_right_shift"
    )
    comparisons = _pairs("eq equal ne not_equal lt less le less_equal gt greater ge greater_equal")
    for name, function_name in arithmetic + comparisons:
        setattr(Tensor, name, _operator(function_name, False))
    for name, function_name in arithmetic:
        setattr(Tensor, "__r" + name[2:], _operator(function_name, True))
    for name, function_name in _pairs("neg negative pos positive abs abs invert _invert"):
        setattr(Tensor, name, _prefix(function_name))


def _operand(other):
    """Whether an operator takes `other`: a tensor, a number, or an array that can become one."""
    if isinstance(other, (Tensor, bool, int, float)):
        return True
    return hasattr(other, "__array_interface__") or hasattr(other, "__dlpack__")


_operators()
if hasattr(memoryview, "cast"):  # not on MicroPython
    from .host.sharing.protocols import attach

    attach(Tensor)
