"""Converting arguments for the primitives: to tensors, on one backend, with a dtype of the right kind."""

from .. import dtypes
from ..errors import refuse
from ..lookup import function
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


def is_scalar(value):
    """Whether `value` is a Python bool, int, float or str."""
    return isinstance(value, (bool, int, float, str))


def tensor(x, backend=None):
    """x as a tensor (on `backend` if x is not a tensor yet)."""
    if isinstance(x, Tensor):
        return x
    return function("asarray")(x, backend=backend)


def same_backend(*tensors):
    """Raise BackendError unless all tensors are on one backend."""
    backend = tensors[0].backend
    for t in tensors:
        if t.backend is not backend:
            refuse("backends", backend, t.backend)
    return backend


def like(x, other):
    """x (tensor, scalar or array-like) as a tensor of other's dtype and backend."""
    dtype = other.dtype
    backend = other.backend
    if isinstance(x, Tensor) and x.backend is backend:
        return astype(x, dtype)
    if is_scalar(x):
        return function("asarray")(x, dtype=dtype, backend=backend)
    x = tensor(x, backend)
    same_backend(x, other)
    return astype(x, dtype)


def astype(x, dtype):
    """x in dtype; x itself if it already has it. Raises DTypeError for strings as numbers."""
    if x.dtype is dtype:
        return x
    if x.dtype.kind == "string":
        refuse("string")
    return x.backend.cast(x, dtype)


def alias(x):
    """Another tensor of the same elements: assigning to one of the two does not change the other."""
    return Tensor(x.data, x.dtype, x.shape, x.backend)


def floating(x):
    """x as a floating-point tensor: integers and bools become float32."""
    x = tensor(x)
    return x if x.dtype.is_float else astype(x, dtypes.float32)


def numeric(x, what):
    """x as a tensor of numbers. Raises DTypeError for bool and string."""
    x = tensor(x)
    if x.dtype.is_bool or x.dtype.kind == "string":
        refuse("numeric", what, x.dtype)
    return x
