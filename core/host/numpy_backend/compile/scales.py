"""Scales of quantized values that products take into their weights, so that they cost no pass over an array: the scale
by which levels are dequantized before a product, and that by which its result is quantized.

The weights are rounded with them once more, as every product of floats is rounded: a number that lies halfway between
two levels, but for this rounding, may become the other one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import float32
from ....tensor import Tensor
from .activations import gelu_over
from .exact_sums import EXACT
from .joined import split_joined
from .magnitudes import FINITE, largest
from .operands import alone, counts, live, needed_calls, number
from .pooling import sees_elements
from .tracing import Call, Value

SCALES = (2.0**-60, 2.0**60)  # that give a level back from the float it stands for
_MANY = 256  # levels of which each is looked at
_PRODUCTS = ("conv", "linear", "matmul")
_MOVES = ("reshape", "permute", "expand", "slice", "concat", "pool", "relu")  # the same of a multiple


def fold(trace: Trace) -> None:
    """Change a trace so that products take scales into their weights."""
    if any(call.op == "grid" for call in trace.calls):
        split_joined(trace)
        _Scales(trace).fold()


class _Scales:
    """A walk over a trace. levels: a Value that is not computed unless it is read -> (the Value that it is a multiple
    of, the scale); computed: those that are read; ends: of the levels; sums: of products of levels; factors: of the
    results of products."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.given = live(trace)
        self.uses = counts(trace.roots, self.given)
        self.users: dict[Value, list[Call]] = {}
        for call in self.given:
            for value in call.operands():
                self.users.setdefault(value, []).append(call)
        self.levels: dict[Value, tuple[Value, float]] = {}
        self.computed: set[Value] = set()
        self.ends: dict[Value, tuple[float, float]] = {}
        self.sums: set[Value] = set()
        self.factors: dict[Call, float] = {}
        self.calls: list[Call] = []

    def fold(self) -> None:
        for call in self.given:
            if call.op == "grid":
                self._quantized(call)
        for call in self.given:
            if not self._later(call):
                self._now(call)
        for value in self.trace.roots:
            self._compute(value)
        self.trace.calls = self.calls
        needed = needed_calls(self.trace)
        self.trace.calls = [call for call in self.calls if call in needed]

    def _quantized(self, grid: Call) -> None:
        """Let the product before a grid divide by the scale; relu and clip between them become the grid's ends, since
        rounding keeps the order."""
        divided = alone(grid.args[0], self.uses)
        if divided is None or divided.op != "binary" or divided.args[0] != "div":
            return
        scale = number(divided.args[2])
        if scale is None or not SCALES[0] < scale < SCALES[1] or type(divided.args[1]) is not Value:
            return
        source, (low, high) = divided.args[1], grid.args[1:3]
        cut = alone(source, self.uses)
        if cut is not None and cut.op in ("relu", "clip") and not cut.keywords and largest(source) < FINITE:
            ends = (0.0, None) if cut.op == "relu" else cut.args[1:]
            if type(cut.args[0]) is Value and not [e for e in ends if isinstance(e, (Value, Tensor))]:
                low, high = _within(low, high, scale, *ends)
                source = cut.args[0]
        product = alone(self._unmoved(source), self.uses)
        shift = product if product is not None and _is_shift(product) else None
        if shift is not None:
            product = alone(shift.args[1], self.uses)
        given = [p for p in (*product.args[1:3], shift and shift.args[2]) if isinstance(p, Tensor)] if product else []
        if product is not None and _takes_scale(product) and all(largest(p) / scale < FINITE for p in given):
            self.factors[product] = 1 / scale
            if shift is not None:
                shift.args = ("add", shift.args[1], _times(shift.args[2], 1 / scale))
            grid.args = (source, low, high)
        elif product is not None and product.op == "gelu" and not product.keywords and source.dtype is float32:
            product.method, product.args = gelu_over, (*product.args, scale)
            grid.args = (source, low, high)
        elif source is not divided.args[1]:
            divided.args = ("div", source, divided.args[2])
            grid.args = (grid.args[0], low, high)

    def _unmoved(self, x: Value) -> Value:
        """What x is, moved, if nothing else reads that: a multiple of it moves likewise."""
        call = alone(x, self.uses)
        while call is not None and call.op in ("reshape", "permute") and not call.keywords:
            x = call.args[0]
            call = alone(x, self.uses)
        return x

    def _later(self, call: Call) -> bool:
        """Whether the result of a call is a multiple of levels that nothing has to compute yet."""
        if call.keywords or len(call.results) != 1:
            return False
        if call.op == "binary":
            return self._scaled(call)
        result = call.results[0]
        if call.op == "level_table":
            self.ends[result] = float(call.args[1].min()), float(call.args[1].max())
            return False
        if call.op == "grid":
            x, low, high = call.args
            base, scale = self.levels.get(x, (x, 0.0))
            least, most = self.ends.get(base, (-np.inf, np.inf))
            if scale == 1.0 and low <= least and most <= high:
                self.levels[result] = base, 1.0
                return True
            self.ends[result] = low, high
            self._requantized(call)
            return False
        if call.op == "reduce":
            return self._summed(call)
        if call.op == "matmul":
            return self._multiplied(call)
        if call.op not in _MOVES or (call.op == "pool" and call.args[0] != "max"):
            return False
        operands = list(call.operands())
        bases = [self._base(v) for v in operands]
        found = {scale for _, scale in bases}
        if len(found) != 1 or None in found or any(isinstance(x, Tensor) for x in _parts(call.args)):
            return False
        bare = Call(call.op, call.method, tuple(self._bare(a) for a in call.args), {})
        between = Value(bare, 0, float32, result.shape, result.inputs)
        bare.results.append(between)
        bare.views = call.views
        self.calls.append(bare)
        ends = [self.ends[base] for base, _ in bases if base in self.ends]
        if len(ends) == len(bases) and (call.op != "pool" or sees_elements(call)):
            self.ends[between] = min(low for low, _ in ends), max(high for _, high in ends)
        if self.sums.issuperset(base for base, _ in bases):
            self.sums.add(between)
        self.levels[result] = between, found.pop()  # type: ignore[assignment]
        return True

    def _multiplied(self, call: Call) -> bool:
        """Whether a call multiplies levels by levels, and what is smaller takes both scales: an operand or the sums."""
        x, y = call.args
        if any(type(v) is not Value or v not in self.levels for v in (x, y)):
            return False
        (left, first), (right, second) = self.levels[x], self.levels[y]
        scale, result = first * second, call.results[0]
        if 1.0 in (first, second) or not SCALES[0] < scale < SCALES[1]:
            return False
        sizes = [math.prod(v.shape) for v in (x, y, result)]
        bare = Call("matmul", call.method, (left, right), {})
        bare.results.append(Value(bare, 0, float32, result.shape, result.inputs))
        if sizes[2] > sizes[0] + sizes[1]:
            at = int(sizes[1] < sizes[0])
            small = Call("binary", get_backend("numpy").binary, ("mul", bare.args[at], _constant(scale)), {})
            small.results.append(Value(small, 0, float32, (x, y)[at].shape, result.inputs))
            self.calls.append(small)
            bare.args = (small.results[0], right) if at == 0 else (left, small.results[0])
            scale = 1.0
        self.calls.append(bare)
        self.sums.add(bare.results[0])
        self.levels[result] = bare.results[0], scale
        return True

    def _summed(self, call: Call) -> bool:
        """Whether a call adds levels to sums that floats hold exactly."""
        op, x, *options = call.args
        base, scale = self._base(x) if type(x) is Value else (x, None)
        result = call.results[0]
        if op != "sum" or scale in (None, 1.0) or base not in self.ends or x in self.computed:
            return False
        count = math.prod(x.shape) // max(1, math.prod(result.shape))
        low, high = (end * count for end in self.ends[base])
        if max(-low, high) >= EXACT:
            return False
        bare = Call("reduce", call.method, (op, base, *options), {})
        bare.results.append(Value(bare, 0, float32, result.shape, result.inputs))
        self.calls.append(bare)
        self.ends[bare.results[0]] = low, high
        self.levels[result] = bare.results[0], scale
        return True

    def _scaled(self, call: Call) -> bool:
        """Whether a call multiplies levels by their scale, or divides a multiple by it to round it again."""
        op, x, step = call.args
        scale = number(step) if type(x) is Value and isinstance(step, Tensor) and not step.ndim else None
        if scale is None or not SCALES[0] < scale < SCALES[1] or step.dtype is not float32:
            return False
        result = call.results[0]
        if op in ("mul", "div") and x in self.levels and self.levels[x][0] in self.sums:
            base, before = self.levels[x]
            scale = before * scale if op == "mul" else before / scale
            if SCALES[0] < scale < SCALES[1]:
                self.levels[result] = base, scale
            return result in self.levels
        if op == "mul":
            base, known = self._base(x)
            if known != 1.0 or base not in self.ends:
                return False
            self.levels[result] = base, scale
            return True
        if op != "div" or x not in self.levels or self.levels[x][1] != scale:
            return False
        base = self.levels[x][0]
        least, most = self.ends.get(base, (-np.inf, np.inf))
        users = self.users.get(result, [])
        if result in self.trace.roots or not users:
            return False
        if not all(u.op == "grid" and u.args[1] <= least and most <= u.args[2] for u in users):
            return False
        self.levels[result] = base, 1.0
        return True

    def _requantized(self, grid: Call) -> None:
        """Let a grid round what it rounds of levels by one product, where that gives the same for each of them."""
        divided = alone(grid.args[0], self.uses)
        if divided is None or divided.op != "binary" or divided.args[0] != "div" or divided not in self.calls[-2:]:
            return
        base, scale = self._base(divided.args[1])
        step = number(divided.args[2])
        if scale is None or step is None or divided.args[1] not in self.computed or base not in self.ends:
            return
        least, most = self.ends[base]
        if most - least > _MANY or self.uses[divided.args[1]] != 1:
            return
        every = np.arange(least, most + 1, dtype=np.float32)
        factor = np.float32(scale / step)
        wanted = np.rint(every * np.float32(scale) / np.float32(step))
        if np.array_equal(np.rint(every * factor), wanted):
            self.calls = [c for c in self.calls if c is not divided and c is not divided.args[1].call]
            divided.args = ("mul", base, _constant(factor))
            self.calls.append(divided)
            _, low, high = grid.args
            if least >= 0 and low <= wanted[0] and wanted[-1] <= high:
                grid.op, grid.method, grid.args = "unary", get_backend("numpy").unary, ("round", grid.args[0])

    def _base(self, x: Value) -> tuple[Value, float | None]:
        """What a Value is a multiple of, and the scale; None for what no levels are known of."""
        return self.levels.get(x, (x, 1.0 if x in self.ends else None))

    def _bare(self, x: Any) -> Any:
        if type(x) is Value:
            return self._base(x)[0]
        return type(x)([self._bare(v) for v in x]) if type(x) in (list, tuple) else x

    def _now(self, call: Call) -> None:
        """Write a call, products with the scales in their weights."""
        factor = self.factors.get(call, 1.0)
        x = call.args[0] if call.args else None
        scale = 1.0
        if type(x) is Value and x in self.levels and _is_product(call):
            x, scale = self.levels[x]
        if scale * factor != 1.0 or x is not (call.args or (None,))[0]:
            call.args = (x, _times(call.args[1], scale * factor), *call.args[2:])
        if factor != 1.0 and call.op != "matmul" and call.args[2] is not None:
            call.args = (*call.args[:2], _times(call.args[2], factor), *call.args[3:])
        for value in call.operands():
            self._compute(value)
        self.calls.append(call)

    def _compute(self, value: Value) -> None:
        """Write the multiple that a Value is, unless it is there."""
        if value not in self.levels or value in self.computed:
            return
        self.computed.add(value)
        base, scale = self.levels[value]
        backend = get_backend("numpy")
        made = Call("binary", backend.binary, ("mul", base, _constant(scale)), {})
        if scale == 1.0:
            made = Call("reshape", backend.reshape, (base, base.shape), {})
        made.results.append(value)
        value.call = made
        self.calls.append(made)


def _is_shift(call: Call) -> bool:
    """Whether a call adds a constant to a product."""
    if call.op != "binary" or call.keywords or call.args[0] != "add" or type(call.args[1]) is not Value:
        return False
    made = call.args[1].call
    return made is not None and made.op == "matmul" and isinstance(call.args[2], Tensor)


def _parts(args: Any) -> list[Any]:
    return [v for a in args for v in (a if isinstance(a, (list, tuple)) else [a])]


def _constant(number: Any) -> Tensor:
    return Tensor(np.float32(number).reshape(()), float32, (), get_backend("numpy"))


def _is_product(call: Call) -> bool:
    """Whether a call multiplies a Value by constant float32 weights."""
    if call.op not in _PRODUCTS or call.keywords or type(call.args[0]) is not Value:
        return False
    given = call.args[1:3] if call.op != "matmul" else call.args[1:2]
    return all(p is None or (isinstance(p, Tensor) and p.dtype is float32) for p in given)


def _takes_scale(call: Call) -> bool:
    """Whether a call's constants can take a factor of its result: a product's, or those of a normalization."""
    if call.op != "layer_norm" or call.keywords:
        return _is_product(call)
    return all(isinstance(p, Tensor) and p.dtype is float32 for p in call.args[1:3])


def _times(x: Tensor, factor: float) -> Tensor:
    if factor == 1.0:
        return x
    data = (x.data.astype(np.float64) * factor).astype(np.float32)
    return Tensor(data, float32, data.shape, x.backend)


def _within(low: float, high: float, scale: float, least: Any, most: Any) -> tuple[float, float]:
    """The ends of a grid, and of what was cut to `least` and `most` before it was divided by the scale."""
    ends = [None if e is None else float(np.rint(np.float32(e) / np.float32(scale))) for e in (least, most)]
    first = low
    if ends[0] is not None:
        low = min(max(low, ends[0]), high)
    if ends[1] is not None:  # it decides where it is below the other
        high = max(min(high, ends[1]), first)
    return min(low, high), high
