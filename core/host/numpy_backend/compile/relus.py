"""Moves relu behind concatenation and max-pooling: one relu for the whole concatenation, or for fewer elements. So
moves behind max-pooling what rounds to levels, and a product with positive numbers before it.

Concatenation only places elements and max-pooling only selects them, so the results are the same.
"""

from __future__ import annotations

import math
from typing import Any

from ....backend.tracing import Trace
from ....tensor import Tensor
from .magnitudes import FINITE, largest
from .pooling import sees_elements
from .tracing import Call, Value


def delay(trace: Trace) -> None:
    """Change a trace so that relu runs behind concatenations of its results, and behind max-pooling."""
    uses: dict[Value, int] = {}
    for value in (*trace.roots, *(v for call in trace.calls for v in call.operands())):
        uses[value] = uses.get(value, 0) + 1
    gone: set[Call] = set()
    calls: list[Call] = []
    for call in trace.calls:
        if not _passes(call):
            calls.append(call)
            continue
        behind: list[Call] = []
        while (found := _moved(call, uses)) is not None:
            before, after, old = found
            gone.update(old)
            call, behind = before, [after, *behind]
        calls += [call, *behind]
    trace.calls = [c for c in calls if c not in gone]


def _moved(call: Call, uses: dict[Value, int]) -> tuple[Call, Call, list[Call]] | None:
    """(the concatenation or pooling of what its operands are computed from, the function behind it, the functions
    before it); None where there are none."""
    parts = call.args[0] if call.op == "concat" else call.args[1:2]
    before = [_function(x, uses, call) for x in parts]
    first = before[0] if before else None
    if first is None or None in before:
        return None
    old = [f for f in before if f is not None]
    bare = [f.args[_operand(f)] for f in old]
    args = (bare, *call.args[1:]) if call.op == "concat" else (call.args[0], bare[0], *call.args[2:])
    moved = Call(call.op, call.method, args, {})
    result = call.results[0]
    between = Value(moved, 0, result.dtype, result.shape, result.inputs)
    moved.results.append(between)
    at = _operand(first)
    after = Call(first.op, first.method, (*first.args[:at], between, *first.args[at + 1 :]), {})
    after.results.append(result)
    result.call = after
    uses[between] = 1
    return moved, after, old


def _operand(call: Call) -> int:
    """Which argument a function is of."""
    return 1 if call.op == "binary" else 0


def _function(x: Any, uses: dict[Value, int], user: Call) -> Call | None:
    """The relu, or before max-pooling any function that keeps the order of a channel's elements, that computes x, if
    nothing but `user` reads x; else None."""
    call = x.call if type(x) is Value else None
    if call is None or call.keywords or uses[x] != 1 or len(call.results) != 1:
        return None
    if call.op == "relu":
        return call
    if user.op != "pool":
        return None
    if call.op == "grid":
        return call if largest(call.args[0]) < FINITE else None  # NaN is the least level, but the largest of a window
    if call.op != "binary" or call.args[0] != "mul" or type(call.args[1]) is not Value:
        return None
    factor, channel = call.args[2], len(x.shape) - len(user.args[2])
    if not isinstance(factor, Tensor) or call.args[1].shape != x.shape or not factor.size:
        return None
    if not x.dtype.is_float:
        return None  # products of integers wrap
    spatial = factor.shape[max(0, channel - len(x.shape) + factor.ndim) :]
    keeps_order = bool(((factor.data > 0) & (factor.data < math.inf)).all())  # 0 times infinity is NaN
    return call if all(n == 1 for n in spatial) and keeps_order else None


def _passes(call: Call) -> bool:
    """Whether relu can be moved behind a Call without changing the result."""
    if call.keywords:
        return False
    return call.op == "concat" or (call.op == "pool" and call.args[0] == "max" and sees_elements(call))
