"""Buffers of levels: what 8-bit integers stand for, made of them only when it is read. CPython only."""

from .buffers import Borrowed, flat, listed


class Levels(Borrowed):
    """A buffer of (x - zero) * scale, or, without a scale, of x - zero: nobody changes it. x: a tensor of 8-bit
    integers; zero, scale: tensors of one value, or of one for each index of one of its axes, or None; make: a function
    of these that gives the buffer they stand for."""

    def __init__(self, x, zero, scale, make):
        self.x = x
        self.zero = zero
        self.scale = scale
        self._make = make
        self._made = None

    def __len__(self):
        return self.x.size

    def run(self, start, count):
        return self[start : start + count]

    def __getitem__(self, i):
        if self._made is None:
            self._made = self._make()
        return self._made[i]

    def __iter__(self):
        return iter(self[:])


def levels_of(x):
    """The Levels that are all of x; None for others."""
    buffer, offset, strides = x.data
    if strides is not None or offset or not isinstance(buffer, Borrowed) or len(buffer) != x.size:
        return None
    return buffer if type(buffer) is Levels else getattr(buffer, "levels", None)


class Grid:
    """Levels with one scale and one zero point. codes: their bytes, of integers from 0 on; zero: the code of 0; scale:
    a float."""

    def __init__(self, codes, zero, scale):
        self.codes = codes
        self.zero = zero
        self.scale = scale


_OTHER_SIGN = bytes([(n + 128) & 255 for n in range(256)])


def grid(levels):
    """The Grid of levels, None where they have several zero points or scales, or a scale that is no number."""
    for part in (levels.zero, levels.scale):
        if part is not None and part.size != 1:
            return None
    zero = 0 if levels.zero is None else listed(levels.zero)[0]
    scale = 1.0 if levels.scale is None else listed(levels.scale)[0]
    low = _lowest(levels.x.dtype, [zero], [scale])
    return None if low is None else Grid(codes_of(levels.x), int(zero) - low, scale)


def _lowest(dtype, zeros, scales):
    """The lowest integer of a dtype; None where zero points are not of it, or scales no numbers."""
    total = sum(scales)
    low, high = dtype.range
    whole = total - total == 0 and not [1 for z in zeros if not low <= z <= high or z != int(z)]
    return low if whole else None


def codes_of(x):
    """The bytes of 8-bit integers, row-major, less the lowest that their dtype has."""
    codes = bytes(flat(x))
    return codes.translate(_OTHER_SIGN) if x.dtype.range[0] else codes


class Weights:
    """How the levels of a weight, an operand of sums, are meant: the code of 0 and the scale of each channel."""

    def __init__(self, zeros, scales):
        self.zeros = zeros
        self.scales = scales


def weights(levels, axis):
    """The Weights of levels whose channels are an axis; None where zero points or scales are of others, or no
    numbers."""
    shape = levels.x.shape
    along = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
    found = []
    for part, default in ((levels.zero, 0), (levels.scale, 1.0)):
        if part is None or part.size == 1:
            found.append([default if part is None else listed(part)[0]] * shape[axis])
        elif (1,) * (len(shape) - len(part.shape)) + tuple(part.shape) == along:
            found.append(listed(part))
        else:
            return None
    low = _lowest(levels.x.dtype, *found)
    return None if low is None else Weights([int(z) - low for z in found[0]], found[1])
