"""Elementwise functions of two operands that broadcast."""

import math

from .. import dtypes
from ..shapes import broadcast, size
from . import scalars
from .buffers import MICRO, Borrowed, code_of, flat, is_narrow, store, wrapper
from .sequences import repeated
from .views import merged, offsets

# op -> (float function, integer function); both may raise
if MICRO:
    _FAST = {
        "add": (lambda a, b: a + b,) * 2, "sub": (lambda a, b: a - b,) * 2, "mul": (lambda a, b: a * b,) * 2,
        "div": (lambda a, b: a / b, scalars.int_divide),
        "bitwise_and": (None, lambda a, b: a & b), "bitwise_or": (None, lambda a, b: a | b),
        "bitwise_xor": (None, lambda a, b: a ^ b),
        "eq": (lambda a, b: a == b,) * 2, "ne": (lambda a, b: a != b,) * 2, "lt": (lambda a, b: a < b,) * 2,
        "le": (lambda a, b: a <= b,) * 2, "gt": (lambda a, b: a > b,) * 2, "ge": (lambda a, b: a >= b,) * 2,
    }  # fmt: skip
else:
    import operator as _o

    _FAST = {
        "add": (_o.add,) * 2, "sub": (_o.sub,) * 2, "mul": (_o.mul,) * 2, "div": (_o.truediv, scalars.int_divide),
        "bitwise_and": (None, _o.and_), "bitwise_or": (None, _o.or_), "bitwise_xor": (None, _o.xor),
        "eq": (_o.eq,) * 2, "ne": (_o.ne,) * 2, "lt": (_o.lt,) * 2, "le": (_o.le,) * 2, "gt": (_o.gt,) * 2,
        "ge": (_o.ge,) * 2,
    }  # fmt: skip
_FAST["floor_divide"] = (lambda a, b: a // b, scalars.int_floor_divide)
_FAST["remainder"] = (lambda a, b: a % b, scalars.int_remainder)
_FAST["fmod"] = (math.fmod, scalars.int_fmod)
_FAST["pow"] = (math.pow, scalars.int_power)
_FAST["atan2"] = (math.atan2, None)
_FAST["maximum"] = (scalars.maximum,) * 2
_FAST["minimum"] = (scalars.minimum,) * 2
_FAST["shift_left"] = (None, scalars.shift_left)
_FAST["shift_right"] = (None, scalars.shift_right)
_FAST["logical_and"] = (lambda a, b: not (not a or not b),) * 2
_FAST["logical_or"] = (lambda a, b: not (not a and not b),) * 2
_FAST["logical_xor"] = (lambda a, b: (not a) != (not b),) * 2

_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")

# The fallback of a float function that raises.
_SAFE = {
    "div": scalars.divide, "floor_divide": scalars.floor_divide, "remainder": scalars.remainder, "fmod": scalars.fmod,
    "pow": scalars.power,
}  # fmt: skip


def binary(backend, op, a, b):
    if not MICRO and (isinstance(a.data[0], Borrowed) or isinstance(b.data[0], Borrowed)):
        from .coded import binary as of_levels

        found = of_levels(backend, op, a, b)
        if found is not None:
            return found
    shape = a.shape if a.shape == b.shape else broadcast(a.shape, b.shape)
    out = dtypes.bool if op in _COMPARING else a.dtype
    if op not in _FAST:
        from .lacking import no_kernel

        no_kernel(op)
    function = _FAST[op][0 if a.dtype.is_float else 1]
    exact = out.is_integer and is_narrow(out)  # the buffer's type would not detect an overflow
    if not exact:
        try:
            return backend.new(_apply(function, a, b, shape, out), out, shape)
        except (ValueError, OverflowError, ZeroDivisionError):
            pass
    function = _SAFE.get(op, function) if a.dtype.is_float else _wrapped(function, out)
    return backend.new(_apply(function, a, b, shape, out), out, shape)


def _wrapped(function, dtype):
    wrap = wrapper(dtype)
    return lambda a, b: wrap(function(a, b))


def _apply(function, a, b, shape, out):
    count = size(shape)
    if not count:
        return store(out, (), 0)
    if a.shape == b.shape:
        return store(out, map(function, flat(a), flat(b)), count)
    if b.size == 1:
        return store(out, map(function, flat(a), repeated(_first(b), count)), count)
    if a.size == 1:
        return store(out, map(function, repeated(_first(a), count), flat(b)), count)
    rows = _rows(function, a, b, shape)
    if MICRO:
        return store(out, (v for row in rows for v in row), count)
    values = []
    for row in rows:
        values += row
    return store(out, values, count)


def _first(x):
    return x.data[0][x.data[1]]


def _broadcast_strides(x, shape):
    out = []
    step = 1
    for i in range(1, len(shape) + 1):
        n = x.shape[-i] if i <= len(x.shape) else 1
        out.insert(0, step if n != 1 else 0)
        step *= n
    return out


def _rows(function, a, b, shape):
    """The results in row-major order, a run at a time: innermost, each operand is a run or one repeated element."""
    left, right = flat(a), flat(b)
    if not MICRO:
        # An operand that is read more than once becomes a list.
        left = left if code_of(a.dtype) is None or a.size == size(shape) else left.tolist()
        right = right if code_of(b.dtype) is None or b.size == size(shape) else right.tolist()
    axes = merged(shape, _broadcast_strides(a, shape), _broadcast_strides(b, shape))
    length, sa, sb = axes.pop()
    outer = [d[0] for d in axes]
    for oa, ob in zip(offsets(outer, [d[1] for d in axes], 0), offsets(outer, [d[2] for d in axes], 0)):
        yield map(
            function,
            left[oa : oa + length] if sa else repeated(left[oa], length),
            right[ob : ob + length] if sb else repeated(right[ob], length),
        )
