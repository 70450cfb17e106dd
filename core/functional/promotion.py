"""Type promotion between tensors, and between tensors and Python scalars. Python scalars take the dtype of the tensor
they are combined with (array API standard).

Where the standard leaves it open, an int with a bool tensor is int64, and a float with an integer or bool tensor is
float32.
"""

from .. import dtypes
from ..backend import get_backend
from ..errors import refuse
from ..shapes import broadcast
from ..tensor import Tensor
from .operands import astype, default_dtype, floating, is_scalar, same_backend, tensor


def scalar_dtype(value, like):
    """The dtype a Python scalar takes beside a tensor of dtype `like`."""
    if like.is_float or isinstance(value, bool) or (isinstance(value, int) and not like.is_bool):
        return like
    return default_dtype(value)


def widened(x):
    """(x as floats of at least 32 bits, the dtype to round results to).

    Sums in float16 overflow at 65504 and lose precision long before, so means, norms and variances of narrower floats
    are computed in float32 and rounded once, as in onnxruntime.
    """
    x = floating(x)
    return (x, x.dtype) if x.dtype.bits >= 32 else (x.backend.cast(x, dtypes.float32), x.dtype)


def whole_numbers(flat, dtype):
    """A list of numbers, truncated. Raises DTypeError if one is out of the range of the integer `dtype`."""
    low, high = dtype.range
    out = []
    for v in flat:
        if v - v != 0 or not low <= v <= high:  # infinities and NaN too
            refuse("range", v, dtype, low, high)
        out.append(v * 1 if isinstance(v, int) else int(v))
    return out


def check_range(value, dtype):
    """Raise DTypeError if `value`, truncated, is out of the range of the integer `dtype`."""
    if dtype.is_integer:
        low, high = dtype.range
        if not low <= value <= high:
            refuse("range", value, dtype, low, high)


def scalar(value, dtype, backend):
    """A 0-D tensor of the Python scalar `value`."""
    if dtype.is_integer:
        value = value * 1 if isinstance(value, int) else int(value)
        check_range(value, dtype)
    return backend.full((), value, dtype)


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


def integers(x, what):
    """x as a tensor of integers or bools. Raises DTypeError otherwise."""
    x = tensor(x)
    if not (x.dtype.is_integer or x.dtype.is_bool):
        refuse("integers", what, x.dtype)
    return x


def paired(a, b):
    """`together` for elementwise operations: raises ShapeError unless the shapes broadcast."""
    a, b = together(a, b)
    if a.shape and b.shape:
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
