"""Resizing along axes by interpolation, in every mode of ONNX Resize.

All modes are separable: along one axis after the other, each output is a weighted sum of a few inputs. Their positions
and weights depend on the lengths alone and are computed as Python numbers.
"""

from math import floor

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...shapes import as_int, axis_of, size
from ..operands import alias, astype, floating, tensor
from ..overriding import composite
from .interpolation_weights import MOST_TAPS, coordinate, nearest, single, taps_around


def _axis_taps(n, out, scale, mode, coordinates, nearest_mode, a, exclude_outside, antialias, roi):
    """For each output: a list of (input index, weight), and whether it is outside the input (to be extrapolated)."""
    result, outside = [], []
    for i in range(out):
        x = coordinate(i, scale, n, out, coordinates, roi)
        outside.append(coordinates == "tf_crop_and_resize" and (x < 0 or x > n - 1))
        if mode == "nearest":
            result.append([(min(max(nearest(x, nearest_mode), 0), n - 1), 1.0)])
            continue
        taps = taps_around(x, scale, mode, a, antialias)
        if exclude_outside:
            taps = [(j, w if 0 <= j < n else 0.0) for j, w in taps]
            total = sum([w for _, w in taps])
            taps = [(j, w / total) for j, w in taps]
        result.append([(min(max(j, 0), n - 1), w) for j, w in taps])
    return result, outside


def _by_matrix(x, axis, taps):
    """`_along` as a product with a weight matrix."""
    from ..movement.rearranging import moveaxis

    backend = x.backend
    n, out = x.shape[axis], len(taps)
    matrix = [0.0] * (n * out)
    for i in range(out):
        for j, w in taps[i]:
            matrix[j * out + i] += w
    x = moveaxis(x, axis, -1)
    lead = x.shape[:-1]
    rows = backend.matmul(backend.reshape(x, (size(lead), n)), backend.from_list(matrix, x.dtype, (n, out)))
    return moveaxis(backend.reshape(rows, lead + (out,)), -1, axis)


def _along(x, axis, taps):
    """x with axis replaced by the weighted sums that `taps` describes."""
    backend = x.backend
    out = len(taps)
    if out and len(taps[0]) > MOST_TAPS:
        return _by_matrix(x, axis, taps)
    total = None
    for t in range(len(taps[0]) if taps else 0):
        weights = [p[t][1] for p in taps]
        if not any(weights):
            continue
        index = backend.from_list([p[t][0] for p in taps], dtypes.int64, (out,))
        part = backend.take(x, index, axis)
        if weights != [1.0] * out:
            shape = [1] * x.ndim
            shape[axis] = out
            part = backend.binary("mul", part, backend.from_list(weights, x.dtype, tuple(shape)))
        total = part if total is None else backend.binary("add", total, part)
    return total


#: function; ONNX Resize; scales: Sequence[float]; sizes: Sequence[int]; roi: Sequence[float]
@composite
def resize(
    x,
    scales=None,
    sizes=None,
    *,
    axes=None,
    mode="nearest",
    coordinates="half_pixel",
    nearest_mode="round_prefer_floor",
    cubic_coeff_a=-0.75,
    exclude_outside=False,
    antialias=False,
    roi=None,
    extrapolation_value=0.0,
    keep_aspect_ratio_policy="stretch",
):
    """x resized along `axes` (all unless given) by `scales`, or to `sizes` (ONNX Resize, version 19).

    mode: "nearest", "linear" or "cubic". coordinates: ONNX's coordinate_transformation_mode. roi: starts, then ends, as
    fractions of the axes, for "tf_crop_and_resize", in which positions outside x give extrapolation_value.
    keep_aspect_ratio_policy: "stretch", "not_larger" or "not_smaller" than sizes. antialias: when shrinking, "linear"
    and "cubic" use all inputs. exclude_outside: weights of positions outside x are dropped instead of going to the
    edge. Integer results are rounded. Raises ShapeError if scales or sizes do not match the axes.
    """
    x = tensor(x)
    if mode not in ("nearest", "linear", "cubic"):
        raise ArgumentError("resize mode is 'nearest', 'linear' or 'cubic', found {!r}".format(mode))
    if nearest_mode not in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        raise ArgumentError("unknown nearest_mode {!r} of resize".format(nearest_mode))
    if keep_aspect_ratio_policy not in ("stretch", "not_larger", "not_smaller"):
        raise ArgumentError("unknown keep_aspect_ratio_policy {!r} of resize".format(keep_aspect_ratio_policy))
    axes = list(range(x.ndim)) if axes is None else [axis_of(a, x.ndim) for a in axes]
    if coordinates == "tf_crop_and_resize" and (roi is None or len(roi) != 2 * len(axes)):
        raise ShapeError("resize by tf_crop_and_resize needs a roi of {} numbers, found {}".format(2 * len(axes), roi))
    lengths = [x.shape[a] for a in axes]
    if (scales is None) == (sizes is None):
        raise ArgumentError("resize needs either scales or sizes")
    if len(scales if sizes is None else sizes) != len(axes):
        raise ShapeError("resize got {} scales or sizes for {} axes".format(len(sizes or scales), len(axes)))
    if sizes is None:
        scales = [float(s) for s in scales]
        sizes = [n if s == 1 else _scaled(n, s, mode) for n, s in zip(lengths, scales)]
    else:
        sizes = [as_int(s) for s in sizes]
        if keep_aspect_ratio_policy != "stretch":
            choose = min if keep_aspect_ratio_policy == "not_larger" else max
            scale = choose(_ratios(sizes, lengths, mode))
            sizes = [floor(scale * n + 0.5) for n in lengths]
            scales = [scale] * len(axes)
        else:
            scales = _ratios(sizes, lengths, mode)
    return _resized(
        x,
        axes,
        sizes,
        scales,
        mode,
        coordinates,
        nearest_mode,
        cubic_coeff_a,
        exclude_outside,
        antialias,
        roi,
        extrapolation_value,
    )


def _scaled(n, scale, mode):
    """The length n times a scale, rounded down in float32."""
    if type(n) is int:
        return floor(single(n * scale))
    from .resizing_open import scaled

    return scaled(n, scale, mode)


def _ratio(out, n, mode):
    if type(out) is int and type(n) is int:
        return out / n
    from .resizing_open import scale_of

    return scale_of(n, out, mode)


def _ratios(sizes, lengths, mode):
    """The scales that turn `lengths` into `sizes`. Raises ShapeError for an empty axis that must get elements."""
    for s, n in zip(sizes, lengths):
        if n == 0 and s != 0:
            raise ShapeError("resize cannot make {} elements out of an empty axis, sizes {}".format(s, sizes))
    return [1.0 if s == n else _ratio(s, n, mode) for s, n in zip(sizes, lengths)]


def _resized(
    x,
    axes,
    sizes,
    scales=None,
    mode="nearest",
    coordinates="half_pixel",
    nearest_mode="round_prefer_floor",
    cubic_coeff_a=-0.75,
    exclude_outside=False,
    antialias=False,
    roi=None,
    extrapolation_value=0.0,
):
    """`resize` to given sizes; scales: the scales from which coordinates are computed."""
    if [s for s in sizes if s < 0 or s > 1 << 24]:
        raise ShapeError("resize: sizes lie between 0 and {}, found {}".format(1 << 24, sizes))
    lengths = [x.shape[a] for a in axes]
    scales = scales or _ratios(sizes, lengths, mode)
    dtype = x.dtype
    x = alias(x) if mode == "nearest" else alias(floating(x))
    backend = x.backend
    cut = None
    for i in range(len(axes)):
        n, out, axis = lengths[i], sizes[i], axes[i]
        if scales[i] == 1 and out == n and coordinates != "tf_crop_and_resize":
            continue
        if type(n) is not int or type(out) is not int:
            from .resizing_open import along

            options = (mode, coordinates, nearest_mode, cubic_coeff_a, exclude_outside, antialias)
            x = along(x, axis, out, scales[i], *options)
            continue
        region = (float(roi[i]), float(roi[i + len(axes)])) if coordinates == "tf_crop_and_resize" else None
        taps, outside = _axis_taps(
            n, out, scales[i], mode, coordinates, nearest_mode, cubic_coeff_a, exclude_outside, antialias, region
        )
        if not taps:
            return backend.full(
                tuple([sizes[axes.index(d)] if d in axes else x.shape[d] for d in range(x.ndim)]), 0, dtype
            )
        x = _along(x, axis, taps)
        if any(outside):
            shape = [1] * x.ndim
            shape[axis] = out
            flags = backend.from_list(outside, dtypes.bool, tuple(shape))
            cut = flags if cut is None else backend.binary("logical_or", cut, flags)
    if cut is not None:
        x = backend.where(cut, backend.full((), extrapolation_value, x.dtype), x)
    # Integers are rounded, not truncated.
    return astype(x if dtype.is_float or mode == "nearest" else backend.unary("round", x), dtype)


#: function; PyTorch interpolate; scale_factor: float | Sequence[float]
@composite
def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False):
    """x (n, c, *spatial) resized over its spatial axes to `size` or by `scale_factor`, as in PyTorch.

    mode: "nearest", "linear" or "cubic" ("bilinear", "trilinear" and "bicubic" mean the same), "nearest-exact", which
    reads input floor((i + 1/2) / scale), or "area", the mean of the inputs that an output covers. A scaled length is
    truncated to a whole number first; with align_corners the corners of the result match the input's. (ONNX Resize
    keeps the fraction: see `resize`.) "nearest" reads input floor(i / scale); if a scale such as 1.3 leaves the length
    unchanged, PyTorch does this or copies, depending on the image's size.
    """
    spatial = len(x.shape) - 2
    axes = list(range(2, spatial + 2))
    mode = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("nearest", "linear", "cubic", "nearest-exact", "area"):
        raise ArgumentError(
            "interpolate mode is 'nearest', 'linear', 'cubic', 'nearest-exact' or 'area', found {!r}".format(mode)
        )
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate needs either size or scale_factor")
    if isinstance(size, int):
        size = [size] * spatial
    if isinstance(scale_factor, (int, float)):
        scale_factor = [scale_factor] * spatial
    if len(size or scale_factor) != spatial:
        raise ShapeError("interpolate got {} sizes or scales for {} axes".format(len(size or scale_factor), spatial))
    scales = None
    if size is None:
        size = [floor(n * s) if type(n) is int else _scaled(n, s, mode) for n, s in zip(x.shape[2:], scale_factor)]
        if not align_corners or mode[:7] == "nearest":
            # PyTorch's linear modes leave an axis as it is where the length stays, whatever its scale.
            kept = [mode == "linear" and m == n for m, n in zip(size, x.shape[2:])]
            scales = [1.0 if k else float(s) for k, s in zip(kept, scale_factor)]
    if mode == "area":
        from .pooling import adaptive_avg_pool

        return adaptive_avg_pool(x, [as_int(n) for n in size])
    if mode == "nearest-exact":
        return _resized(
            tensor(x), axes, [as_int(n) for n in size], scales, mode="nearest", coordinates="half_pixel",
            nearest_mode="round_prefer_ceil",
        )  # fmt: skip
    coordinates = "asymmetric" if mode == "nearest" else "align_corners" if align_corners else "half_pixel"
    return _resized(
        tensor(x), axes, [as_int(n) for n in size], scales, mode=mode, coordinates=coordinates, nearest_mode="floor"
    )
