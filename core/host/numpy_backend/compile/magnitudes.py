"""How large the numbers of a Value can be, as far as that follows from levels and constants: no such number is NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tensor import Tensor
from .pooling import sees_elements
from .tracing import Call, Value

FINITE = 1e30  # what is less is not NaN, nor are sums of it
_DEEPEST = 48  # calls that are followed back
_MOST = 1e38  # what is larger may be infinite in float32, and NaN in what follows
_SQUARED = 1e12  # sums of squares of what is less are finite
_SLACK = 1.001  # of rounding
# These give elements of a tensor, or their own bounds.
_MOVES = ("relu", "clip", "reshape", "permute", "expand", "slice", "take", "pad")


def largest(x: Any) -> float:
    """The largest magnitude of a Value or constant of floats; infinite where it is not known."""
    return _Magnitudes().of(x, _DEEPEST)


class _Magnitudes:
    """What is found on the way: a value that several calls read is looked at once."""

    def __init__(self) -> None:
        self._known: dict[Value, float] = {}

    def of(self, x: Any, depth: int) -> float:
        if isinstance(x, Tensor):
            found = float(np.max(np.abs(x.data))) if x.dtype.is_float and x.size else math.inf
            return found if found < math.inf else math.inf  # of NaN, too
        if type(x) is not Value or not x.dtype.is_float or x.call is None or not depth:
            return math.inf
        if x not in self._known:
            found = self._of_call(x.call, depth - 1)
            self._known[x] = found if found < _MOST else math.inf
        return self._known[x]

    def _of_call(self, call: Call, depth: int) -> float:
        args = call.args
        if call.op == "grid":
            return max(abs(float(n)) for n in args[1:3])
        if call.op == "level_table":
            return float(np.abs(args[1]).max())
        if call.op in _MOVES:
            return self._of_elements(call.op, args, depth)
        if call.op == "pool" and args[0] == "max" and sees_elements(call):
            return self.of(args[1], depth)
        if call.op == "pool" and args[0] == "sum":
            return self.of(args[1], depth) * math.prod(args[2])
        if call.op == "unary" and args[0] == "round":
            return self.of(args[1], depth) + 1
        if call.op == "concat":
            return max(self.of(x, depth) for x in args[0])
        if call.op == "reduce" and args[0] == "sum":
            return self.of(args[1], depth) * math.prod(args[1].shape)
        if call.op == "conv" and isinstance(args[1], Tensor) and isinstance(args[2], (Tensor, type(None))):
            bias = 0.0 if args[2] is None else self.of(args[2], 0)
            return self.of(args[0], depth) * self.of(args[1], 0) * math.prod(args[1].shape[1:]) + bias
        if call.op in ("matmul", "linear"):
            return self._sums(depth, *args)
        return self._of_binary(args, depth) if call.op == "binary" else self._of_bounded(call, depth)

    def _of_elements(self, op: str, args: tuple[Any, ...], depth: int) -> float:
        """Of a tensor's elements, cut, moved or beside others."""
        if op != "take" and any(isinstance(a, (Value, Tensor)) for a in args[1:]):
            return math.inf
        ends = {"clip": args[1:], "pad": args[2:]}.get(op, ())
        sizes = [abs(float(n)) for n in ends if n is not None]
        if any(map(math.isnan, sizes)) or (op == "pad" and sizes[0] == math.inf):
            return math.inf
        return max(self.of(args[0], depth), *(n for n in sizes if n < math.inf), 0.0)

    def _sums(self, depth: int, x: Any, weight: Any, bias: Any = None) -> float:
        """Of sums of products along the last axis of x."""
        shift = 0.0 if bias is None else self.of(bias, depth)
        return self._product(x, weight, depth) * x.shape[-1] + shift

    def _of_bounded(self, call: Call, depth: int) -> float:
        """Of a function that is bounded for numbers, but NaN of NaN."""
        if call.op == "layer_norm":
            return self._normalized(call.args, depth)
        if call.op == "gelu":
            return self.of(call.args[0], depth) * _SLACK / (call.args[2] if len(call.args) > 2 else 1)
        if call.op == "dot_product_attention":
            return self._attended(depth, *call.args)
        unary = call.op == "unary" and call.args[0] in ("tanh", "erf")
        if not unary and call.op not in ("softmax", "sigmoid"):
            return math.inf
        return 1.0 if self.of(call.args[1 if unary else 0], depth) < math.inf else math.inf

    def _attended(
        self,
        depth: int,
        q: Any,
        keys: Any,
        values: Any,
        bias: Any,
        scale: float,
        softcap: float,
        blind: bool,
        sink: Any,
    ) -> float:
        """Of means of values, by the softmax of finite scores."""
        scores = self._product(q, keys, depth) * q.shape[3] * abs(scale)
        if bias is not None or sink is not None or not keys.shape[2] or not scores < _MOST:
            return math.inf
        most = self.of(values, depth) * _SLACK
        return most if most * keys.shape[2] < _MOST else math.inf

    def _normalized(self, args: tuple[Any, ...], depth: int) -> float:
        """Of a normal distribution's numbers, of which none is larger than the root of their number."""
        x, weight, bias, epsilon, axis = args
        if not epsilon > 0 or self.of(x, depth) > _SQUARED:
            return math.inf
        scale = 1.0 if weight is None else self.of(weight, 0)
        return math.sqrt(math.prod(x.shape[axis:])) * scale * _SLACK + (0.0 if bias is None else self.of(bias, 0))

    def _of_binary(self, args: tuple[Any, ...], depth: int) -> float:
        op, a, b = args
        if op == "div":
            least = self._least(b, depth)
            return self.of(a, depth) / least if least > 0 else math.inf
        if op == "mul":
            return self._product(a, b, depth)
        return self.of(a, depth) + self.of(b, depth) if op in ("add", "sub", "maximum", "minimum") else math.inf

    def _least(self, x: Any, depth: int) -> float:
        """The smallest magnitude of a constant, or of the root of a variance and a constant; 0 of others."""
        if isinstance(x, Tensor):
            return float(np.min(np.abs(x.data))) if x.size else 0.0
        call = x.call
        if call is None or call.op != "unary" or call.args[0] != "sqrt" or type(call.args[1]) is not Value:
            return 0.0
        call = call.args[1].call
        if call is None or call.op != "binary" or call.args[0] != "add" or not isinstance(call.args[2], Tensor):
            return 0.0
        squares, shift = call.args[1:]
        known = _is_positive(squares) and shift.size and self.of(squares, depth) < _MOST
        return math.sqrt(max(float(np.min(shift.data)), 0.0)) / _SLACK if known else 0.0

    def _product(self, a: Any, b: Any, depth: int) -> float:
        left, right = self.of(a, depth), self.of(b, depth)
        return math.inf if math.inf in (left, right) else left * right


def _is_positive(x: Any) -> bool:
    """Whether x is a sum of squares, or its part, which is not below 0."""
    call = x.call if type(x) is Value else None
    if call is None or call.keywords:
        return False
    if call.op == "reduce":
        return call.args[0] == "sum" and _is_positive(call.args[1])
    if call.op == "reshape":
        return _is_positive(call.args[0])
    if call.op != "binary":
        return False
    op, a, b = call.args
    if op == "div" and isinstance(b, Tensor):
        return bool((b.data > 0).all()) and _is_positive(a)
    return bool(op == "mul" and a is b)
