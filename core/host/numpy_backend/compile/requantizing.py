"""Sums, products and hard swishes of levels between two roundings to 8 bits: their scales become one factor each, so
that fewer calls go over the arrays. Each is tried on all levels that it can be given, and stays as it is where one of
the results would be another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import float32
from ....shapes import broadcast
from ....tensor import Tensor
from ..storage import Array
from .grids import inside
from .operands import needed_calls, number
from .pooling import sees_elements
from .tracing import Call, Value

_MOST = 1 << 8  # levels that an operand may have
_DEEPEST = 24  # calls that are followed back
_MOVES = ("reshape", "permute", "expand", "slice")
_NEIGHBORS = (0, 1, -1, 2, -2)  # of a factor that are tried, in units of its last place
_UFUNCS = {"add": np.add, "mul": np.multiply}


class Levels(NamedTuple):
    """value * scale, of a Value of integers from low to high."""

    value: Value
    scale: float
    low: float
    high: float

    def every(self) -> Array:
        """All integers that it can be."""
        return np.arange(self.low, self.high + 1, dtype=np.float32)


class _Arrays:
    """Computes at once."""

    def binary(self, op: str, x: Any, y: Any) -> Array:
        out: Array = _UFUNCS[op](x, y)
        return out

    def clip(self, x: Any, high: Any) -> Array:
        return np.clip(x, np.float32(0), high)


class _Calls:
    """Writes Calls."""

    def __init__(self, like: Value) -> None:
        self.like = like
        self.calls: list[Call] = []

    def binary(self, op: str, x: Any, y: Any) -> Value:
        constant = np.ndim(y) == 0 and not isinstance(y, Value)
        y = Tensor(np.float32(y).reshape(()), float32, (), get_backend("numpy")) if constant else y
        return self._add("binary", (op, x, y), broadcast(x.shape, y.shape))

    def clip(self, x: Value, high: Any) -> Value:
        return self._add("clip", (x, 0.0, float(high)), x.shape)

    def _add(self, op: str, args: tuple[Any, ...], shape: tuple[int, ...]) -> Value:
        call = Call(op, getattr(get_backend("numpy"), op), args, {})
        call.results.append(Value(call, 0, float32, shape, self.like.inputs))
        self.calls.append(call)
        return call.results[0]


Formula = Callable[[Any, Any, Any], Any]  # of _Arrays or _Calls and two operands


def shorten(trace: Trace) -> None:
    """Change a trace so that what is rounded of levels is computed in fewer calls."""
    calls: list[Call] = []
    reads = Counter(value for call in trace.calls for value in call.operands())
    reads.update(trace.roots)
    for call in trace.calls:
        if call.op == "grid" and not call.keywords:
            calls += _shortened(call, reads)
        calls.append(call)
    trace.calls = calls
    needed = needed_calls(trace)
    trace.calls = [call for call in calls if call in needed]


def _shortened(grid: Call, reads: Counter[Value]) -> list[Call]:
    """The new calls whose result a grid rounds, none if it stays as it is: what else is read is computed anyway."""
    divided = _made(grid.args[0], "binary", "div")
    step = number(divided.args[2]) if divided is not None else None
    if divided is None or step is None or type(divided.args[1]) is not Value:
        return []
    source = divided.args[1]
    if reads[source] > 1:
        return []
    _, low, high = grid.args
    for first, second, wanted, formulas in (*_pair(source), *_hard_swish(source)):
        with np.errstate(all="ignore"):
            right = np.clip(np.rint(wanted / np.float32(step)), low, high)
            x, y = first.every()[:, None], None if second is None else second.every()
            for formula in formulas(step):
                found = np.rint(formula(_Arrays(), x, y))
                within = bool(low <= found.min() and found.max() <= high)
                if np.array_equal(found if within else np.clip(found, low, high), right):
                    made = _Calls(grid.results[0])
                    value = formula(made, first.value, None if second is None else second.value)
                    grid.args = (value, low, high)
                    grid.method = inside if within else grid.method
                    return made.calls
    return []


Case = tuple[Levels, Levels | None, Array, Callable[[float], Iterator[Formula]]]


def _pair(source: Value) -> Iterator[Case]:
    """A sum or product of levels: its operands, the result for all of them, and what may give it divided by a step."""
    call = _made(source, "binary", "add") or _made(source, "binary", "mul")
    found = [_levels(x) for x in call.args[1:]] if call is not None else [None]
    if call is None or None in found or found[0] == found[1]:
        return
    x, y = sorted((f for f in found if f is not None), key=lambda f: -np.prod(f.value.shape))
    op = call.args[0]
    wanted = _UFUNCS[op](x.every()[:, None] * np.float32(x.scale), y.every() * np.float32(y.scale))
    yield x, y, wanted, partial(_products if op == "mul" else _sums, x.scale, y.scale)


def _products(first: float, second: float, step: float) -> Iterator[Formula]:
    for f in _near(first * second / step):
        yield partial(_product, f)


def _product(f: Any, w: Any, x: Any, y: Any) -> Any:
    return w.binary("mul", x, w.binary("mul", y, f))


def _sums(first: float, second: float, step: float) -> Iterator[Formula]:
    for f in _near(first / step):
        for g in _near(second / step):
            yield partial(_sum, f, g)


def _sum(f: Any, g: Any, w: Any, x: Any, y: Any) -> Any:
    return w.binary("add", w.binary("mul", x, f), w.binary("mul", y, g))


def _hard_swish(source: Value) -> Iterator[Case]:
    """v * clip(v * slope + middle, 0, 1) of levels v."""
    call = _made(source, "binary", "mul")
    for v, bent in [] if call is None else [call.args[1:], call.args[:0:-1]]:
        clip = _made(bent, "clip")
        shifted = _made(clip.args[0], "binary", "add") if clip is not None and clip.args[1:] == (0, 1) else None
        scaled = _made(shifted.args[1], "binary", "mul") if shifted is not None else None
        x = _levels(v)
        if shifted is None or scaled is None or x is None or scaled.args[1] is not v:
            continue
        slope, middle = number(scaled.args[2]), number(shifted.args[2])
        if slope is None or middle is None:
            continue
        every = x.every()[:, None] * np.float32(x.scale)
        wanted = every * np.clip(every * np.float32(slope) + np.float32(middle), np.float32(0), np.float32(1))
        yield x, None, wanted, partial(_swishes, x.scale, slope, middle)


def _swishes(scale: float, slope: float, middle: float, step: float) -> Iterator[Formula]:
    top = scale / step
    for f in _near(top):
        for a in _near(slope * scale * top):
            yield partial(_swish, a, np.float32(middle * top), f)


def _swish(slope: Any, middle: Any, top: Any, w: Any, x: Any, _: Any) -> Any:
    return w.binary("mul", w.clip(w.binary("add", w.binary("mul", x, slope), middle), top), x)


def _near(factor: float) -> Iterator[Any]:
    """float32 numbers near a factor, the nearest first."""
    for n in _NEIGHBORS:
        yield np.float32(factor) + n * np.spacing(np.float32(factor))


def _made(x: Any, op: str, name: str | None = None) -> Call | None:
    """The Call that gives x, if it is such a primitive."""
    call = x.call if type(x) is Value else None
    if call is None or call.op != op or call.keywords or (name is not None and call.args[0] != name):
        return None
    return call


def _levels(x: Any) -> Levels | None:
    """What x is a multiple of, if these are few levels."""
    if type(x) is not Value:
        return None
    call = _made(x, "binary", "mul")
    scale = number(call.args[2]) if call is not None and isinstance(call.args[2], Tensor) else None
    if call is None or scale is None or not scale > 0 or type(call.args[1]) is not Value:
        return None
    ends = _ends(call.args[1], _DEEPEST)
    return None if ends is None or ends[1] - ends[0] >= _MOST else Levels(call.args[1], scale, *ends)


def _ends(x: Any, depth: int) -> tuple[float, float] | None:
    """The least and the largest of a Value's integers; None where they are not known."""
    call = x.call if type(x) is Value else None
    if call is None or call.keywords or not depth:
        return None
    if call.op == "grid":
        return float(call.args[1]), float(call.args[2])
    if call.op == "level_table":
        return float(call.args[1].min()), float(call.args[1].max())
    if call.op in _MOVES:
        return _ends(call.args[0], depth - 1)
    if call.op == "pool" and call.args[0] == "max" and sees_elements(call):
        return _ends(call.args[1], depth - 1)
    return None
