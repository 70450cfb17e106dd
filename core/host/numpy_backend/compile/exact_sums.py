"""Sums of products of integers as floats, where these hold them exactly: BLAS multiplies floats, and what is before and
after a product needs no conversions then."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import float32, int32
from ....tensor import Tensor
from . import ranges
from .tracing import Call, Value

EXACT = 1 << 24
_LARGEST = 255  # of the operands, without their zero points


class _Sums:
    """A walk over a trace. floats: int32 Values -> the floats that equal them, and the largest that these can be;
    operands: what products read -> the floats that equal it, which several products share."""

    def __init__(self) -> None:
        self.backend = get_backend("numpy")
        self.operands: dict[Value, Value | None] = {}
        self.floats: dict[Value, tuple[Value, float]] = {}
        self.uses: dict[Value, int] = {}
        self.calls: list[Call] = []

    def emit(self, op: str, arguments: tuple[Any, ...], like: Value) -> Value:
        call = Call(op, getattr(self.backend, op), arguments, {})
        value = Value(call, 0, float32, like.shape, like.inputs)
        call.results.append(value)
        self.calls.append(call)
        return value

    def constant(self, x: Any) -> Tensor:
        data = np.asarray(x, np.float32, order="C")  # BLAS takes a third longer for a few rows times a turned matrix
        return Tensor(data, float32, data.shape, self.backend)

    def operand(self, x: Value) -> Value | None:
        """The integers that a product reads, as floats: 8-bit levels less their zero point."""
        if x not in self.operands:
            self.operands[x] = self._operand(x)
        return self.operands[x]

    def _operand(self, x: Value) -> Value | None:
        call, zero = x.call, None
        if call is not None and call.op == "reshape" and not call.keywords and type(call.args[0]) is Value:
            whole = self.operand(call.args[0])
            return None if whole is None else self.emit("reshape", (whole, x.shape), x)
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
        if type(zero) is Value:  # of the range of the call
            found, point = levels.call, zero.call.args[0] if zero.call is not None and zero.call.op == "cast" else zero
            if found is not None and found.op == "range_levels" and point is found.results[2]:
                return ranges.as_floats(found)
            parts = [self.emit("cast", (each, float32), each) for each in (levels, zero)]
            return self.emit("binary", ("sub", *parts), levels)
        point = None if zero is None else Tensor(zero.data.reshape(()), zero.dtype, (), self.backend)
        return self.emit("from_levels", (levels, point, self.constant(1.0)), levels)

    def product(self, call: Call) -> None:
        """The floats of a product of what is computed with a constant."""
        x, weight, *rest = call.args
        if call.keywords or type(x) is not Value or not isinstance(weight, Tensor) or not weight.size:
            return
        axes = tuple(range(1, weight.ndim)) if call.op == "conv_8bit" else (-2,)
        largest = float(np.abs(weight.data).sum(axes).max()) * _LARGEST
        given = self.operand(x) if largest < EXACT else None
        if given is None:
            return
        op = "conv" if call.op == "conv_8bit" else "matmul"
        made = self.emit(op, (given, self.constant(weight.data), *rest), call.results[0])
        self.floats[call.results[0]] = made, largest

    def added(self, call: Call) -> None:
        """The floats of sums that integers are added to."""
        op, x, y = call.args
        found = self.floats.get(x) if op == "add" and type(x) is Value else None
        if found is None or not isinstance(y, Tensor) or y.dtype is not int32 or not y.size:
            return
        largest = found[1] + float(np.abs(y.data.astype(np.float64)).max())
        if largest < EXACT:
            result = call.results[0]
            product = found[0].call
            if product is not None and product.op == "conv" and self.uses[x] == 1 and product.args[2] is None:
                shape = (1,) * (len(x.shape) - y.ndim) + tuple(y.shape)
                if shape == (1, x.shape[1], *(1,) * (len(x.shape) - 2)):
                    product.args = (*product.args[:2], self.constant(y.data.reshape(-1)), *product.args[3:])
                    self.floats[result] = found[0], largest
                    return
            self.floats[result] = self.emit("binary", ("add", found[0], self.constant(y.data)), result), largest

    def read(self, call: Call) -> None:
        """Sums that are converted to floats are these floats already: the call is changed."""
        x, dtype, *rest = call.args
        if type(x) is Value and x in self.floats and dtype is float32 and not any(rest) and not call.keywords:
            call.op, call.method, call.args = "reshape", self.backend.reshape, (self.floats[x][0], x.shape)


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
