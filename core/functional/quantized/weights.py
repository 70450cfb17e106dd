"""Quantizing the weights of layers to 8, 4 or 2 bits, and packing them.

A weight is seen as (channels, the weights of each channel), whatever its axes are. The packed form is that of
`matmul_nbits`: (channels, blocks, bytes).
"""

from ... import dtypes
from ...errors import UnsupportedError
from ..movement.rearranging import narrow, permute_dims, reshape
from .packed_weights import dequantize_nbits

MODES = ("symmetric", "affine")
CALIBRATIONS = ("min-max", "absolute-mean")
SCALES = (dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.float8_e8m0fnu, dtypes.float8_e4m3fn)
VALUES = {8: (dtypes.float8_e4m3fn, dtypes.float8_e5m2), 4: (dtypes.float4_e2m1fn,)}


class WeightScheme:
    """How weights are quantized.

    bits: 8, 4 or 2; mode: "symmetric" (zero is a level of its own) or "affine" (the whole range is used, with a zero
    point); level: which weights share a scale: "tensor", "channel" (those of one output), a number of weights of a
    channel, or (n, m), m weights of each of n consecutive channels (min-max only); calibration:
    "min-max" (the largest weight is kept) or "absolute-mean" (weights beyond the mean absolute weight are clipped, as
    in BitNet; symmetric only).

    scale: the dtype of the scales: float32, float16, bfloat16, float8_e8m0fnu (powers of two, as in OCP's microscaling
    formats), or float8_e4m3fn, without its sign, times one float32 for the whole weight (NVIDIA's NVFP4). value: the
    dtype of the values: None for integers, float8_e4m3fn or float8_e5m2 (8 bits), float4_e2m1fn or "nf4" (4 bits);
    symmetric and min-max only. "nf4" has 16 levels for normally distributed weights (QLoRA). Raises UnsupportedError
    for anything else.
    """

    def __init__(
        self, bits=8, mode="symmetric", level="channel", calibration="min-max", scale="float32", value=None
    ):  # fmt: skip
        if not isinstance(bits, int) or bits not in (8, 4, 2):
            raise UnsupportedError("weights are quantized to 8, 4 or 2 bits, not to {!r}".format(bits))
        if mode not in MODES or calibration not in CALIBRATIONS:
            raise UnsupportedError(
                "a weight's mode is one of {}, its calibration one of {}; found {!r}, {!r}".format(
                    ", ".join(MODES), ", ".join(CALIBRATIONS), mode, calibration
                )
            )
        if mode == "affine" and calibration != "min-max":
            raise UnsupportedError("affine weights support only min-max calibration")
        self.rows = 1  # channels that share scales
        if isinstance(level, (tuple, list)):
            whole = len(level) == 2 and isinstance(level[0], int) and isinstance(level[1], int)
            if not whole or isinstance(level[0], bool) or level[0] < 1 or calibration != "min-max":
                raise UnsupportedError(
                    "blocks of two axes are numbers (channels, weights of each), and min-max; found {}, {}".format(
                        level, calibration
                    )
                )
            self.rows, level = level
        if level not in ("tensor", "channel") and (
            not isinstance(level, int) or isinstance(level, bool) or level < 1 or level * bits % 8
        ):
            raise UnsupportedError(
                "level is 'tensor', 'channel', or a number of weights that fill whole bytes, found {!r}".format(level)
            )
        scale = dtypes.dtype(scale)
        if scale not in SCALES:
            raise UnsupportedError(
                "the dtype of scales is one of {}, found {}".format(", ".join([d.name for d in SCALES]), scale)
            )
        self.codebook = None
        if value == "nf4":
            self.codebook, value = value, None
            if bits != 4 or mode != "symmetric" or calibration != "min-max":
                raise UnsupportedError(
                    "nf4 has 4 bits and is symmetric and min-max; found {}, {}, {}".format(bits, mode, calibration)
                )
        if value is not None:
            value = dtypes.dtype(value)
            known = VALUES.get(bits, ())
            if value not in known or mode != "symmetric" or calibration != "min-max":
                raise UnsupportedError(
                    "values of {} bits are integers{}, and floats are symmetric and min-max; found {}, {}, {}".format(
                        bits, "".join([" or " + d.name for d in known]), value, mode, calibration
                    )
                )
        self.scale = scale
        self.value = value
        self.two_levels = scale is dtypes.float8_e4m3fn
        self.bits = bits
        self.mode = mode
        self.level = level
        self.calibration = calibration

    def block_size(self, n):
        """How many of a channel's n weights share a scale, rounded up to whole bytes."""
        each = 8 // self.bits
        most = max(1, (n + each - 1) // each) * each
        return min(self.level, most) if isinstance(self.level, int) else most

    def __repr__(self):
        more = "" if self.scale is dtypes.float32 else ", scale={!r}".format(self.scale.name)
        value = self.codebook or (self.value and self.value.name)
        more += "" if value is None else ", value={!r}".format(value)
        level = self.level if self.rows == 1 else (self.rows, self.level)
        return "WeightScheme({}, {!r}, {!r}, {!r}{})".format(self.bits, self.mode, level, self.calibration, more)

    def rows_of(self, n, channels):
        """How many channels of n weights share scales in the packed form: those of blocks of two axes as far as these
        are whole, and their shapes tell how many (`rows_in`)."""
        if self.rows == 1 or self.block_size(n) != self.level:
            return 1
        return self.rows if rows_in(channels, self.level, _parts(channels, self.rows)) == self.rows else 1

    def rounded(self, scale):
        """Float32 scales as the scheme stores them: (scales in its dtype, None or the float32 that they are multiplied
        by). That of a block of zeros, which is 0, becomes 1; others at least the smallest that the dtype holds."""
        if self.scale is dtypes.float32:
            return _positive(scale), None
        whole = None
        if self.two_levels:
            most = scale.max() if scale.size else scale.backend.full((), 0.0, dtypes.float32)
            whole = _positive(most / LARGEST[self.scale.name])
            scale = scale / whole
        backend = scale.backend
        zero = backend.binary("eq", scale, backend.full((), 0.0, dtypes.float32))
        scale = scale.clip(SMALLEST[self.scale.name], LARGEST[self.scale.name])
        found = backend.where(zero, backend.full((), 1.0, dtypes.float32), scale).astype(self.scale)
        if self.scale is dtypes.float8_e8m0fnu:  # a smaller power of two would clip the largest weights
            back = found.astype(dtypes.float32)
            found = backend.where(backend.binary("lt", back, scale), back * 2.0, back).astype(self.scale)
        return found, whole


LARGEST = {
    "float16": 65504.0, "bfloat16": 3.3895314e38, "float8_e8m0fnu": 2.0**127, "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0, "float4_e2m1fn": 6.0,
}  # fmt: skip
# Of the scales.
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-126, "float8_e8m0fnu": 2.0**-126, "float8_e4m3fn": 2.0**-9}


def scale_of(stored, whole=None):
    """The float32 scales of stored ones, and of the number that they are multiplied by."""
    scale = stored.astype(dtypes.float32)
    return scale if whole is None else scale * whole


def as_rows(weight, axis):
    """A weight whose channels are along `axis`, as (channels, the weights of each)."""
    order = _order(weight.ndim, axis)
    count = 1  # not by a division: there may be no channels
    for i in order[1:]:
        count *= weight.shape[i]
    return reshape(permute_dims(weight, order), (weight.shape[axis], count))


def from_rows(rows, shape, axis):
    """The weight of this shape from its `as_rows`."""
    order = _order(len(shape), axis)
    moved = reshape(rows, tuple([shape[i] for i in order]))
    return permute_dims(moved, [order.index(i) for i in range(len(shape))])


def _order(ndim, axis):
    return [axis] + [i for i in range(ndim) if i != axis]


def _parts(n, size):
    """How many parts of a size n has, the last of which may be shorter."""
    return (n + size - 1) // size


def rows_in(channels, block, groups):
    """How many channels share scales where so many groups of channels have some, in blocks of `block` weights: as many
    as weights if that gives the groups, else the least number that does."""
    if groups == channels or _parts(channels, block) != groups:
        return max(_parts(channels, max(groups, 1)), 1)
    return block


def spread(scales, blocks, rows, channels):
    """Scales (channels / rows, rounded up, * blocks,) of blocks of two axes, for each channel: (channels * blocks,)."""
    if rows == 1 or not scales.size:
        return scales
    count = scales.size // blocks
    wide = scales.backend.expand(reshape(scales, (count, 1, blocks)), (count, rows, blocks))
    return reshape(narrow(reshape(wide, (count * rows, blocks)), 0, 0, channels), (-1,))


def quantize_rows(x, scheme):
    """(levels, scales, None or what all scales are multiplied by, zero points) of weights (channels, n), each channel
    in blocks of its own.

    levels: uint8 (channels, blocks, block size), where levels past the last weight encode 0, or floats in the scheme's
    value dtype; scales: (channels * blocks,) in the scheme's dtype (`scale_of` makes float32 of them), or one for
    several channels (`rows_of`, `spread`); zero points:
    float32 (channels * blocks,), or None if they are all 2 ** (bits - 1).
    """
    channels, n = x.shape
    size = scheme.block_size(n)
    count = (n + size - 1) // size
    x = x.astype(dtypes.float32)
    if count * size != n:
        x = x.backend.pad(x, ((0, 0), (0, count * size - n)), 0.0)
    x = reshape(x, (channels, count, size))
    one = scheme.level == "tensor" and x.size  # of nothing there is no maximum
    axes = (0, 1, 2) if one else 2
    middle = 1 << (scheme.bits - 1)
    if scheme.mode == "affine":
        low = x.min(axis=axes, keepdims=True).minimum(0.0)
        high = x.max(axis=axes, keepdims=True).maximum(0.0)
        if scheme.rows > 1:
            low, high = -_largest(-low, scheme), _largest(high, scheme)
        stored, whole, scale = _scales((high - low) / float(2 * middle - 1), x, scheme, n)
        zero = (-low / scale).round()
        levels = ((x / scale).round() + zero).clip(0, 2 * middle - 1)
        return levels.astype(dtypes.uint8), stored, whole, reshape(zero, (-1,))
    if scheme.calibration == "min-max":
        reach = x.abs().max(axis=axes, keepdims=True)
        if scheme.rows > 1:
            reach = _largest(reach, scheme)
    else:
        reach = x.abs().sum(axis=axes, keepdims=True) / float(channels * n if one else size)
        if scheme.level != "tensor" and count * size != n:  # the last block is shorter
            short = n - (count - 1) * size
            counts = [float(size) / (size if i < count - 1 else short) for i in range(count)]
            reach = reach * x.backend.from_list(counts, dtypes.float32, (1, count, 1))
    stored, whole, scale = _scales(reach / _top(scheme), x, scheme, n)
    return _levels(x / scale, scheme), stored, whole, None


def _top(scheme):
    """The largest level of a symmetric scheme."""
    if scheme.codebook:
        return 1.0
    return float((1 << (scheme.bits - 1)) - 1) if scheme.value is None else LARGEST[scheme.value.name]


def _levels(x, scheme):
    """The levels of weights that are divided by their scales."""
    if scheme.codebook:
        from .codebooks import nearest

        return nearest(x, scheme.codebook)
    top = _top(scheme)
    if scheme.value is None:
        return (x.round().clip(-top, top) + (top + 1.0)).astype(dtypes.uint8)
    return x.clip(-top, top).astype(scheme.value)


def _largest(x, scheme):
    """The largest of the channels that share a scale, for each of them: numbers from 0 up, (channels, blocks, 1)."""
    channels, blocks, _ = x.shape
    most = reshape(_groups(reshape(x, (channels, blocks)), scheme.rows).max(axis=1), (-1,))
    return reshape(spread(most, blocks, scheme.rows, channels), (channels, blocks, 1))


def _groups(x, rows):
    """(channels, blocks) as (groups, rows, blocks), the last with zeros."""
    channels, blocks = x.shape
    count = _parts(channels, rows)
    return reshape(x.backend.pad(x, ((0, count * rows - channels), (0, 0)), 0.0), (count, rows, blocks))


def _scales(scale, x, scheme, n):
    """(scales as the scheme stores them, what they are multiplied by, their float32) of blocks x (channels, blocks,
    block size), n weights a channel; the last (channels, blocks, 1)."""
    channels, count, _ = x.shape
    rows = scheme.rows_of(n, channels)
    scale = x.backend.expand(scale, (channels, count, 1))
    if rows > 1:
        scale = narrow(_groups(reshape(scale, (channels, count)), rows), 1, 0, 1)
    stored, whole = scheme.rounded(reshape(scale, (-1,)))
    wide = spread(scale_of(stored, whole), count, rows, channels)
    return stored, whole, reshape(wide, (channels, count, 1))


def _positive(scale):
    """The scale, or 1 if it is 0 (a block of zeros)."""
    backend = scale.backend
    zero, one = [backend.full((), n, scale.dtype) for n in (0, 1)]
    return backend.where(backend.binary("eq", scale, zero), one, scale)


def pack_levels(levels, bits):
    """uint8 (…, n) -> uint8 (…, n * bits / 8), the first in the lowest bits."""
    if bits == 8:
        return levels
    each = 8 // bits
    parts = reshape(levels, levels.shape[:-1] + (levels.shape[-1] // each, each))
    out = None
    for i in range(each):
        part = parts[..., i] << (bits * i)
        out = part if out is None else out | part
    return out


def real_of(values, scales, n):
    """Floats (channels, blocks, block size) times scales (channels, blocks) -> (channels, n), float32."""
    channels, blocks, size = values.shape
    real = values.astype(dtypes.float32) * reshape(scales, (channels, blocks, 1))
    return narrow(reshape(real, (channels, blocks * size)), 1, 0, n)


def fake_quantize(weight, scheme, axis=1):
    """The weight after quantizing and dequantizing, float32. axis: that of its channels; 1 for (rows, columns)."""
    if weight.size == 0:
        return weight
    rows = as_rows(weight, axis)
    levels, stored, whole, zero = quantize_rows(rows, scheme)
    size = scheme.block_size(rows.shape[1])
    blocks = (rows.shape[1] + size - 1) // size
    together = scheme.rows_of(rows.shape[1], rows.shape[0])
    scales = spread(scale_of(stored, whole), blocks, together, rows.shape[0])
    if scheme.value is not None:
        return from_rows(real_of(levels, scales, rows.shape[1]), weight.shape, axis)
    if scheme.codebook:
        from .codebooks import CODEBOOKS, numbers

        table = levels.backend.from_list(list(CODEBOOKS[scheme.codebook]), dtypes.float32, (16,))
        levels = numbers(pack_levels(levels, 4), table)
        return from_rows(real_of(levels, scales, rows.shape[1]), weight.shape, axis)
    real = dequantize_nbits(
        pack_levels(levels, scheme.bits), scales, zero,
        rows=rows.shape[1], columns=rows.shape[0], bits=scheme.bits, block_size=scheme.block_size(rows.shape[1]),
    )  # fmt: skip
    return from_rows(real, weight.shape, axis)
