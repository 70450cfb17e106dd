"""Quantizing the weights of layers to 8, 4 or 2 bits, and packing them.

A weight is seen as (channels, the weights of each channel), whatever its axes are. The packed form is that of
`matmul_nbits`: (channels, blocks, bytes).
"""

from ... import dtypes
from ...errors import UnsupportedError
from ..movement.rearranging import permute_dims, reshape
from .packed_weights import dequantize_nbits

MODES = ("symmetric", "affine")
CALIBRATIONS = ("min-max", "absolute-mean")


class WeightScheme:
    """How weights are quantized.

    bits: 8, 4 or 2; mode: "symmetric" (zero is a level of its own) or "affine" (the whole range is used, with a zero
    point); level: which weights share a scale: "tensor", "channel" (those of one output), or a number of weights of a
    channel; calibration: "min-max" (the largest weight is kept) or "absolute-mean" (weights beyond the mean absolute
    weight are clipped, as in BitNet; symmetric only). Raises UnsupportedError for anything else.
    """

    def __init__(self, bits=8, mode="symmetric", level="channel", calibration="min-max"):
        if bits not in (8, 4, 2):
            raise UnsupportedError("weights are quantized to 8, 4 or 2 bits, not to {!r}".format(bits))
        if mode not in MODES or calibration not in CALIBRATIONS:
            raise UnsupportedError(
                "a weight's mode is one of {}, its calibration one of {}; found {!r}, {!r}".format(
                    ", ".join(MODES), ", ".join(CALIBRATIONS), mode, calibration
                )
            )
        if mode == "affine" and calibration != "min-max":
            raise UnsupportedError("affine weights support only min-max calibration")
        if level not in ("tensor", "channel") and (
            not isinstance(level, int) or isinstance(level, bool) or level < 1 or level * bits % 8
        ):
            raise UnsupportedError(
                "level is 'tensor', 'channel', or a number of weights that fill whole bytes, found {!r}".format(level)
            )
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
        return "WeightScheme({}, {!r}, {!r}, {!r})".format(self.bits, self.mode, self.level, self.calibration)


def as_rows(weight, axis):
    """A weight whose channels are along `axis`, as (channels, the weights of each)."""
    n = weight.shape[axis]
    order = _order(weight.ndim, axis)
    return reshape(permute_dims(weight, order), (n, weight.size // max(n, 1)))


def from_rows(rows, shape, axis):
    """The weight of this shape from its `as_rows`."""
    order = _order(len(shape), axis)
    moved = reshape(rows, tuple([shape[i] for i in order]))
    return permute_dims(moved, [order.index(i) for i in range(len(shape))])


def _order(ndim, axis):
    return [axis] + [i for i in range(ndim) if i != axis]


def quantize_rows(x, scheme):
    """(levels, scales, zero points) of weights (channels, n), each channel in blocks of its own.

    levels: uint8 (channels, blocks, block size), where levels past the last weight encode 0; scales: float32 (channels,
    blocks); zero points: float32 of the same shape, or None if they are all 2 ** (bits - 1).
    """
    channels, n = x.shape
    size = scheme.block_size(n)
    count = (n + size - 1) // size
    x = x.astype(dtypes.float32)
    if count * size != n:
        x = x.backend.pad(x, ((0, 0), (0, count * size - n)), 0.0)
    x = reshape(x, (channels, count, size))
    axes = (0, 1, 2) if scheme.level == "tensor" else 2
    middle = 1 << (scheme.bits - 1)
    if scheme.mode == "affine":
        low = x.min(axis=axes, keepdims=True).minimum(0.0)
        high = x.max(axis=axes, keepdims=True).maximum(0.0)
        scale = _positive((high - low) / float(2 * middle - 1))
        zero = (-low / scale).round()
        levels = ((x / scale).round() + zero).clip(0, 2 * middle - 1)
        shape = x.shape[:2] + (1,)
        return levels.astype(dtypes.uint8), _all(scale, shape), _all(zero, shape)
    if scheme.calibration == "min-max":
        reach = x.abs().max(axis=axes, keepdims=True)
    else:
        reach = x.abs().sum(axis=axes, keepdims=True) / float(channels * n if scheme.level == "tensor" else size)
        if scheme.level != "tensor" and count * size != n:  # the last block is shorter
            short = n - (count - 1) * size
            counts = [float(size) / (size if i < count - 1 else short) for i in range(count)]
            reach = reach * x.backend.from_list(counts, dtypes.float32, (1, count, 1))
    scale = _positive(reach / float(middle - 1))
    levels = (x / scale).round().clip(1 - middle, middle - 1) + float(middle)
    return levels.astype(dtypes.uint8), _all(scale, x.shape[:2] + (1,)), None


def _positive(scale):
    """The scale, or 1 if it is 0 (a block of zeros)."""
    backend = scale.backend
    zero, one = [backend.full((), n, scale.dtype) for n in (0, 1)]
    return backend.where(backend.binary("eq", scale, zero), one, scale)


def _all(value, shape):
    """One scale per block, (columns, blocks)."""
    return reshape(value.backend.expand(value, shape), shape[:2])


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


def fake_quantize(weight, scheme, axis=1):
    """The weight after quantizing and dequantizing, float32. axis: that of its channels; 1 for (rows, columns)."""
    if weight.size == 0:
        return weight
    rows = as_rows(weight, axis)
    levels, scales, zero = quantize_rows(rows, scheme)
    real = dequantize_nbits(
        pack_levels(levels, scheme.bits), reshape(scales, (-1,)), None if zero is None else reshape(zero, (-1,)),
        rows=rows.shape[1], columns=rows.shape[0], bits=scheme.bits, block_size=scheme.block_size(rows.shape[1]),
    )  # fmt: skip
    return from_rows(real, weight.shape, axis)
