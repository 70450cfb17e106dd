"""Tensor: an immutable-by-convention n-dimensional array that belongs to one backend.

Operators are here; every other method comes from the functional families the first time it is asked for (see
names.py), so that a microcontroller loads only the families its model uses.
"""

from . import names


class Tensor:
    """An array of one dtype on one backend.

    dtype: DType; shape: tuple of int; backend: Backend; data: what the backend keeps (opaque to everyone else).
    Built by `emberlet.asarray`, `zeros`, … rather than directly. Methods and semantics follow the array API standard
    2024.12, and Burn's tensor table for what the standard does not have (docs/tensors.md).
    """

    __array_priority__ = 1000  # numpy_array + tensor must ask the tensor

    def __init__(self, data, dtype, shape, backend):
        self.data = data
        self.dtype = dtype
        self.shape = shape
        self.backend = backend

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def nbytes(self):
        return self.dtype.nbytes(self.size)

    @property
    def device(self):
        """The backend's name, with its index where that is not 0: "numpy", "wgpu:1"."""
        return repr(self.backend)

    @property
    def T(self):
        return names.function("matrix_transpose")(self)

    @property
    def mT(self):
        return names.function("matrix_transpose")(self)

    def __getattr__(self, name):
        function = names.method(name)
        if function is None:
            raise AttributeError("Tensor has no attribute {!r}".format(name))
        # The class gets the function too: the next look-up on CPython and MicroPython finds it at once.
        setattr(Tensor, name, function)
        return getattr(self, name)

    def __array_namespace__(self, api_version=None):
        import emberlet

        return emberlet

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a tensor without axes")
        return self.shape[0]

    def __repr__(self):
        return names.function("format_tensor")(self)

    def __hash__(self):
        return id(self)

    def __bool__(self):
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __index__(self):
        return self.item().__index__()

    def __getitem__(self, key):
        return names.function("getitem")(self, key)

    def __setitem__(self, key, value):
        names.function("setitem")(self, key, value)

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]


def _operators():
    # Written as a table: forty one-line methods cost a device more memory than this loop.
    def forward(function_name):
        def method(self, other):
            return names.function(function_name)(self, other)

        return method

    def reverse(function_name):
        def method(self, other):
            return names.function(function_name)(other, self)

        return method

    def prefix(function_name):
        def method(self):
            return names.function(function_name)(self)

        return method

    for short, function_name in (
        ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"), ("floordiv", "floor_divide"),
        ("mod", "remainder"), ("pow", "pow"), ("matmul", "matmul"), ("and", "_and"), ("or", "_or"), ("xor", "_xor"),
        ("lshift", "bitwise_left_shift"), ("rshift", "bitwise_right_shift"),
    ):  # fmt: skip
        setattr(Tensor, "__" + short + "__", forward(function_name))
        setattr(Tensor, "__r" + short + "__", reverse(function_name))
    for short, function_name in (
        ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"),
        ("ge", "greater_equal"),
    ):  # fmt: skip
        setattr(Tensor, "__" + short + "__", forward(function_name))
    for short, function_name in (("neg", "negative"), ("pos", "positive"), ("abs", "abs"), ("invert", "_invert")):
        setattr(Tensor, "__" + short + "__", prefix(function_name))


_operators()
