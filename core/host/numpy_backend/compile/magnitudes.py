"""How large the numbers of a Value can be, as far as that follows from levels and constants: no such number is NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tensor import Tensor
from .tracing import Call, Value

_DEEPEST = 24  # calls that are followed back
_MOST = 1e38  # what is larger may be infinite in float32, and NaN in what follows
_SAME = ("relu", "clip", "reshape", "permute", "expand", "slice")  # give no larger numbers


def largest(x: Any, depth: int = _DEEPEST) -> float:
    """The largest magnitude of a Value or constant of floats; infinite where it is not known."""
    if isinstance(x, Tensor):
        found = float(np.max(np.abs(x.data))) if x.dtype.is_float and x.size else math.inf
        return found if found < math.inf else math.inf  # of NaN, too
    call = x.call if type(x) is Value and x.dtype.is_float and depth else None
    found = math.inf if call is None else _of_call(call, depth - 1)
    return found if found < _MOST else math.inf


def _of_call(call: Call, depth: int) -> float:
    args = call.args
    if call.op == "grid":
        return max(abs(float(n)) for n in args[1:3])
    if call.op in _SAME and not [a for a in args[1:] if isinstance(a, (Value, Tensor))]:
        return largest(args[0], depth)
    if call.op == "reduce" and args[0] == "sum":
        return largest(args[1], depth) * math.prod(args[1].shape)
    if call.op == "conv" and isinstance(args[1], Tensor) and isinstance(args[2], (Tensor, type(None))):
        bias = 0.0 if args[2] is None else largest(args[2])
        return largest(args[0], depth) * largest(args[1]) * math.prod(args[1].shape[1:]) + bias
    if call.op == "matmul":
        return largest(args[0], depth) * largest(args[1], depth) * args[0].shape[-1]
    return _of_binary(args, depth) if call.op == "binary" else math.inf


def _of_binary(args: tuple[Any, ...], depth: int) -> float:
    op, a, b = args
    if op == "div":
        least = float(np.min(np.abs(b.data))) if isinstance(b, Tensor) and b.size else 0.0
        return largest(a, depth) / least if least > 0 else math.inf
    if op not in ("mul", "add", "sub", "maximum", "minimum"):
        return math.inf
    left, right = largest(a, depth), largest(b, depth)
    if math.inf in (left, right):
        return math.inf
    return left * right if op == "mul" else left + right
