"""Converting tensors to Python values and data, and between dtypes."""

from ... import dtypes
from ...errors import refuse
from ..operands import alias, tensor


#: method; Burn to_data -> TensorData
def to_data(x):
    """The elements as a `TensorData` (bytes, shape, dtype), which belongs to no backend."""
    from ...tensor_data import TensorData

    if x.dtype.kind == "string":
        return TensorData.from_list(x.backend.to_list(x), x.shape, x.dtype)
    return TensorData(x.backend.to_bytes(x), x.shape, x.dtype)


#: method; Burn into_data -> TensorData
def into_data(x):
    """`to_data` by Burn's other name."""
    return to_data(x)


#: method; Burn into_scalar -> bool | int | float | str
def into_scalar(x):
    """`item` by Burn's name."""
    from ..python_values import item

    return item(x)


#: method; Burn into_data_async -> TensorData
async def to_data_async(x):
    """The awaitable form of `to_data`, for backends whose memory can only be read asynchronously."""
    fast = getattr(x.backend, "to_data_async", None)
    return await fast(x) if fast else to_data(x)


#: method; Burn into_scalar_async; x: Tensor -> bool | int | float | str
async def item_async(x):
    """The awaitable form of `item`."""
    data = await to_data_async(x)
    return data.to_vec()[0]


#: method; array API
def astype(x, dtype, *, copy=True, device=None):
    """x in another dtype. Float to integer truncates and saturates, integer to integer wraps, anything to bool is != 0.

    copy: False returns x itself if it already has the dtype. Elements are shared until one of the tensors is assigned
    to.
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


#: method; ONNX Cast
def cast(x, dtype, saturate=True, round_mode="up"):
    """`astype`; with `saturate` False, floats beyond the range of an 8-bit float become inf or NaN (ONNX Cast).

    round_mode: the direction in which float8_e8m0fnu rounds to a power of two: "up", "down" or "nearest".
    """
    if round_mode not in ("up", "down", "nearest"):
        refuse("choice", "cast: round_mode", "'up', 'down' or 'nearest'", round_mode)
    x = tensor(x)
    dtype = dtypes.dtype(dtype)
    if dtype is x.dtype:
        return alias(x)
    if round_mode != "up" and dtype is dtypes.float8_e8m0fnu:
        # Clearing the mantissa of a float32 leaves a power of two; adding half a mantissa first rounds to the nearest.
        backend = x.backend
        bits = backend.bitcast(backend.cast(x, dtypes.float32), dtypes.uint32)
        if round_mode == "nearest":
            bits = backend.binary("add", bits, backend.full((), 0x00400000, dtypes.uint32))
        x = backend.bitcast(
            backend.binary("bitwise_and", bits, backend.full((), 0x7F800000, dtypes.uint32)), dtypes.float32
        )
    return x.backend.cast(x, dtype, saturate)


#: method; ONNX BitCast
def bitcast(x, dtype):
    """The same bits read as another dtype of the same width. Raises DTypeError if the widths differ."""
    x = tensor(x)
    dtype = dtypes.dtype(dtype)
    if dtype.bits != x.dtype.bits:
        from ...errors import DTypeError

        raise DTypeError(
            "bitcast from {} to {}: {} bits cannot become {} bits".format(x.dtype, dtype, x.dtype.bits, dtype.bits)
        )
    return alias(x) if dtype is x.dtype else x.backend.bitcast(x, dtype)


#: method; Burn float -> Tensor[float]
def float(x):
    """x as float32."""
    return astype(x, dtypes.float32)


#: method; Burn int -> Tensor[int]
def int(x):
    """x as int64."""
    return astype(x, dtypes.int64)


#: method; array API; Burn bool -> Tensor[bool]
def bool(x):
    """x as bool: True where x is not 0."""
    return astype(x, dtypes.bool)


#: method; Burn to_full_precision
def to_full_precision(x):
    """x as float32."""
    return astype(x, dtypes.float32)


#: method; Burn from_full_precision
def from_full_precision(x, dtype):
    """x (float32) in a narrower floating-point dtype."""
    return astype(x, dtype)
