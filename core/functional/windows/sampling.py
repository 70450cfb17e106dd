"""Sampling images between their pixels: grid_sample, affine_grid, roi_align, max_roi_pool, deform_conv.

All of them use `_weighted_pixels`: every point has a few taps (pixel index, weight) along each axis, and the result is
the sum over all combinations of taps. Semantics: ONNX GridSample, AffineGrid, RoiAlign, MaxRoiPool, DeformConv.
"""

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...shapes import size, strides
from ..indexing.picking import check_bounds
from ..operands import floating, like
from ..overriding import composite
from .steps import steps as at_least_one


def _reflected(position, low, high):
    """position reflected into [low, high]."""
    span = high - low
    if span <= 0:
        return position * 0 + low
    folded = (position - low).abs().fmod(2 * span)
    return folded.mask_where(folded > span, 2 * span - folded) + low


def _pixel(index, length, padding_mode, low, high):
    """(valid pixel index, weight 0 or 1 or None) for a whole-numbered float tensor `index` that may lie outside."""
    if padding_mode == "zeros":
        inside = (index >= 0).logical_and(index <= length - 1)
        return index.clip(0, length - 1), inside.astype(index.dtype)
    if padding_mode == "reflection":
        index = _reflected(index, low, high)
    return index.clip(0, length - 1), None


def _nearest(position):
    return [(position, None)]


def _linear(position):
    base = position.floor()
    t = position - base
    return [(base, 1 - t), (base + 1, t)]


def _cubic(position):
    # Keys' convolution with a = -0.75, as in ONNX and PyTorch.
    base = position.floor()
    t = position - base
    a = -0.75
    far, near = t + 1, 1 - t
    last = 2 - t
    return [
        (base - 1, ((a * far - 5 * a) * far + 8 * a) * far - 4 * a),
        (base, ((a + 2) * t - (a + 3)) * t * t + 1),
        (base + 1, ((a + 2) * near - (a + 3)) * near * near + 1),
        (base + 2, ((a * last - 5 * a) * last + 8 * a) * last - 4 * a),
    ]


_TAPS = {"nearest": _nearest, "linear": _linear, "bilinear": _linear, "cubic": _cubic, "bicubic": _cubic}


def _weighted_pixels(flat, lengths, taps):
    """Sum over all combinations of taps of weight × pixel.

    flat (*lead, pixels): images with their spatial axes flattened; taps: per spatial axis a list of (float index inside
    the image, weight or None), all of shape (*lead or ones, points). Returns (*lead, points).
    """
    steps = strides(lengths)
    total = None
    combinations = [(None, None)]
    for axis in range(len(lengths)):
        grown = []
        for index, weight in combinations:
            for tap_index, tap_weight in taps[axis]:
                i = tap_index * steps[axis] if steps[axis] != 1 else tap_index
                w = tap_weight
                grown.append(
                    (i if index is None else index + i, w if weight is None else weight if w is None else weight * w)
                )
        combinations = grown
    points = combinations[0][0].shape[-1]
    shape = flat.shape[:-1] + (points,)
    for index, weight in combinations:
        where = index.round().astype(dtypes.int32).broadcast_to(shape)
        pixel = flat.backend.gather(flat, where, len(shape) - 1)
        if weight is not None:
            pixel = pixel * weight.astype(flat.dtype)
        total = pixel if total is None else total + pixel
    return total


#: function; ONNX GridSample; PyTorch grid_sample
@composite
def grid_sample(x, grid, mode="linear", padding_mode="zeros", align_corners=False):
    """x (n, c, *spatial) read at grid (n, *out, d), coordinates in [-1, 1], last spatial axis first -> (n, c, *out).

    mode "nearest", "linear" or "cubic"; padding_mode "zeros", "border" or "reflection"; align_corners: -1 and 1 are the
    centers of the corner pixels rather than their edges. Raises ShapeError if the grid does not match x.
    """
    x = floating(x)
    grid = like(grid, x) if x.dtype.bits > 32 else floating(grid)
    d = x.ndim - 2
    if d < 1 or grid.ndim != x.ndim or grid.shape[-1] != d or grid.shape[0] != x.shape[0] or 0 in x.shape[2:]:
        raise ShapeError("grid_sample: grid {} does not fit input {}".format(grid.shape, x.shape))
    if mode not in _TAPS:
        raise ShapeError("grid_sample: mode is 'nearest', 'linear' or 'cubic', found {!r}".format(mode))
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ShapeError(
            "grid_sample: padding_mode is 'zeros', 'border' or 'reflection', found {!r}".format(padding_mode)
        )
    n, c, lengths, out = x.shape[0], x.shape[1], x.shape[2:], grid.shape[1:-1]
    points = size(out)
    grid = grid.reshape((n, 1, points, d))
    taps = []
    for axis in range(d):
        length = lengths[axis]
        low, high = (0, length - 1) if align_corners else (-0.5, length - 0.5)
        g = grid.narrow(3, d - 1 - axis, 1).reshape((n, 1, points))
        position = (g + 1) * (0.5 * (length - 1)) if align_corners else ((g + 1) * length - 1) * 0.5
        if _TAPS[mode] is _nearest:
            position = position.round()
        if padding_mode == "border" and _TAPS[mode] is not _cubic:  # each tap is clamped to the border
            position = position.clip(0, length - 1)
        elif padding_mode == "reflection":
            position = _reflected(position, low, high)
            if _TAPS[mode] is _nearest:
                position = position.trunc()
        along = []
        for index, weight in _TAPS[mode](position):
            index, inside = _pixel(index, length, padding_mode, low, high)
            if inside is not None:
                weight = inside if weight is None else weight * inside
            along.append((index, weight))
        taps.append(along)
    return _weighted_pixels(x.reshape((n, c, size(lengths))), lengths, taps).reshape((n, c) + out)


#: function; ONNX AffineGrid; PyTorch affine_grid; shape: Sequence[int]
@composite
def affine_grid(theta, shape, align_corners=False):
    """Sampling grid (n, *spatial, d) for theta (n, d, d + 1) and an output of `shape` (n, c, *spatial)."""
    from ..creation.fills import linspace, meshgrid, ones
    from ..movement.joining import stack

    theta = floating(theta)
    spatial = [int(s) for s in shape[2:]]
    d = len(spatial)
    if d < 1 or theta.ndim != 3 or theta.shape[1:] != (d, d + 1) or min(spatial) < 1:
        raise ShapeError("affine_grid: theta {} does not fit an output of shape {}".format(theta.shape, tuple(shape)))
    axes = []
    for length in spatial:
        edge = 1.0 if align_corners else 1 - 1 / length
        axes.append(linspace(-edge, edge, length, dtype=theta.dtype, backend=theta.backend))
    planes = list(meshgrid(*axes, indexing="ij")) if d > 1 else axes
    planes.reverse()  # the last spatial axis is x, which comes first
    points = stack(
        [p.reshape((-1,)) for p in planes] + [ones((size(spatial),), dtype=theta.dtype, backend=theta.backend)]
    )
    return (theta @ points).matrix_transpose().reshape((theta.shape[0],) + tuple(spatial) + (d,))


def _roi_taps(start, extent, bins, samples, length):
    """Bilinear taps along one axis of a region, `samples` per bin; positions over one pixel outside weigh 0."""
    # start, extent: (rois, 1); positions: (rois, bins * samples)
    from ..creation.fills import arange

    backend = start.backend
    at = arange(0, bins * samples, dtype=start.dtype, backend=backend).reshape((1, bins * samples))
    bin_at = (at / samples).floor()
    within = at - bin_at * samples
    step = extent / bins
    position = start + bin_at * step + (within + 0.5) * step / samples
    inside = (position >= -1).logical_and(position <= length).astype(start.dtype)
    position = position.clip(0, length - 1)
    base = position.floor()
    t = position - base
    return [(base, (1 - t) * inside), ((base + 1).clip(0, length - 1), t * inside)]


#: function; ONNX RoiAlign
@composite
def roi_align(
    x, rois, batch_indices, output_size=(1, 1), spatial_scale=1.0, sampling_ratio=0, mode="avg", half_pixel=True
):
    """x (n, c, h, w), rois (r, 4) as x1, y1, x2, y2, batch_indices (r,) -> (r, c, *output_size).

    sampling_ratio 0 takes ceil(region / output) samples per bin, and reads the regions' values for it. mode "max" takes
    the largest weighted corner, as ONNX defines it, rather than the largest interpolated value.
    """
    x = floating(x)
    rois = like(rois, x)
    output_size = _bins(output_size)
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or 0 in x.shape[2:]:
        raise ShapeError("roi_align needs x (n, c, h, w) and rois (r, 4), found {} and {}".format(x.shape, rois.shape))
    if mode not in ("avg", "max"):
        raise ArgumentError("roi_align: mode is 'avg' or 'max', found {!r}".format(mode))
    count = rois.shape[0]
    if not count:
        return x.backend.full((0, x.shape[1]) + tuple(output_size), 0, x.dtype)
    if sampling_ratio > 0:
        samples = [(int(sampling_ratio), int(sampling_ratio))] * count
    else:
        samples = _adaptive_samples(rois.tolist(), output_size, spatial_scale, half_pixel)
    if all(s == samples[0] for s in samples):
        return _roi_align(x, rois, batch_indices, output_size, spatial_scale, samples[0], mode, half_pixel)
    from ..movement.joining import concat

    return concat(
        [
            _roi_align(
                x,
                rois.narrow(0, i, 1),
                batch_indices.narrow(0, i, 1),
                output_size,
                spatial_scale,
                samples[i],
                mode,
                half_pixel,
            )
            for i in range(count)
        ]
    )


def _adaptive_samples(rois, output_size, spatial_scale, half_pixel):
    import math

    out = []
    for x1, y1, x2, y2 in rois:
        width, height = (x2 - x1) * spatial_scale, (y2 - y1) * spatial_scale
        if not half_pixel:
            width, height = max(width, 1.0), max(height, 1.0)
        out.append((max(1, math.ceil(height / output_size[0])), max(1, math.ceil(width / output_size[1]))))
    return out


def _roi_align(x, rois, batch_indices, output_size, spatial_scale, samples, mode, half_pixel):
    _, c, height, width = x.shape
    count = rois.shape[0]
    offset = 0.5 if half_pixel else 0.0
    corner = [rois.narrow(1, i, 1) * spatial_scale - offset for i in range(4)]
    extent_x, extent_y = corner[2] - corner[0], corner[3] - corner[1]
    if not half_pixel:
        extent_x, extent_y = extent_x.clip(1), extent_y.clip(1)
    rows = _roi_taps(corner[1], extent_y, output_size[0], samples[0], height)
    columns = _roi_taps(corner[0], extent_x, output_size[1], samples[1], width)
    h, w = output_size[0] * samples[0], output_size[1] * samples[1]
    batch_indices, _ = check_bounds(batch_indices, x.shape[0], 0)
    images = x.backend.take(x, batch_indices.reshape((count,)), 0).reshape((count, c, height * width))
    best = None
    for row, row_weight in rows:
        for column, column_weight in columns:
            index = row.reshape((count, 1, h, 1)) * width + column.reshape((count, 1, 1, w))
            weight = row_weight.reshape((count, 1, h, 1)) * column_weight.reshape((count, 1, 1, w))
            where = index.reshape((count, 1, h * w)).astype(dtypes.int32).broadcast_to((count, c, h * w))
            value = x.backend.gather(images, where, 2) * weight.reshape((count, 1, h * w))
            best = value if best is None else best.maximum(value) if mode == "max" else best + value
    best = best.reshape((count, c, output_size[0], samples[0], output_size[1], samples[1]))
    return best.max(axis=(3, 5)) if mode == "max" else best.mean(axis=(3, 5))


#: function; ONNX MaxRoiPool
@composite
def max_roi_pool(x, rois, output_size, spatial_scale=1.0):
    """x (n, c, h, w), rois (r, 5) as batch index, x1, y1, x2, y2 -> largest element per bin (r, c, *output_size).

    Regions are rounded to pixels; an empty bin gives 0. Reads the regions' values.
    """
    import math

    from ..movement.joining import concat, stack

    x = floating(x)
    output_size = _bins(output_size)
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
        raise ShapeError(
            "max_roi_pool needs x (n, c, h, w) and rois (r, 5), found {} and {}".format(x.shape, rois.shape)
        )
    height, width = x.shape[2:]
    pooled = []
    for batch, x1, y1, x2, y2 in rois.tolist():
        left, top = _half_away(x1 * spatial_scale), _half_away(y1 * spatial_scale)
        right, bottom = _half_away(x2 * spatial_scale), _half_away(y2 * spatial_scale)
        step_y = max(bottom - top + 1, 1) / output_size[0]
        step_x = max(right - left + 1, 1) / output_size[1]
        image = x.narrow(0, int(batch), 1)
        rows = []
        for i in range(output_size[0]):
            y0 = min(max(math.floor(i * step_y) + top, 0), height)
            y9 = min(max(math.ceil((i + 1) * step_y) + top, 0), height)
            row = []
            for j in range(output_size[1]):
                x0 = min(max(math.floor(j * step_x) + left, 0), width)
                x9 = min(max(math.ceil((j + 1) * step_x) + left, 0), width)
                if y9 > y0 and x9 > x0:
                    row.append(image.narrow(2, y0, y9 - y0).narrow(3, x0, x9 - x0).max(axis=(2, 3)))
                else:
                    row.append(x.backend.full((1, x.shape[1]), 0, x.dtype))
            rows.append(stack(row, axis=2))
        pooled.append(stack(rows, axis=2))
    if not pooled:
        return x.backend.full((0, x.shape[1]) + tuple(output_size), 0, x.dtype)
    return concat(pooled)


def _bins(output_size):
    """The numbers of bins, rows and columns. Raises ShapeError unless there are two, of 1 or more."""
    bins = tuple(output_size)
    if len(bins) != 2 or min(bins) < 1:
        raise ShapeError("output_size is (rows, columns), 1 or more each, found {}".format(bins))
    return bins


def _half_away(value):
    return int(value + 0.5) if value >= 0 else -int(0.5 - value)


#: function; ONNX DeformConv
@composite
def deform_conv(x, weight, offset, bias=None, mask=None, stride=1, padding=0, dilation=1, groups=1, offset_groups=1):
    """Deformable convolution v2 (Zhu et al. 2018): every kernel tap has its own offset and mask.

    x (n, c, h, w), weight (m, c // groups, kh, kw), offset (n, offset_groups * kh * kw * 2, oh, ow) with y before x,
    mask (n, offset_groups * kh * kw, oh, ow) -> (n, m, oh, ow). Raises ShapeError if the shapes do not fit.
    """
    from ..convolution import padding_pairs
    from ..creation.fills import arange

    x = floating(x)
    weight, offset = like(weight, x), like(offset, x)
    fits = x.ndim == weight.ndim == offset.ndim == 4 and groups > 0 and offset_groups > 0
    if fits:
        n, c, height, width = x.shape
        m, _, kh, kw = weight.shape
        oh, ow = offset.shape[2:]
        taps, points = kh * kw, oh * ow
        fits = c == weight.shape[1] * groups and not m % groups and not c % offset_groups and height and width
    if not fits or offset.shape[1] != offset_groups * taps * 2:
        raise ShapeError(
            "deform_conv: input {}, weight {}, offset {}, {} groups and {} offset groups do not fit".format(
                x.shape, weight.shape, offset.shape, groups, offset_groups
            )
        )
    stride, dilation = at_least_one(stride, 2, "stride"), at_least_one(dilation, 2, "dilation")
    padding = padding_pairs(padding, 2, (kh, kw), dilation, stride, x)
    backend = x.backend

    def line(count, step, start):
        return arange(0, count, dtype=x.dtype, backend=backend) * step + start

    tap_y = line(kh, dilation[0], 0).reshape((kh, 1, 1, 1)) + line(oh, stride[0], -padding[0][0]).reshape((1, 1, oh, 1))
    tap_x = line(kw, dilation[1], 0).reshape((1, kw, 1, 1)) + line(ow, stride[1], -padding[1][0]).reshape((1, 1, 1, ow))
    offset = offset.reshape((n, offset_groups, taps, 2, points))
    axes = []
    for axis, base, length in ((0, tap_y, height), (1, tap_x, width)):
        base = base.broadcast_to((kh, kw, oh, ow)).reshape((1, 1, taps, points))
        moved = offset.narrow(3, axis, 1).reshape((n, offset_groups, taps, points)) + base
        moved = moved.reshape((n, offset_groups, 1, taps * points))
        along = []
        for index, tap_weight in _linear(moved):
            index, inside = _pixel(index, length, "zeros", 0, 0)
            along.append((index, tap_weight * inside))
        axes.append(along)
    flat = x.reshape((n, offset_groups, c // offset_groups, height * width))
    columns = _weighted_pixels(flat, (height, width), axes)
    if mask is not None:
        columns = columns * like(mask, x).reshape((n, offset_groups, 1, taps * points))
    columns = columns.reshape((n, groups, c // groups * taps, points))
    out = weight.reshape((1, groups, m // groups, c // groups * taps)) @ columns
    out = out.reshape((n, m, oh, ow))
    return out if bias is None else out + like(bias, x).reshape((1, m, 1, 1))
