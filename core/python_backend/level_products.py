"""Products and convolutions of levels: by exact sums of integers (integer_sums.py), times the scales. CPython only."""

from array import array

from .. import dtypes
from ..shapes import size, window
from .buffers import Borrowed, build, listed
from .integer_sums import FEWEST, MOST, correlations, lists_of, products, rows_of
from .level_buffers import grid, levels_of, weights
from .taps import geometry, seen_by_taps


def _operands(x, weight, axis, terms):
    """(the Grid of x, the levels of the weight, its Weights); None where these are not levels of such scales, or 32
    bits do not hold the sums. axis: of the weight's channels."""
    if not (isinstance(x.data[0], Borrowed) and isinstance(weight.data[0], Borrowed)) or not 0 < terms <= MOST:
        return None
    left, right = levels_of(x), levels_of(weight)
    if left is None or right is None or not x.size or right.x.shape != weight.shape:
        return None
    of_x, of_weight = grid(left), weights(right, axis)
    return None if of_x is None or of_weight is None else (of_x, right.x, of_weight)


def dense(backend, x, weight, bias):
    """x (…, k) @ weight (k, n), plus the bias or None, of levels; None for others."""
    k, n = weight.shape
    axis = 1
    if weight.data[2] == (1, k):  # of a weight (n, k)
        axis, weight = 0, backend.new(weight.data[0], weight.dtype, (n, k))
    found = _operands(x, weight, axis, k) if n >= FEWEST else None
    if found is None:
        return None
    of_x, levels, of_weight = found
    parts = [of_x.codes[i : i + k] for i in range(0, x.size, k)]
    sums = products(parts, of_x.zero, rows_of(of_weight, levels, axis, k), n)
    if x.dtype is dtypes.int32:
        out = array("i")
        for row in sums:
            out += row
    else:
        scales = [of_x.scale * s for s in of_weight.scales]
        shifts = [0.0] * n if bias is None else listed(bias)
        out = build(x.dtype, [t * s + b for row in sums for t, s, b in zip(row, scales, shifts)], len(sums) * n)
    return backend.new(out, x.dtype, x.shape[:-1] + (n,))


def conv(backend, x, weight, bias, stride, padding, dilation, groups):
    """`conv` of levels; None for others."""
    terms, outputs = size(weight.shape[1:]), weight.shape[0]
    found = _operands(x, weight, 0, terms)
    if found is None:
        return None
    of_x, _, of_weight = found
    n = len(weight.shape) - 2
    kernel = weight.shape[2:]
    spatial = tuple([window(x.shape[i + 2], kernel[i], stride[i], padding[i], dilation[i]) for i in range(n)])
    positions = size(spatial)
    if max(positions, outputs // groups) < FEWEST:
        return None
    out = array("i") if x.dtype is dtypes.int32 else []
    shifts = [0.0] * outputs if bias is None else listed(bias)
    at = 0
    for sums in _by_group(backend, x.shape, found, (spatial, stride, padding, dilation, groups)):
        for row in sums:
            if x.dtype is dtypes.int32:
                out.extend(row)
            else:
                scale, shift = of_x.scale * of_weight.scales[at % outputs], shifts[at % outputs]
                out += [t * scale + shift for t in row]
            at += 1
    buffer = out if x.dtype is dtypes.int32 else build(x.dtype, out, len(out))
    return backend.new(buffer, x.dtype, x.shape[:1] + (outputs,) + spatial)


def _by_group(backend, given, operands, how):
    """The sums of each image and group: a sequence of all positions for each of its channels. given: the images'
    shape."""
    spatial, stride, padding, dilation, groups = how
    of_x, levels, of_weight = operands
    shape = levels.shape
    terms, each, positions = size(shape[1:]), shape[0] // groups, size(spatial)
    codes = backend.new(array("B", of_x.codes), dtypes.uint8, given)
    if [1 for low, high in padding if low or high]:
        codes = backend.pad(codes, ((0, 0), (0, 0)) + tuple(padding), of_x.zero)
    sizes = codes.shape[2:]
    area, values = size(sizes), codes.data[0]
    view = geometry(sizes, shape[2:], stride, dilation, spatial)
    by_position = groups == 1 and positions < FEWEST
    taken = rows_of(of_weight, levels, 0, terms) if by_position else lists_of(of_weight, levels, terms)
    for plane in range(0, given[0] * given[1], shape[1]):
        seen = []
        for c in range(plane, plane + shape[1]):
            seen += seen_by_taps(values, c * area, view)
        if by_position:
            yield zip(*products(zip(*seen), of_x.zero, taken, each))
        else:
            first = plane // shape[1] % groups * each
            yield correlations(seen, of_x.zero, positions, taken[first : first + each])
