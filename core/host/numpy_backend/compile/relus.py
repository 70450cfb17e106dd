"""Moves relu behind concatenation and max-pooling: one relu for the whole concatenation, or for fewer elements.

Concatenation only places elements and max-pooling only selects them, so the results are the same.
"""

from __future__ import annotations

from typing import Any

from ....backend.tracing import Trace
from .tracing import Call, Value


def delay(trace: Trace) -> None:
    """Change a trace so that relu runs behind concatenations of its results, and behind max-pooling."""
    uses: dict[Value, int] = {}
    for value in (*trace.roots, *(v for call in trace.calls for v in call.operands())):
        uses[value] = uses.get(value, 0) + 1
    gone: set[Call] = set()
    calls: list[Call] = []
    for call in trace.calls:
        parts = call.args[0] if call.op == "concat" else call.args[1:2]
        relus = [_relu(x, uses) for x in parts] if _passes(call) else []
        first = relus[0] if relus else None
        if first is None or None in relus:
            calls.append(call)
            continue
        gone.update(r for r in relus if r is not None)
        bare = [r.args[0] for r in relus if r is not None]
        args = (bare, *call.args[1:]) if call.op == "concat" else (call.args[0], bare[0], *call.args[2:])
        before = Call(call.op, call.method, args, {})
        result = call.results[0]
        between = Value(before, 0, result.dtype, result.shape, result.inputs)
        before.results.append(between)
        after = Call(first.op, first.method, (between,), {})
        after.results.append(result)
        result.call = after
        uses[between] = 1
        calls += [before, after]
    trace.calls = [c for c in calls if c not in gone]


def _relu(x: Any, uses: dict[Value, int]) -> Call | None:
    """The relu that computes x, if x is used only once; else None."""
    call = x.call if type(x) is Value else None
    return call if call is not None and call.op == "relu" and not call.keywords and uses[x] == 1 else None


def _passes(call: Call) -> bool:
    """Whether relu can be moved behind a Call without changing the result."""
    if call.keywords:
        return False
    return call.op == "concat" or (call.op == "pool" and call.args[0] == "max" and _sees_elements(call))


def _sees_elements(call: Call) -> bool:
    """Whether no pooling window lies entirely in the border, whose elements are less than 0."""
    _, x, kernel, stride, padding, dilation = call.args
    return all(
        any(0 <= start + k * d < n for k in range(taps))
        for n, out, taps, s, (low, _), d in zip(
            x.shape[2:], call.results[0].shape[2:], kernel, stride, padding, dilation, strict=True
        )
        for start in range(-low, out * s - low, s)
    )
