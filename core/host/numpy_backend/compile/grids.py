"""Quantized values of a plan that are dequantized at once stay floats, multiples of their scale, in fewer passes and
with the same bits. What lies on such a grid already, and is quantized to the same one again, stays as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import DType, float32
from ....tensor import Tensor
from ..storage import Array
from .activations import clipping
from .magnitudes import largest
from .steps import Writer
from .tracing import Call, Value

_SCALES = (2.0**-60, 2.0**60)  # that give a level back from the float it stands for
_FINITE = 1e30  # what is less is not NaN, nor are sums of it
_ROUNDING = np.float32(1.5 * 2**23)  # added, it rounds half to even; subtracted, it leaves no -0
_MOVES = ("reshape", "permute", "expand", "slice")


class Grid(NamedTuple):
    """(level - zero) * scale for the levels of a dtype."""

    scale: float
    zero: float
    dtype: DType


def keep_floats(trace: Trace) -> None:
    """Change a trace so that levels that are only dequantized again are floats."""
    users: dict[Value, list[Call]] = {}
    for call in trace.calls:
        for value in call.operands():
            users.setdefault(value, []).append(call)
    roots = set(trace.roots)
    grids: dict[Value, Grid] = {}
    levels: dict[Value, Value] = {}  # those of a to_levels, as floats less their zero point
    calls: list[Call] = []
    for call in trace.calls:
        result = call.results[0] if call.results else None
        if call.op == "to_levels" and result is not None and result not in roots and _is_plain(call):
            read = [_grid(user, call) for user in users.get(result, ())]
            if read and None not in read:
                _skip_relu(call, users, roots)
                calls.append(_whole(call, levels))
                continue
        if call.op == "from_levels" and call.args[0] in levels:
            grid = _grid(call, call.args[0].call)
            same = _source(levels[call.args[0]], grid, grids)
            calls.append(_instead(call, levels[call.args[0]], same))
            grids[call.results[0]] = grid  # type: ignore[assignment]
            continue
        if result is not None:
            found = _moved(call, grids)
            if found is not None:
                grids[result] = found
        calls.append(call)
    trace.calls = calls


def _is_plain(call: Call) -> bool:
    x, zero, _, _, dtype = call.args
    return not call.keywords and x.dtype is float32 and dtype.bits <= 16 and _number(zero, 0.0) is not None


def _number(x: Any, missing: float | None = None) -> float | None:
    """A constant of one number, None for others."""
    if x is None:
        return missing
    return float(x.data.reshape(())) if isinstance(x, Tensor) and x.size == 1 else None


def _grid(user: Call, made: Call) -> Grid | None:
    """The grid of a from_levels of what `made` rounded, if both have the same zero point; else None."""
    if user.op != "from_levels" or user.keywords:
        return None
    _, zero, scale = user.args
    step, point = _number(scale), _number(zero, 0.0)
    if step is None or point is None or scale.dtype is not float32 or scale.ndim or point != _number(made.args[1], 0.0):
        return None
    return Grid(step, point, made.args[4])


def _skip_relu(call: Call, users: dict[Value, list[Call]], roots: set[Value]) -> None:
    """Divide what a relu reads, where the least level is that of 0 and no result is the quotient: less numbers are cut
    to it."""
    x, zero, low, _, _ = call.args
    divided = x.call if type(x) is Value and len(users[x]) == 1 and x not in roots else None
    if low != _number(zero, 0.0) or divided is None or divided.op != "binary" or divided.args[0] != "div":
        return
    _, source, scale = divided.args
    relu = source.call if type(source) is Value and len(users[source]) == 1 else None
    if relu is not None and relu.op == "relu" and not relu.keywords and (_number(scale) or 0.0) > 0:
        divided.args = ("div", relu.args[0], scale)


def _whole(call: Call, levels: dict[Value, Value]) -> Call:
    """The call that gives the levels of a to_levels as floats, less the zero point."""
    x, zero, low, high, _ = call.args
    point = _number(zero, 0.0) or 0.0
    made = Call("grid", on_grid, (x, low - point, high - point), {})
    result = call.results[0]
    between = Value(made, 0, float32, result.shape, result.inputs)
    made.results.append(between)
    levels[result] = between
    return made


def _instead(call: Call, between: Value, same: Value | None) -> Call:
    """What a from_levels is replaced by: a product, or what it rounds, if that is the same."""
    backend = get_backend("numpy")
    if same is None and _number(call.args[2]) == 1.0:
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
    divided = between.call.args[0].call if between.call else None
    if grid is None or divided is None or divided.op != "binary" or divided.args[0] != "div":
        return None
    _, source, scale = divided.args
    if type(source) is not Value or grids.get(source) != grid or source.shape != between.shape:
        return None
    return source if _number(scale) == grid.scale and _SCALES[0] < grid.scale < _SCALES[1] else None


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


def grid(w: Writer, call: Call) -> None:
    """Lowers `on_grid`."""
    x, low, high = call.args
    array = w.array(x)
    out = w.out_over(call.results[0], call, x)
    if low == int(low) and high == int(high) and largest(x) < _FINITE:
        w.map(clipping, array, np.float32(low), np.float32(high), out)
        w.map(np.add, out, _ROUNDING, out)
        w.map(np.subtract, out, _ROUNDING, out)
        return
    w.map(np.rint, array, out)
    w.map(np.add, out, np.float32(0), out)
    w.map(np.fmax, out, np.float32(low), out)
    w.map(np.minimum, out, np.float32(high), out)


def to_levels(w: Writer, call: Call) -> Any:
    """Levels that are needed as integers, without arrays for what is between."""
    x, zero, low, high, dtype = call.args
    point = _number(zero, 0.0)
    if x.dtype is not float32 or point is None or not 8 <= dtype.bits <= 16:
        return False
    array = w.array(x)
    between = w.scratch(array.shape, array.dtype)
    w.map(np.rint, array, between)
    w.map(np.add, between, np.float32(point), between)
    w.map(np.fmax, between, np.float32(low), between)
    w.map(np.minimum, between, np.float32(high), between)
    w.map(copy_cast, between, w.out(call.results[0]))
    return None


def from_levels(w: Writer, call: Call) -> Any:
    """(x - zero) * scale, in the result's array."""
    x, zero, scale = call.args
    point = _number(zero, 0.0)
    if type(scale) is Value or point is None or scale.dtype is not float32:
        return False
    out = w.out(call.results[0])
    w.map(copy_cast, w.array(x), out)
    if point:
        w.map(np.subtract, out, out.dtype.type(point), out)
    w.map(np.multiply, out, scale.data, out)
    return None


def copy_cast(x: Array, out: Array) -> None:
    """out[...] = x in out's dtype."""
    np.copyto(out, x, casting="unsafe")
