"""Quantized values of a plan that are only dequantized again stay floats, multiples of their scale, in fewer passes and
with the same bits. What lies on such a grid already, and is quantized to the same one again, stays as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import DType, float32
from ....tensor import Tensor
from ..elementwise import clipping
from . import level_tables
from .magnitudes import FINITE, largest
from .operands import number
from .pooling import sees_elements
from .scales import SCALES
from .steps import Writer, copy_cast
from .tracing import Call, Value

_ROUNDING = np.float32(1.5 * 2**23)  # added, it rounds half to even; subtracted, it leaves no -0
_DEEPEST = 24  # calls that are followed
_MOVES = ("reshape", "permute", "expand", "slice")


class Grid(NamedTuple):
    """(level - zero) * scale for the levels of a dtype."""

    scale: float
    zero: float
    dtype: DType


def keep_floats(trace: Trace) -> None:
    """Change a trace so that levels that are only dequantized again are floats."""
    _Floats(trace).keep()


class _Floats:
    """A walk over a trace. levels: Values of levels -> (the floats that equal them, less the zero point, the to_levels
    that gave them)."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.users: dict[Value, list[Call]] = {}
        for call in trace.calls:
            for value in call.operands():
                self.users.setdefault(value, []).append(call)
        self.roots = set(trace.roots)
        self.grids: dict[Value, Grid] = {}
        self.levels: dict[Value, tuple[Value, Call]] = {}

    def keep(self) -> None:
        self.trace.calls = [self._one(call) for call in self.trace.calls]

    def _one(self, call: Call) -> Call:
        """The call that takes a call's place."""
        result = call.results[0] if call.results else None
        if result is None:
            return call
        if call.op == "to_levels" and _is_plain(call) and self._are_floats(result, call):
            _skip_relu(call, self.users, self.roots)
            made = _whole(call)
            self.levels[result] = made.results[0], call
            return made
        first = next(call.operands(), None)
        if first in self.levels:
            between, made = self.levels[first]
            if call.op == "from_levels":
                found = _grid(call, made)
                same = _source(between, found, self.grids)
                self.grids[result] = found  # type: ignore[assignment]
                return _instead(call, between, same)
            moved = Call(call.op, call.method, tuple(map(self._bare, call.args)), {})
            moved.results.append(Value(moved, 0, float32, result.shape, result.inputs))
            self.levels[result] = moved.results[0], made
            return moved
        on = _moved(call, self.grids)
        if on is not None:
            self.grids[result] = on
        return call

    def _bare(self, x: Any) -> Any:
        if type(x) is Value:
            return self.levels[x][0]
        return type(x)(map(self._bare, x)) if type(x) in (list, tuple) else x

    def _are_floats(self, value: Value, made: Call) -> bool:
        """Whether levels of `made` are only dequantized, by its zero point, also after they were moved."""
        users = self.users.get(value, [])
        return bool(users) and value not in self.roots and all(self._is_float(u, made) for u in users)

    def _is_float(self, user: Call, made: Call) -> bool:
        if user.op == "from_levels":
            return _grid(user, made) is not None
        if user.keywords or len(user.results) != 1:
            return False
        if user.op == "concat":
            moves = all(self._like(x, made) for x in user.args[0])
        else:
            selects = user.op == "pool" and user.args[0] == "max" and sees_elements(user)
            moves = user.op in _MOVES or selects
        return moves and self._are_floats(user.results[0], made)

    def _like(self, x: Any, made: Call) -> bool:
        """Whether x, which is joined with levels of `made`, is levels with the same zero point that nothing else
        reads."""
        call = x.call if type(x) is Value else None
        if call is None or call.op != "to_levels" or not _is_plain(call) or len(self.users[x]) > 1 or x in self.roots:
            return False
        return number(call.args[1], 0.0) == number(made.args[1], 0.0) and call.args[4] is made.args[4]


def _is_plain(call: Call) -> bool:
    x, zero, _, _, dtype = call.args
    return not call.keywords and x.dtype is float32 and dtype.bits <= 16 and number(zero, 0.0) is not None


def _grid(user: Call, made: Call) -> Grid | None:
    """The grid of a from_levels of what `made` rounded, if both have the same zero point; else None."""
    if user.op != "from_levels" or user.keywords:
        return None
    _, zero, scale = user.args
    step, point = number(scale), number(zero, 0.0)
    if step is None or point is None or scale.dtype is not float32 or scale.ndim or point != number(made.args[1], 0.0):
        return None
    return Grid(step, point, made.args[4])


def _skip_relu(call: Call, users: dict[Value, list[Call]], roots: set[Value]) -> None:
    """Divide what a relu reads, where the least level is that of 0 and no result is the quotient: less numbers are cut
    to it."""
    x, zero, low, _, _ = call.args
    divided = x.call if type(x) is Value and len(users[x]) == 1 and x not in roots else None
    if low != number(zero, 0.0) or divided is None or divided.op != "binary" or divided.args[0] != "div":
        return
    _, source, scale = divided.args
    relu = source.call if type(source) is Value and len(users[source]) == 1 else None
    if relu is not None and relu.op == "relu" and not relu.keywords and (number(scale) or 0.0) > 0:
        divided.args = ("div", relu.args[0], scale)


def _whole(call: Call) -> Call:
    """The call that gives the levels of a to_levels as floats, less the zero point."""
    x, zero, low, high, _ = call.args
    point = number(zero, 0.0) or 0.0
    made = Call("grid", on_grid, (x, low - point, high - point), {})
    result = call.results[0]
    made.results.append(Value(made, 0, float32, result.shape, result.inputs))
    return made


def _instead(call: Call, between: Value, same: Value | None) -> Call:
    """What a from_levels is replaced by: a product, or what it rounds, if that is the same."""
    backend = get_backend("numpy")
    if same is None and number(call.args[2]) == 1.0:
        same = between
    if same is None:
        after = Call("binary", backend.binary, ("mul", between, call.args[2]), {})
    else:
        after = Call("reshape", backend.reshape, (same, same.shape), {})
    result = call.results[0]
    after.results.append(result)
    result.call = after
    return after


def _source(between: Value, grid: Grid | None, grids: dict[Value, Grid]) -> Value | None:
    """What is divided and rounded, if that gives the same numbers; else None."""
    made = between.call
    divided = made.args[0].call if made and made.op == "grid" and type(made.args[0]) is Value else None
    if grid is None or divided is None or divided.op != "binary" or divided.args[0] != "div":
        return None
    _, source, scale = divided.args
    if type(source) is not Value or grids.get(source) != grid or source.shape != between.shape:
        return None
    return source if number(scale) == grid.scale and SCALES[0] < grid.scale < SCALES[1] else None


def _moved(call: Call, grids: dict[Value, Grid]) -> Grid | None:
    """The grid that the result of a call has, since it only moves or selects elements; else None."""
    if call.keywords:
        return None
    if call.op in _MOVES:
        return grids.get(call.args[0]) if type(call.args[0]) is Value else None
    if call.op == "pool" and call.args[0] == "max" and type(call.args[1]) is Value:
        return grids.get(call.args[1]) if not any(n for pair in call.args[4] for n in pair) else None
    if call.op == "concat":
        found = {grids.get(x) if type(x) is Value else None for x in call.args[0]}
        return found.pop() if len(found) == 1 else None
    return None


def on_grid(x: Tensor, low: float, high: float) -> Tensor:
    """x rounded half to even and cut to low … high; NaN becomes low."""
    out = np.asarray(np.rint(x.data) + np.float32(0))  # of -0, too, since levels have no sign
    np.minimum(np.fmax(out, np.float32(low)), np.float32(high), out=out)
    return Tensor(out, float32, out.shape, get_backend("numpy"))


def inside(x: Tensor, low: float, high: float) -> Tensor:
    """`on_grid` of what lies from low to high once it is rounded."""
    return on_grid(x, low, high)


def grid(w: Writer, call: Call) -> None:
    """Lowers `on_grid` and `inside`."""
    x, low, high = call.args
    array = w.array(x)
    out = w.out_over(call.results[0], call, x)
    if call.method is inside and _unsigned(w, call.results[0]):
        w.map(np.rint, array, out)
        return
    if low != int(low) or high != int(high):
        w.map(np.rint, array, out)
        w.map(np.add, out, np.float32(0), out)
        w.map(np.fmax, out, np.float32(low), out)
        w.map(np.minimum, out, np.float32(high), out)
        return
    if level_tables.cut(w, call):
        w.map(np.rint, array, out)
        return
    least = low or 0.25  # which is rounded to 0: zeros have no sign then
    # Rows of a larger array take longer than an array: they are written once.
    between = array if w.overwritable(x, call) else out
    if largest(x) < FINITE:
        w.map(clipping, array, np.float32(least), np.float32(high), between)
    else:
        w.map(np.fmax, array, np.float32(least), between)
        w.map(clipping, between, np.float32(least), np.float32(high), between)  # np.minimum takes twice as long
    whole = between if w.has_gaps(between) else out  # one run is rounded and then copied faster than its lines
    if low >= 0 or _unsigned(w, call.results[0]):
        w.map(np.rint, between, whole)
    else:
        w.map(np.add, between, _ROUNDING, between)
        w.map(np.subtract, between, _ROUNDING, whole)
    w.copy(whole, out)


def _unsigned(w: Writer, value: Value, depth: int = 0) -> bool:
    """Whether the sign of a zero does not matter in what reads a Value: it ends in sums of products."""
    found = w.unsigned.get(value)
    if found is None:
        users = w.users(value)
        found = bool(users) and depth < _DEEPEST and all(_forgets(w, call, value, depth + 1) for call in users)
        w.unsigned[value] = found
    return found


def _forgets(w: Writer, call: Call, value: Value, depth: int) -> bool:
    """Whether what a call makes of a Value does not show the sign of a zero."""
    if call.op in ("matmul", "softmax", "grid"):  # a grid gives no -0 where that matters
        return True
    if call.op in ("conv", "linear", "level_table"):
        return not any(x is value for x in call.args[1:])
    if call.op == "binary":
        same = call.args[0] in ("add", "sub", "mul") or (call.args[0] == "div" and call.args[2] is not value)
    else:
        same = call.op in (*_MOVES, "pool", "concat", "relu", "clip", "reduce", "layer_norm")
    return same and all(_unsigned(w, r, depth) for r in call.results)


def to_levels(w: Writer, call: Call) -> Any:
    """Levels that are needed as integers, without arrays for what is between."""
    x, zero, low, high, dtype = call.args
    point = number(zero, 0.0)
    if x.dtype is not float32 or point is None or not 8 <= dtype.bits <= 16:
        return False
    array = w.array(x)
    between = w.scratch(array.shape, array.dtype)
    whole = point == int(point) and largest(x) < FINITE
    if whole:
        w.map(clipping, array, np.float32(low - point), np.float32(high - point), between)
        array = between
    w.map(np.rint, array, between)
    if point:
        w.map(np.add, between, np.float32(point), between)
    if not whole:
        w.map(np.fmax, between, np.float32(low), between)
        w.map(np.minimum, between, np.float32(high), between)
    w.map(copy_cast, between, w.out(call.results[0]))
    return None


def from_levels(w: Writer, call: Call) -> Any:
    """(x - zero) * scale, in the result's array."""
    x, zero, scale = call.args
    point = number(zero, 0.0)
    if point is None or scale.dtype is not float32:
        return False
    out = w.out(call.results[0])
    w.map(copy_cast, w.array(x), out)
    if point:
        w.map(np.subtract, out, out.dtype.type(point), out)
    if number(scale) != 1.0:
        w.map(np.multiply, out, w.array(scale), out)
    return None
