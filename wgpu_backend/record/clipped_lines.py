"""Activations of 8-bit levels that are quantized again, such as hard swish, in few operations: the product of a level,
less the one that gives 0, and a line that is cut to 0 … top,

    v * min(max(v * slope + start, 0), top).

Its three numbers follow from the activation's values at all 256 levels. It takes the activation's place where it gives
the same level for each of them in float32, in which no operation is joined with another.
"""

from emberlet import dtypes
from emberlet.functional.quantized.quantization import rounded_levels
from emberlet.tensor import Tensor

from .host_evaluation import values_of

FEWEST = 8  # nodes of a function that takes more operations


def levels_by_line(x, source, at_each, zero, low, high, dtype):
    """The levels of x, a function of the 8-bit node `source`; None if they are no such product. at_each: x at each
    number of the source's dtype, a recorded float32 tensor; the other arguments are `to_levels`'s."""
    backend, host = x.backend, x.backend.host
    (values,) = values_of([at_each.data], host)
    least, most = source.dtype.range
    numbers = host.to_list(values)
    found = _fitted(numbers, least)
    if found is None:
        return None
    every = host.from_list([float(n) for n in range(least, most + 1)], dtypes.float32, (most - least + 1,))
    point = None if zero is None else host.full((), zero.data.arg, zero.dtype)
    same = rounded_levels(values, point, low, high, dtype), rounded_levels(_line(every, found), point, low, high, dtype)
    if host.to_list(same[0]) != host.to_list(same[1]):
        return None
    levels = backend.cast(Tensor(source, source.dtype, source.shape, backend), dtypes.float32)
    return rounded_levels(_line(levels, found), zero, low, high, dtype)


def _fitted(numbers, least):
    """(the level that gives 0, slope, start, top) of a function's values at all levels from `least` on, None if there
    is no line between 0 and the top."""
    zeros = [n for n in range(len(numbers)) if numbers[n] == 0]
    if not zeros or zeros[-1] == len(numbers) - 1:
        return None
    middle = zeros[-1]
    top = numbers[-1] / (len(numbers) - 1 - middle)
    factors = [(n - middle, numbers[n] / (n - middle)) for n in range(len(numbers)) if n != middle]
    # Near the middle a factor is the quotient of few digits.
    line = [pair for pair in factors if 0 < pair[1] < top * (1 - 1e-6)]
    if len(line) < 2:
        return None
    (first, begin), (last, end) = line[0], line[-1]
    slope = (end - begin) / (last - first)
    return middle + least, slope, begin - slope * first, top


def _line(levels, found):
    """The product, of float32 levels."""
    backend = levels.backend
    middle, slope, start, top = [backend.full((), n, dtypes.float32) for n in found]
    v = backend.binary("sub", levels, middle) if found[0] else levels
    line = backend.binary("add", backend.binary("mul", v, slope), start)
    line = backend.binary("maximum", line, backend.full((), 0, dtypes.float32))
    return backend.binary("mul", v, backend.binary("minimum", line, top))
