"""Resizing an axis whose length a plan leaves open, by a scale of whole numbers.

The weights then repeat: outputs up * q + r read around input down * q, at the same distances and with the same weights
for every q. Both are computed as Python numbers, and positions as integers, so results equal those for one length bit
for bit.
"""

from ... import dtypes
from .interpolation_weights import MOST_TAPS, coordinate, nearest, taps_around

_LARGEST = 1 << 18  # outputs up to which every coordinate is exact in float32, or far enough from the next input


def ratio(scale, mode):
    """(up, down), of which one is 1, for a scale that is up / down; None for scales that do not repeat exactly. Sums of
    several inputs need powers of 2, whose coordinates are exact."""
    if not 1 / 16 <= scale <= 16:
        return None
    up, down = (int(scale), 1) if scale >= 1 else (1, int(1 / scale))
    if up / down != scale:
        return None
    return None if (mode != "nearest" or down > 1) and (up * down) & (up * down - 1) else (up, down)


def scaled(n, scale, mode):
    """The open length n times a scale, rounded down."""
    found = ratio(scale, mode)
    return n * found[0] // found[1] if found else int(n)  # int raises SizeNeeded


def scale_of(n, out, mode):
    """out / n, at least one of which is open, for lengths with a ratio that is the same for every size."""
    from ...sizes.questions import divides

    scale = 0.0
    if divides(n, out) and type(out // n) is int:
        scale = float(out // n)
    elif divides(out, n) and type(n // out) is int:
        scale = 1.0 / (n // out)
    return scale if scale and ratio(scale, mode) else out / n  # which raises SizeNeeded


def _refuse(n, out):
    int(n)
    int(out)


def along(x, axis, out, scale, mode, coordinates, nearest_mode, a, exclude_outside, antialias):
    """x with axis, of open length, resized to `out`. Raises SizeNeeded for options that need the length as a number."""
    from ...sizes.questions import known_equal

    n, backend = x.shape[axis], x.backend
    found = ratio(scale, mode)
    whole = found and known_equal(n * found[0], out * found[1])
    known = coordinates in ("half_pixel", "asymmetric") or (coordinates == "half_pixel_symmetric" and whole)
    known = known or (coordinates == "pytorch_half_pixel" and out > 1)
    if not found or not known or exclude_outside or not known_equal(out, n * found[0] // found[1]) or out > _LARGEST:
        _refuse(n, out)
    up, down = found
    taps = []
    for r in range(up):
        at = coordinate(r, scale, 1, up + 1, "half_pixel" if coordinates != "asymmetric" else coordinates, None)
        if mode == "nearest":
            taps.append([(nearest(at, nearest_mode), 1.0)])
        else:
            taps.append(taps_around(at, scale, mode, a, antialias))
    if len(taps[0]) > MOST_TAPS:
        _refuse(n, out)
    rows = out if up == 1 else n

    def number(value):
        return backend.full((), value, dtypes.int32)

    start = backend.reshape(backend.arange(0, down, rows, dtypes.int32), (rows, 1))
    shape = [1] * x.ndim
    shape[axis] = out
    total = None
    for t in range(len(taps[0])):
        weights = [p[t][1] for p in taps]
        if not any(weights):
            continue
        offsets = backend.from_list([p[t][0] for p in taps], dtypes.int32, (1, up))
        index = backend.binary("maximum", backend.binary("add", start, offsets), number(0))
        index = backend.binary("minimum", index, number(n - 1))
        part = backend.take(x, backend.reshape(index, (out,)), axis)
        if weights != [1.0] * up:
            row = backend.expand(backend.from_list(weights, x.dtype, (1, up)), (rows, up))
            part = backend.binary("mul", part, backend.reshape(row, tuple(shape)))
        total = part if total is None else backend.binary("add", total, part)
    return total
