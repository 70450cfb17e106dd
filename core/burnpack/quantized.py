"""The quantized tensors of a burnpack: both generations of schemes, dequantized to float32.

A quantized tensor's bytes are its values, row-major, native (a signed byte each, also for 4 and 2 bits: Burn's CPU
backend stores them so) or packed into 32-bit words (the first in the lowest bits), then the scales of its blocks (or
its one scale), then, in a two-level scheme, the scale of the whole tensor. The scales are located from the end. The
number is value * scale.
"""

from .. import dtypes
from ..errors import FormatError
from ..shapes import size

_VALUES = {
    "Q8F": dtypes.int8,
    "Q8S": dtypes.int8,
    "Q4F": dtypes.int4,
    "Q4S": dtypes.int4,
    "Q2F": dtypes.int2,
    "Q2S": dtypes.int2,
    "E4M3": dtypes.float8_e4m3fn,
    "E5M2": dtypes.float8_e5m2,
    "E2M1": dtypes.float4_e2m1fn,
}
_SCALES = {
    "F32": dtypes.float32,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "UE8M0": dtypes.float8_e8m0fnu,
    "UE4M3": dtypes.float8_e4m3fn,  # its sign bit is never set
}


class Scheme:
    """A quantization scheme, whichever generation wrote it.

    value: DType of the values; scale: DType of the scales; tensor_scale: DType of the second level's one scale or None;
    block: the block's extent along each axis of the tensor, or None if one scale covers the tensor; packed_axis: the
    axis along which values share a 32-bit word (or, for E2M1, a byte), None if each is a native element; unit: how many
    values share one.
    """

    __slots__ = ("block", "packed_axis", "scale", "tensor_scale", "unit", "value")


def _of(table, key, what, where):
    found = table.get(key) if isinstance(key, str) else None
    if found is None:
        raise FormatError("{}: {} {!r} is none of {}".format(where, what, key, ", ".join(sorted(table))))
    return found


def _block(found, shape, where):
    """The extent of a block along each axis: {"storage": bytes, "len": n}, or those bytes as an array."""
    if isinstance(found, dict):
        storage = found.get("storage")
        n = found.get("len")
        found = storage[:n] if isinstance(storage, list) and isinstance(n, int) and 0 <= n <= len(storage) else None
    if isinstance(found, bytes):
        found = list(found)
    if not isinstance(found, list) or not all(isinstance(n, int) and 0 <= n < 256 for n in found):
        raise FormatError("{}: the block size of its scheme is not a list of bytes".format(where))
    keep = found[: len(shape)]
    block = [1] * (len(shape) - len(keep)) + keep
    # Zero stands for the whole axis.
    return tuple([max(1, b or d) for b, d in zip(block, shape)])


def scheme_of(found, shape, where):
    """The Scheme that the decoded map `found` describes. Raises FormatError, beginning with `where`."""
    s = Scheme()
    mode = found.get("mode", "Symmetric")
    if mode != "Symmetric":
        raise FormatError("{}: quantization mode {!r} is not known; Symmetric is".format(where, mode))
    s.value = _of(_VALUES, found.get("value"), "quantized value", where)
    _scales(s, found, shape, where)
    _store(s, found.get("store"), shape, where)
    return s


def _scales(s, found, shape, where):
    """Set `scale`, `block` and `tensor_scale`, as either generation of files says them."""
    s.tensor_scale = None
    s.block = None
    if "level" in found:  # 0.20 and 0.21
        s.scale = _of(_SCALES, found.get("param"), "scale type", where)
        level = found["level"]
        if isinstance(level, dict) and len(level) == 1 and "Block" in level:
            s.block = _block(level["Block"], shape, where)
        elif level != "Tensor":
            raise FormatError("{}: quantization level {!r} is neither Tensor nor Block".format(where, level))
    else:  # 0.22
        block = found.get("block")
        tensor = found.get("tensor")
        if block is None:
            s.scale = _of(_SCALES, tensor, "scale type", where)
        else:
            if not isinstance(block, dict):
                raise FormatError("{}: the block of its scheme is not a map".format(where))
            s.scale = _of(_SCALES, block.get("dtype"), "scale type", where)
            s.block = _block(block.get("size"), shape, where)
            if tensor is not None:
                s.tensor_scale = _of(_SCALES, tensor, "scale type", where)


def _store(s, store, shape, where):
    """Set `packed_axis` and `unit`, and the native `value`."""
    s.packed_axis = None
    s.unit = 1  # values that share one word
    if store == "U32":
        store = {"PackedU32": 0}
    if isinstance(store, dict) and len(store) == 1 and ("PackedU32" in store or "PackedNative" in store):
        for kind in store:
            axis = store[kind]  # counted from the innermost
            if not isinstance(axis, int) or not 0 <= axis < max(1, len(shape)):
                raise FormatError("{}: packed along axis {!r} of {}".format(where, axis, len(shape)))
            s.unit = (32 if kind == "PackedU32" else max(8, s.value.bits)) // s.value.bits
            s.packed_axis = len(shape) - 1 - axis if shape else 0
        if axis and shape[s.packed_axis] % s.unit:
            raise FormatError(
                "{}: {} values of axis {} do not fill words of {}".format(
                    where, shape[s.packed_axis], s.packed_axis, s.unit
                )
            )
    elif store != "Native":
        raise FormatError("{}: quantized values stored as {!r} are not known".format(where, store))
    elif s.value.bits < 8 and s.value.is_float:
        raise FormatError("{}: floats of {} bits cannot be stored as native".format(where, s.value.bits))
    elif s.value.bits < 8:
        s.value = dtypes.int8


def _layout(s, shape, length, where):
    """(bytes of the values, shape of the scales, start of the scales). Raises FormatError if they do not fit."""
    count = size(shape)
    values = (count + s.unit - 1) // s.unit * s.unit * s.value.bits // 8
    grid = [1] * len(shape)
    if s.block:
        grid = [(n + b - 1) // b for n, b in zip(shape, s.block)]
    scales = size(grid)
    needed = scales * s.scale.itemsize + (s.tensor_scale.itemsize if s.tensor_scale else 0)
    # Scales may begin at the next multiple of four after the values.
    if not values + needed <= length <= (values + 3) // 4 * 4 + needed:
        raise FormatError(
            "{}: {} bytes where shape {} takes {} of values and {} of scales".format(
                where, length, list(shape), values, needed
            )
        )
    return values, grid, length - needed


def layout_of(entry, length, where):
    """(Scheme, bytes of the values, shape of the scales, start of the scales) of a quantized tensor of `length` bytes.

    Raises FormatError for a scheme that is not known or that the bytes do not fit.
    """
    found = entry.stored["QFloat"]
    if not isinstance(found, dict):
        raise FormatError("{}: its quantization scheme is not a map".format(where))
    s = scheme_of(found, entry.shape, where)
    return (s,) + _layout(s, entry.shape, length, where)


def dequantize(raw, entry, backend, where):
    """The quantized tensor in the memoryview `raw` as a float32 tensor on `backend`.

    Raises FormatError for an unknown scheme, or if the bytes do not match it.
    """
    shape = entry.shape
    s, n, grid, at = layout_of(entry, len(raw), where)
    b = backend
    values = values_of(b, raw[:n], s, shape)
    end = len(raw) - (s.tensor_scale.itemsize if s.tensor_scale else 0)
    scale = b.cast(b.from_bytes(raw[at:end], s.scale, tuple(grid)), dtypes.float32)
    if s.block:
        scale = _spread(b, scale, s.block, shape)
    if s.tensor_scale:
        whole = b.cast(b.from_bytes(raw[end:], s.tensor_scale, (1,) * len(shape)), dtypes.float32)
        scale = b.binary("mul", scale, whole)
    return b.binary("mul", values, scale)


def values_of(b, raw, s, shape):
    """The values as float32 of `shape`."""
    if s.packed_axis is None or s.packed_axis == max(0, len(shape) - 1):
        count = size(shape)
        # The rest of the last word is padding.
        raw = raw[: s.value.nbytes(count)]
        return b.cast(b.from_bytes(raw, s.value, shape), dtypes.float32)
    words = list(shape)
    words[s.packed_axis] //= s.unit
    order = list(range(len(shape)))
    order.insert(s.packed_axis + 1, len(shape))
    stored = b.cast(b.from_bytes(raw, s.value, tuple(words) + (s.unit,)), dtypes.float32)
    return b.reshape(b.permute(stored, tuple(order)), shape)


def _spread(b, scale, block, shape):
    """Each block's scale, repeated for every element of the block."""
    split = []
    full = []
    joined = []
    for n, extent in zip(scale.shape, block):
        split += [n, 1]
        full += [n, extent]
        joined.append(n * extent)
    scale = b.reshape(b.expand(b.reshape(scale, tuple(split)), tuple(full)), tuple(joined))
    if tuple(joined) == shape:
        return scale
    return b.slice(scale, (0,) * len(shape), shape, (1,) * len(shape))
