"""Sums of products of integers as floats, where these hold them exactly: BLAS multiplies floats, and what is before and
after a product needs no conversions then."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import float32, int32
from ....tensor import Tensor
from ..storage import Array
from . import ranges
from .of_integers import Ends, OfIntegers
from .operands import live
from .tracing import Call, Value

EXACT = 1 << 24


class _Sum(NamedTuple):
    """What a sum of integers is as floats: that of a product, or those of its two halves, which are added last, and the
    largest that each can be, or any sum of some of its terms."""

    parts: list[Value]
    largest: list[float]


class _Operand(NamedTuple):
    """The integers that a product reads, as floats, and the least and the largest that these can be, which lie around
    0: for each zero point that they may have, if it is found in the call."""

    value: Value
    ends: list[Ends]


class _Sums:
    """A walk over a trace. floats: int32 Values -> the floats that equal them; operands: what products read -> the
    floats that equal it, which several products share."""

    def __init__(self) -> None:
        self.backend = get_backend("numpy")
        self.operands: dict[Value, _Operand | None] = {}
        self.floats: dict[Value, _Sum] = {}
        self.uses: dict[Value, int] = {}
        self.calls: list[Call] = []

    def emit(self, op: str, arguments: tuple[Any, ...], like: Value, shape: tuple[int, ...] | None = None) -> Value:
        call = Call(op, getattr(self.backend, op), arguments, {})
        value = Value(call, 0, float32, like.shape if shape is None else shape, like.inputs)
        call.results.append(value)
        self.calls.append(call)
        return value

    def constant(self, x: Any) -> Tensor:
        data = np.asarray(x, np.float32, order="C")  # BLAS takes a third longer for a few rows times a turned matrix
        return Tensor(data, float32, data.shape, self.backend)

    def operand(self, x: Value) -> _Operand | None:
        """The integers that a product reads, as floats: 8-bit levels less their zero point."""
        if x not in self.operands:
            self.operands[x] = self._operand(x)
        return self.operands[x]

    def _operand(self, x: Value) -> _Operand | None:
        call, zero = x.call, None
        if call is not None and call.op == "reshape" and not call.keywords and type(call.args[0]) is Value:
            whole = self.operand(call.args[0])
            return None if whole is None else whole._replace(value=self.emit("reshape", (whole.value, x.shape), x))
        if call is not None and call.op == "binary" and call.args[0] == "sub":
            _, x, zero = call.args
            if math.prod(zero.shape) != 1 or len(zero.shape) > len(x.shape):
                return None
            call = x.call if type(x) is Value else None
        if call is None or call.op != "cast" or type(call.args[0]) is not Value or call.keywords:
            return None
        levels = call.args[0]
        if levels.dtype.bits != 8 or not levels.dtype.is_integer:
            return None
        low, high = levels.dtype.range
        if type(zero) is Value:  # of the range of the call
            return _Operand(self._centered(levels, zero), [(0, high - low), (low - high, 0)])
        point = None if zero is None else Tensor(zero.data.reshape(()), zero.dtype, (), self.backend)
        shift = 0 if zero is None else int(zero.data.reshape(()))
        floats = self.emit("from_levels", (levels, point, self.constant(1.0)), levels)
        return _Operand(floats, [(min(low - shift, 0), max(high - shift, 0))])

    def _centered(self, levels: Value, zero: Value) -> Value:
        """Levels less a zero point that is found in the call."""
        found, point = levels.call, zero.call.args[0] if zero.call is not None and zero.call.op == "cast" else zero
        if found is not None and found.op == "range_levels" and point is found.results[2]:
            return ranges.as_floats(found)
        parts = [self.emit("cast", (each, float32), each) for each in (levels, zero)]
        return self.emit("binary", ("sub", *parts), levels)

    def product(self, call: Call) -> None:
        """The floats of a product of what is computed with a constant: in two halves where a sum of all of its terms
        might be too large for floats. The sum of the halves is rounded once, as the whole sum is."""
        x, weight, *rest = call.args
        if call.keywords or type(x) is not Value or not isinstance(weight, Tensor) or not weight.size:
            return
        conv = call.op == "conv_8bit"
        axis, channels = (1, 1) if conv else (weight.ndim - 2, len(x.shape) - 1)  # that are added, of both operands
        count = weight.shape[axis]
        grouped = conv and rest[-1] != 1
        for cuts in ([(0, count)], [(0, count // 2), (count // 2, count)]):
            weights = [weight.data[(*(slice(None),) * axis, slice(*cut))] for cut in cuts]
            axes = tuple(range(1, weight.ndim)) if conv else (axis,)
            given = self.operand(x)
            if given is None or (len(cuts) > 1 and (grouped or count < 2)):
                return
            largest = [largest_sum(each, axes, given.ends) for each in weights]
            if max(largest) < EXACT:
                parts = []
                for cut, each in zip(cuts, weights, strict=True):
                    part = given.value if len(cuts) == 1 else self._slice(given.value, channels, *cut)
                    factor = self.constant(each)
                    made = self.emit("conv" if conv else "matmul", (part, factor, *rest), call.results[0])
                    if made.call is not None:
                        made.call.method = OfIntegers(made.call.op, factor, given.ends)
                    parts.append(made)
                self.floats[call.results[0]] = _Sum(parts, largest)
                return

    def _slice(self, x: Value, axis: int, start: int, stop: int) -> Value:
        """x from start to stop along an axis."""
        starts = [start if i == axis else 0 for i in range(len(x.shape))]
        sizes = tuple(stop - start if i == axis else n for i, n in enumerate(x.shape))
        return self.emit("slice", (x, starts, sizes, [1] * len(starts)), x, sizes)

    def added(self, call: Call) -> None:
        """The floats of sums that integers are added to."""
        op, x, y = call.args
        found = self.floats.get(x) if op == "add" and type(x) is Value else None
        if found is None or not isinstance(y, Tensor) or y.dtype is not int32 or not y.size:
            return
        at = found.largest.index(min(found.largest))
        parts, bounds = list(found.parts), list(found.largest)
        bounds[at] += float(np.abs(y.data.astype(np.float64)).max())
        if bounds[at] >= EXACT:
            return
        result = call.results[0]
        product = parts[at].call
        self.floats[result] = _Sum(parts, bounds)
        if product is not None and product.op == "conv" and self.uses[x] == 1 and product.args[2] is None:
            shape = (1,) * (len(x.shape) - y.ndim) + tuple(y.shape)
            if shape == (1, x.shape[1], *(1,) * (len(x.shape) - 2)):
                product.args = (*product.args[:2], self.constant(y.data.reshape(-1)), *product.args[3:])
                return
        parts[at] = self.emit("binary", ("add", parts[at], self.constant(y.data)), result)

    def read(self, call: Call) -> None:
        """Sums that are converted to floats are these floats already: the call is changed."""
        x, dtype, *rest = call.args
        if type(x) is not Value or x not in self.floats or dtype is not float32 or any(rest) or call.keywords:
            return
        first, *others = self.floats[x].parts
        if others:
            call.op, call.method, call.args = "binary", self.backend.binary, ("add", first, *others)
        else:
            call.op, call.method, call.args = "reshape", self.backend.reshape, (first, x.shape)


def largest_sum(weights: Array, axes: tuple[int, ...], ends: list[Ends]) -> float:
    """The largest of `largest_sums`."""
    return float(largest_sums(weights, axes, ends).max())


def largest_sums(weights: Array, axes: tuple[int, ...], ends: list[Ends]) -> Array:
    """The largest magnitude of each sum of products of weights along axes with numbers between ends, which lie around
    0, or of some of these products."""
    positive = np.maximum(weights, 0).sum(axes, dtype=np.int64)
    negative = positive - weights.sum(axes, dtype=np.int64)
    both = [(positive * high - negative * low, negative * high - positive * low) for low, high in ends]
    return np.max([x for pair in both for x in pair], axis=0)


def keep_floats(trace: Trace) -> None:
    """Change a trace so that sums of integers that floats hold exactly are floats."""
    if not any(call.op in ("conv_8bit", "matmul_8bit") for call in trace.calls):
        return
    sums = _Sums()
    for value in (*trace.roots, *(v for call in trace.calls for v in call.operands())):
        sums.uses[value] = sums.uses.get(value, 0) + 1
    for call in trace.calls:
        sums.calls.append(call)
        if call.op in ("conv_8bit", "matmul_8bit"):
            sums.product(call)
        elif call.op == "binary" and not call.keywords:
            sums.added(call)
        elif call.op == "cast":
            sums.read(call)
    trace.calls = _used(sums.calls, trace.roots)
    trace.calls = live(trace)  # sums that are floats lie as what computes them


def _used(calls: list[Call], roots: list[Value]) -> list[Call]:
    """The calls without those of which nothing reads the results any more."""
    read = set(roots)
    kept = []
    for call in reversed(calls):
        if call.op in ("cast", "binary", "conv_8bit", "matmul_8bit") and not any(r in read for r in call.results):
            continue
        read.update(call.operands())
        kept.append(call)
    return kept[::-1]
