"""From a tensor to Python values and data, and from dtype to dtype."""

from ... import dtypes
from ..operands import alias, tensor


def to_data(x):
    """The elements as a `TensorData` (bytes, shape, dtype), which belongs to no backend."""
    from ...data import TensorData

    if x.dtype.kind == "string":
        return TensorData.from_list(x.backend.to_list(x), x.shape, x.dtype)
    return TensorData(x.backend.to_bytes(x), x.shape, x.dtype)


into_data = to_data


async def to_data_async(x):
    """`to_data`, awaited: a backend whose memory can only be read asynchronously overrides it."""
    fast = getattr(x.backend, "to_data_async", None)
    return await fast(x) if fast else to_data(x)


async def item_async(x):
    """`item`, awaited."""
    data = await to_data_async(x)
    return data.to_vec()[0]


def astype(x, dtype, *, copy=True, device=None):
    """x in another dtype. Float to integer truncates and saturates, integer to integer wraps, anything to bool is != 0.

    copy: False returns x itself where it has the dtype already. (Elements never change in place, nothing is copied.)
    """
    x = tensor(x)
    dtype = dtypes.dtype(dtype)
    if dtype is not x.dtype:
        x = x.backend.cast(x, dtype)
    elif copy:
        x = alias(x)
    if device is not None:
        from .transfer import move

        x = move(x, device)
    return x


def cast(x, dtype, saturate=True, round_mode="up"):
    """`astype`; `saturate` False lets floats beyond the range of an 8-bit float become inf or NaN (ONNX Cast).

    round_mode: to which power of two float8_e8m0fnu rounds, "up", "down" or "nearest".
    """
    x = tensor(x)
    dtype = dtypes.dtype(dtype)
    if dtype is x.dtype:
        return x
    if round_mode != "up" and dtype is dtypes.float8_e8m0fnu:
        # Without its mantissa a float32 is a power of two; half a mantissa more carries into the exponent.
        k = x.backend
        bits = k.bitcast(k.cast(x, dtypes.float32), dtypes.uint32)
        if round_mode == "nearest":
            bits = k.binary("add", bits, k.full((), 0x00400000, dtypes.uint32))
        x = k.bitcast(k.binary("bitwise_and", bits, k.full((), 0x7F800000, dtypes.uint32)), dtypes.float32)
    return x.backend.cast(x, dtype, saturate)


def bitcast(x, dtype):
    """The same bits read as another dtype of the same width. Raises DTypeError where the widths differ."""
    x = tensor(x)
    dtype = dtypes.dtype(dtype)
    if dtype.bits != x.dtype.bits:
        from ...errors import DTypeError

        raise DTypeError("bitcast from {} to {}: {} bits meet {}".format(x.dtype, dtype, x.dtype.bits, dtype.bits))
    return x if dtype is x.dtype else x.backend.bitcast(x, dtype)


def float(x):
    """x as float32."""
    return astype(x, dtypes.float32)


def int(x):
    """x as int64."""
    return astype(x, dtypes.int64)


def bool(x):
    """x as bool: true where it is not 0."""
    return astype(x, dtypes.bool)


def to_full_precision(x):
    """x as float32."""
    return astype(x, dtypes.float32)


def from_full_precision(x, dtype):
    """x (float32) in a narrower floating-point dtype."""
    return astype(x, dtype)


def detach(x):
    """x: no backend here records gradients."""
    return x


def require_grad(x, require=True):
    """x: no backend here records gradients."""
    return x


set_require_grad = require_grad


def is_require_grad(x):
    """False: no backend here records gradients."""
    return False
