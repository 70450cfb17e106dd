"""What passes over a trace ask of its calls."""

from __future__ import annotations

from typing import Any

from ....backend.tracing import Trace
from ....tensor import Tensor
from .tracing import Call, Value


def needed_calls(trace: Trace) -> set[Call]:
    """The Calls that the results depend on, and those that refuse indices."""
    found: set[Call] = set()
    stack = [*(v.call for v in trace.roots if v.call), *(c for c in trace.calls if c.op == "checked")]
    while stack:
        call = stack.pop()
        if call not in found:
            found.add(call)
            stack.extend(v.call for v in call.operands() if v.call)
    return found


def number(x: Any, missing: float | None = None) -> float | None:
    """A constant of one number, None for others."""
    if x is None:
        return missing
    return float(x.data.reshape(())) if isinstance(x, Tensor) and x.size == 1 else None


def live(trace: Trace) -> list[Call]:
    """The calls that results depend on, without those that give a Value as it is."""
    needed, roots = needed_calls(trace), set(trace.roots)
    same: dict[Value, Value] = {}

    def found(x: Any) -> Any:
        if type(x) is Value:
            return same.get(x, x)
        return type(x)([found(v) for v in x]) if type(x) in (list, tuple) else x

    calls = []
    for call in trace.calls:
        if call not in needed:
            continue
        call.args = tuple(found(x) for x in call.args)
        call.keywords = {name: found(x) for name, x in call.keywords.items()}
        x = call.args[0] if call.op == "reshape" and not call.keywords else None
        result = call.results[0] if call.results else None
        if type(x) is Value and result is not None and x.shape == result.shape and result not in roots:
            same[result] = x
        else:
            calls.append(call)
    return calls


def counts(roots: list[Value], calls: list[Call]) -> dict[Value, int]:
    """How often each Value is read."""
    uses: dict[Value, int] = {}
    for value in (*roots, *(v for call in calls for v in call.operands())):
        uses[value] = uses.get(value, 0) + 1
    return uses


def alone(x: Any, uses: dict[Value, int]) -> Call | None:
    """What computes x, if it is read once."""
    return x.call if type(x) is Value and uses[x] == 1 else None
