"""Activations between two roundings to 8 bits as tables: levels are looked up in two or three calls, where a hard swish
takes seven, or multiplied where the table is a multiple of the levels. Larger arrays are looked up where that is faster
than many calls, such as those of a gelu, whose parts may be rounded in between."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....backend import get_backend
from ....dtypes import float32
from ....tensor import Tensor
from ..storage import Array
from .magnitudes import largest
from .steps import Writer, copy_cast
from .tracing import Call, Value

LARGEST = 1 << 11  # elements of an array
FEWEST, MANY = 4, 24  # calls that a table replaces, of such an array and of a larger one
MOST = 256  # levels
_DEEPEST = 48  # calls of a function
_ELEMENTWISE = ("binary", "unary", "relu", "clip", "sigmoid")
_COSTLY = {"erf": 24, "tanh": 8, "exp": 6, "log": 6, "sigmoid": 9, "level_table": 20, "grid": 2}  # in calls
_WHOLE = 2.0**31  # what is less is cut to an integer


def look_up(calls: list[Call], roots: list[Value]) -> list[Call]:
    """The calls with tables or products for functions of levels. calls: of a trace, all of which are needed."""
    users: dict[Value, list[Call]] = {}
    for call in calls:
        for value in call.operands():
            users.setdefault(value, []).append(call)
    ends = set(roots)
    gone: set[Call] = set()
    before: dict[Call, Call] = {}
    backend = get_backend("numpy")
    place = {call: i for i, call in enumerate(calls)}
    for call in calls:
        if call.op == "grid" and not call.keywords and math.prod(call.results[0].shape) > 0:
            found = _function(call, users, ends, place)
            if found is not None:
                source, inner = found
                low, high = source.call.args[1:]  # type: ignore[union-attr]
                table = _values(call, source, inner, low, high)
                factor = _factor(table, low, *call.args[1:])
                if factor is None:
                    call.op, call.method, call.args = "level_table", picked, (source, table, low)
                else:
                    before[call] = scaled = Call("binary", backend.binary, ("mul", source, factor), {})
                    scaled.results.append(Value(scaled, 0, float32, source.shape, source.inputs))
                    users[scaled.results[0]] = [call]
                    call.args = (scaled.results[0], *call.args[1:])
                gone.update(inner)
    kept = [call for call in calls if call not in gone]
    return [each for call in kept for each in ([before[call], call] if call in before else [call])]


def _factor(table: Array, first: float, low: float, high: float) -> Tensor | None:
    """The number that levels from `first` on are multiplied by, where their rounded products are the table."""
    levels = np.arange(first, first + len(table), dtype=np.float64)
    seen = (levels != 0) & (table > low) & (table < high)
    if not seen.any():
        return None
    ends = np.sort((table[seen, None] + (-0.5, 0.5)) / levels[seen, None], axis=1)
    factor = np.float32((ends[:, 0].max() + ends[:, 1].min()) / 2)
    found = np.clip(np.rint(levels.astype(np.float32) * factor), low, high)
    return Tensor(factor.reshape(()), float32, (), get_backend("numpy")) if np.array_equal(found, table) else None


def _function(
    end: Call, users: dict[Value, list[Call]], roots: set[Value], place: dict[Call, int]
) -> tuple[Value, list[Call]] | None:
    """(the levels that a grid's result is a function of, the calls between); None if it is of others."""
    inner: list[Call] = []
    sources: set[Value] = set()
    waiting = list(end.operands())
    while waiting:
        value = waiting.pop()
        call = value.call
        if call is None or value.shape != end.results[0].shape:
            return None
        if call.op == "grid":
            sources.add(value)
        elif call not in inner:
            if not _is_inner(call, roots):
                return None
            inner.append(call)
            waiting.extend(call.operands())
        if not waiting and len(sources) > 1:  # the latest may be a function of another
            last = max(sources, key=lambda v: place[v.call])  # type: ignore[index]
            sources.remove(last)
            if last in roots or len(inner) >= _DEEPEST:
                return None
            inner.append(last.call)  # type: ignore[arg-type]
            waiting.extend(last.call.operands())  # type: ignore[union-attr]
    source = sources.pop() if sources else None
    if source is None or source.call.args[2] - source.call.args[1] >= MOST:  # type: ignore[union-attr]
        return None
    own = {end, *inner}
    if any(user not in own for call in inner for user in users[call.results[0]]):
        return None
    count = sum(_COSTLY.get(call.args[0] if call.op == "unary" else call.op, 1) for call in own)
    least = FEWEST + 1 if math.prod(source.shape) <= LARGEST else MANY
    return (source, inner) if count >= least else None


def _is_inner(call: Call, roots: set[Value]) -> bool:
    """Whether a call may be part of such a function."""
    if call.op not in (*_ELEMENTWISE, "level_table") or call.keywords or call.results[0] in roots:
        return False
    return _of_numbers(call)


def _of_numbers(call: Call) -> bool:
    return len(call.results) == 1 and all(not isinstance(x, Tensor) or x.size == 1 for x in call.args)


def _values(end: Call, source: Value, inner: list[Call], low: float, high: float) -> Array:
    """The result of `end` for each level of the source."""
    backend = get_backend("numpy")
    levels = np.arange(low, high + 1, dtype=np.float32)
    known: dict[Value, Tensor] = {source: Tensor(levels, float32, levels.shape, backend)}

    def of(value: Value) -> Tensor:
        if value not in known:
            call = value.call
            known[value] = call.method(*[given(x) for x in call.args])  # type: ignore[union-attr]
        return known[value]

    def given(x: Any) -> Any:
        if type(x) is Value:
            return of(x)
        return Tensor(x.data.reshape(()), x.dtype, (), backend) if isinstance(x, Tensor) else x

    with np.errstate(all="ignore"):
        found: Array = end.method(*[given(x) for x in end.args]).data
    return found


def picked(x: Tensor, table: Array, low: float) -> Tensor:
    """The number of a table that each level has, from `low` on."""
    found = table[(x.data - low).astype(np.intp)]
    return Tensor(found, float32, x.shape, get_backend("numpy"))


def lower(w: Writer, call: Call) -> None:
    """Lowers `picked`."""
    x, table, low = call.args
    array = w.array(x)
    last = x in w.last
    at = w.scratch(array.shape, np.dtype(np.intp), last)
    out = w.out_over(call.results[0], call, x)
    if low:
        between = array if out is array else w.scratch(array.shape, array.dtype, last)
        w.map(np.subtract, array, np.float32(low), between)  # one call that casts, too, takes as long as three
        array = between
    w.map(copy_cast, array, at)
    w.map(_Lookup(table), at, out)


class _Lookup:
    """The numbers of a table."""

    __name__ = "look_up"

    def __init__(self, table: Array) -> None:
        self.take: Callable[..., Any] = np.ascontiguousarray(table).take

    def __call__(self, at: Array, out: Array) -> None:
        if out.flags.c_contiguous:
            self.take(at, None, out, "clip")
        else:
            np.copyto(out, self.take(at, None, None, "clip"))


def cut(w: Writer, grid: Call) -> bool:
    """Whether nothing but tables of all levels reads a grid, which cut what they look up."""
    x, low, high = grid.args
    users = w.users(grid.results[0])
    tables = all(u.op == "level_table" and u.args[2] == low and low + len(u.args[1]) - 1 == high for u in users)
    return bool(users) and tables and largest(x) < _WHOLE
