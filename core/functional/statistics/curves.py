"""Averages with weights, and values as points of a curve: slopes, areas, interpolation, polynomials."""

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...shapes import axes_of, axis_of
from ..elementwise.comparison import where
from ..movement.joining import concat
from ..movement.rearranging import moveaxis, narrow
from ..operands import astype, floating, like, numeric, tensor
from ..overriding import composite
from ..promotion import widened
from ..reductions.over_axes import max, mean, min, sum
from ..reductions.sorting import searchsorted
from ..reshaping import reshape


#: method; NumPy average; weights: TensorLike
@composite
def average(x, axis=None, weights=None, *, keepdims=False):
    """The mean over axis, with `weights` the sum of x * weights divided by that of the weights. weights: of x's shape,
    or, for one axis, of its length."""
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    x, dtype = widened(x)
    weights = like(weights, x)
    if weights.shape != x.shape:
        if weights.ndim != 1 or not isinstance(axis, int) or weights.shape[0] != x.shape[axis_of(axis, x.ndim)]:
            raise ShapeError("average: weights {} do not fit axis {} of {}".format(weights.shape, axis, x.shape))
        rest = x.ndim - 1 - axis_of(axis, x.ndim)
        weights = x.backend.expand(reshape(weights, weights.shape + (1,) * rest), x.shape)
    total = sum(x.backend.binary("mul", x, weights), axis, keepdims=keepdims)
    return astype(x.backend.binary("div", total, sum(weights, axis, keepdims=keepdims)), dtype)


#: method; NumPy ptp
@composite
def ptp(x, axis=None, *, keepdims=False):
    """The largest element over axis minus the smallest (peak to peak)."""
    x = numeric(x, "ptp")
    return x.backend.binary("sub", max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def _slope(x, spacing, axis):
    n = x.shape[axis]
    if n < 2:
        raise ShapeError("gradient needs 2 elements along axis {}, found shape {}".format(axis, x.shape))

    def part(start, length):
        return narrow(x, axis, start, length)

    inner = (part(2, n - 2) - part(0, n - 2)) / (2 * spacing) if n > 2 else None
    first, last = (part(1, 1) - part(0, 1)) / spacing, (part(n - 1, 1) - part(n - 2, 1)) / spacing
    return concat([first, last] if inner is None else [first, inner, last], axis)


#: function; NumPy gradient; spacing: float -> Tensor | list[Tensor]
@composite
def gradient(x, spacing=1.0, axis=None):
    """The slope along each axis (a list), or along `axis`: half the difference of the neighbors, at the ends the
    difference of two elements, divided by `spacing`. Raises ShapeError for an axis of fewer than 2 elements."""
    x, dtype = widened(x)
    found = [astype(_slope(x, spacing, a), dtype) for a in axes_of(axis, x.ndim)]
    return found[0] if len(found) == 1 else found


#: function; NumPy trapezoid; y: TensorLike; dx: float
@composite
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The area under y along axis by the trapezoidal rule. x: the positions (n,), or of y's shape; dx: their distance
    where x is None."""
    y, dtype = widened(y)
    axis = axis_of(axis, y.ndim)
    y = moveaxis(y, axis, -1)
    n = y.shape[-1]
    middle = (narrow(y, -1, 1, n - 1) + narrow(y, -1, 0, n - 1)) / 2 if n else y
    if x is None:
        return astype(sum(middle, -1) * dx, dtype)
    x = like(x, y)
    x = moveaxis(x, axis, -1) if x.ndim > 1 else x
    return astype(sum(middle * (narrow(x, -1, 1, n - 1) - narrow(x, -1, 0, n - 1)), -1), dtype)


#: function; NumPy digitize; bins: TensorLike
@composite
def digitize(x, bins, right=False):
    """int64: the number of the interval that each element lies in, 0 below the first of the edges `bins` (n,), n
    above the last. right: whether an interval has its upper edge instead of its lower one."""
    x = floating(x)
    return searchsorted(like(bins, x), x, side="left" if right else "right")


#: function; NumPy interp; xp: TensorLike; fp: TensorLike; left: float; right: float
@composite
def interp(x, xp, fp, left=None, right=None):
    """The broken line through the points (xp, fp) at x. xp: in increasing order, (n,); fp: (n,). left, right: the value
    below and above the points, by default that of the first and the last. Raises ShapeError."""
    x, dtype = widened(x)
    xp, fp = like(xp, x), like(fp, x)
    n = xp.size
    if xp.ndim != 1 or fp.shape != xp.shape or not n:
        raise ShapeError("interp needs points (n,) and (n,), found {} and {}".format(xp.shape, fp.shape))
    backend = x.backend
    above = searchsorted(xp, x, side="right").clip(1, n - 1 if n > 1 else 1)
    high = above.clip(None, n - 1)
    low = above - 1
    x0, x1, y0, y1 = [backend.take(p, i, 0) for p, i in ((xp, low), (xp, high), (fp, low), (fp, high))]
    same = x1 == x0
    share = (x - x0) / where(same, 1.0, x1 - x0)
    out = where(same, y1, y0 + share * (y1 - y0))
    out = where(x < xp[0], fp[0] if left is None else left, out)
    out = where(x > xp[n - 1], fp[n - 1] if right is None else right, out)
    return astype(where(backend.unary("isnan", x), x, out), dtype)


#: function; NumPy polyval; p: TensorLike
@composite
def polyval(p, x):
    """The polynomial with the coefficients p (n,), that of the highest power first, at x."""
    x = floating(x)
    out = x * 0
    p = tensor(p, x.backend) if not isinstance(p, (list, tuple)) else p
    if hasattr(p, "ndim") and p.ndim != 1:
        raise ShapeError("polyval needs coefficients (n,), found shape {}".format(p.shape))
    for c in p:
        out = out * x + c
    return out


#: function; NumPy convolve; mode: str
@composite
def convolve(x1, x2, mode="full"):
    """The discrete convolution of two 1-D tensors. mode: "full", n + m - 1 elements; "same", as many as the longer has;
    "valid", where they overlap completely. Raises ShapeError, ArgumentError for another mode."""
    from ..convolution import conv
    from ..promotion import together

    a, b = tensor(x1), tensor(x2, getattr(x1, "backend", None))
    if a.ndim != 1 or b.ndim != 1 or not a.size or not b.size:
        raise ShapeError("convolve takes two 1-D tensors with elements, found {} and {}".format(a.shape, b.shape))
    a, b = (a, b) if a.size >= b.size else (b, a)
    n, m = a.size, b.size
    pads = {"full": (m - 1, m - 1), "same": (m - 1 - (m - 1) // 2, (m - 1) // 2), "valid": (0, 0)}
    if mode not in pads:
        raise ArgumentError("convolve: mode is 'full', 'same' or 'valid', found {!r}".format(mode))
    if not a.dtype.is_float and not b.dtype.is_float:
        return _whole_convolution(a, b, pads[mode])
    a, b = together(reshape(a, (1, 1, n)), reshape(b.flip(0), (1, 1, m)))
    out = conv(a, b, padding=(pads[mode],))
    return reshape(out, (out.size,))


def _whole_convolution(a, b, padding):
    """The convolution of integers or bools, in integers: floats would lose digits. b: the shorter one."""
    dtype = dtypes.promote(a.dtype, b.dtype)
    wide = dtypes.int64 if dtype.is_bool else dtype
    a, b = a.backend.pad(astype(a, wide), (padding,), 0), astype(b, wide)
    length, m = a.size - b.size + 1, b.size
    out = narrow(a, 0, m - 1, length) * narrow(b, 0, 0, 1)
    for i in range(1, m):
        out = out + narrow(a, 0, m - 1 - i, length) * narrow(b, 0, i, 1)
    return astype(out, dtype)
