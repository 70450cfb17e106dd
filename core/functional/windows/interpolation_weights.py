"""The inputs of an interpolated element along one axis, and their weights: Python numbers."""

from array import array
from math import ceil, floor

from ...errors import ArgumentError

# Above this many inputs per output a product with a weight matrix is faster than adding them one by one.
MOST_TAPS = 8


def single(x):
    """x rounded to float32, the precision of ONNX's scales: in float32, 0.7 * 10 is 7."""
    return array("f", (x,))[0]


def coordinate(i, scale, n, out, mode, roi):
    """The coordinate of output i of `out` among the n inputs."""
    if mode == "half_pixel":
        return single((i + 0.5) / scale) - 0.5
    if mode == "half_pixel_symmetric":
        # Centered, even if out is not exactly scale * n.
        adjustment = out / (scale * n)
        return n / 2 * (1 - adjustment) + (i + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return single((i + 0.5) / scale) - 0.5 if out > 1 else 0.0
    if mode == "align_corners":
        # As in ONNX's test cases, with the scaled length before it is truncated to a whole number.
        return single(i * (n - 1) / (scale * n - 1)) if i else 0.0
    if mode == "asymmetric":
        return single(i / scale)
    if mode == "tf_crop_and_resize":
        start, end = roi
        return start * (n - 1) + i * (end - start) * (n - 1) / (out - 1) if out > 1 else 0.5 * (start + end) * (n - 1)
    raise ArgumentError("unknown coordinate transformation {!r}".format(mode))


def nearest(x, mode):
    if mode == "round_prefer_floor":
        return ceil(x - 0.5)
    if mode == "round_prefer_ceil":
        return floor(x + 0.5)
    return floor(x) if mode == "floor" else ceil(x)


def _triangle(x, a):
    return max(0.0, 1 - abs(x))


def _cubic(x, a):
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def taps_around(x, scale, mode, a, antialias):
    """[(index, weight), …] of the inputs around coordinate x."""
    kernel, reach = (_triangle, 1) if mode == "linear" else (_cubic, 2)
    base = ceil(x) - 1
    ratio = x - base
    # Shrinking with antialias widens the kernel by the same factor.
    narrowing = min(scale, 1.0) if antialias else 1.0
    first = floor(-reach / narrowing) + 1
    taps = [(base + i, kernel((i - ratio) * narrowing, a)) for i in range(first, 2 - first)]
    if antialias:
        total = sum([w for _, w in taps])
        taps = [(i, w / total) for i, w in taps]
    return taps
