"""From what a caller passes to what a primitive wants: tensors of one backend and one dtype.

Python scalars follow the array API standard: they take the dtype of the tensor they meet. What the standard leaves
open is decided here: an int meeting a bool tensor is int64, a float meeting an integer or bool tensor is float32.
"""

from .. import dtypes
from ..backend import get_backend
from ..errors import BackendError, DTypeError
from ..shapes import broadcast
from ..tensor import Tensor


def default_dtype(value):
    """The dtype of a Python scalar on its own: bool, int64, float32 or string."""
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, int):
        return dtypes.int64
    if isinstance(value, str):
        return dtypes.string
    return dtypes.float32


def scalar_dtype(value, like):
    """The dtype a Python scalar takes beside a tensor of dtype `like`."""
    if like.is_float or isinstance(value, bool) or (isinstance(value, int) and not like.is_bool):
        return like
    return default_dtype(value)


def check_range(value, dtype):
    """Raise DTypeError where integer `dtype` cannot hold the int `value`."""
    if dtype.is_integer:
        low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
        high = (1 << (dtype.bits - (dtype.kind == "int"))) - 1
        if not low <= value <= high:
            raise DTypeError("{} does not fit {}, which holds {} to {}".format(value, dtype, low, high))


def scalar(value, dtype, backend):
    """A tensor without axes that holds the Python scalar `value`."""
    if dtype.is_integer:
        value = int(value)
        check_range(value, dtype)
    return backend.full((), value, dtype)


def is_scalar(value):
    """Whether `value` is a Python bool, int, float or str."""
    return isinstance(value, (bool, int, float, str))


def tensor(x, backend=None):
    """x as a tensor (on `backend` where x is not one already)."""
    if isinstance(x, Tensor):
        return x
    from .creation import asarray

    return asarray(x, backend=backend)


def same_backend(*tensors):
    """Raise BackendError unless all tensors live on one backend."""
    backend = tensors[0].backend
    for t in tensors:
        if t.backend is not backend:
            raise BackendError(
                "operands live on different backends, {} and {}; move one with .to()".format(backend, t.backend)
            )
    return backend


def together(a, b):
    """a and b as tensors of one backend and dtype (the promoted one). Raises DTypeError, BackendError."""
    if not isinstance(a, Tensor):
        if not isinstance(b, Tensor):
            a = tensor(a)
        elif is_scalar(a):
            dtype = scalar_dtype(a, b.dtype)
            return scalar(a, dtype, b.backend), astype(b, dtype)
        else:
            a = tensor(a, b.backend)
    if not isinstance(b, Tensor):
        if is_scalar(b):
            dtype = scalar_dtype(b, a.dtype)
            return astype(a, dtype), scalar(b, dtype, a.backend)
        b = tensor(b, a.backend)
    if a.backend is not b.backend:
        same_backend(a, b)
    if a.dtype is b.dtype:
        return a, b
    dtype = dtypes.promote(a.dtype, b.dtype)
    return astype(a, dtype), astype(b, dtype)


def paired(a, b):
    """`together` for elementwise operations: raises ShapeError unless the shapes broadcast."""
    a, b = together(a, b)
    if a.shape != b.shape and a.shape and b.shape:
        broadcast(a.shape, b.shape)
    return a, b


def all_together(tensors):
    """A list of tensors of one backend and one dtype from tensors or array-likes."""
    tensors = list(tensors)
    backend = get_backend()
    for t in tensors:
        if isinstance(t, Tensor):
            backend = t.backend
            break
    tensors = [tensor(t, backend) for t in tensors]
    same_backend(*tensors)
    dtype = tensors[0].dtype
    for t in tensors:
        dtype = dtypes.promote(dtype, t.dtype)
    return [astype(t, dtype) for t in tensors]


def like(x, other):
    """x (tensor, scalar or array-like) as a tensor of other's dtype and backend."""
    if is_scalar(x):
        return other.backend.full((), x, other.dtype)
    x = tensor(x, other.backend)
    same_backend(x, other)
    return astype(x, other.dtype)


def astype(x, dtype):
    """x in dtype; x itself where it is so already."""
    if x.dtype is dtype:
        return x
    return x.backend.cast(x, dtype)


def alias(x):
    """Another tensor of the same elements: assigning to one of the two leaves the other as it is."""
    return Tensor(x.data, x.dtype, x.shape, x.backend)


def floating(x):
    """x as a floating-point tensor: integers and bools become float32."""
    x = tensor(x)
    if x.dtype.is_float:
        return x
    if x.dtype.kind == "string":
        raise DTypeError("expected numbers, found a string tensor")
    return x.backend.cast(x, dtypes.float32)


def numeric(x, what):
    """x as a tensor of numbers. Raises DTypeError for bool and string."""
    x = tensor(x)
    if x.dtype.is_bool or x.dtype.kind == "string":
        raise DTypeError("{} is not defined for {}; convert with .astype()".format(what, x.dtype))
    return x


def integers(x, what):
    """x as a tensor of integers or bools. Raises DTypeError otherwise."""
    x = tensor(x)
    if not (x.dtype.is_integer or x.dtype.is_bool):
        raise DTypeError("{} takes integers or bools, found {}".format(what, x.dtype))
    return x
