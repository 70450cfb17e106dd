"""Concatenations of which one part lies on the grid that the whole is quantized to: their parts are quantized."""

from __future__ import annotations

from typing import Any

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import float32
from ....tensor import Tensor
from .level_tables import look_up
from .operands import alone, counts, live, number
from .tracing import Call, Value


def split_joined(trace: Trace) -> None:
    """Change a trace so that a concatenation that is quantized is one of quantized parts, if one is already."""
    calls = live(trace)
    uses = counts(trace.roots, calls)
    backend = get_backend("numpy")
    gone: set[Call] = set()
    kept: list[Call] = []
    for call in calls:
        divided = alone(call.args[0], uses) if call.op == "grid" else None
        joined = alone(divided.args[1], uses) if divided and divided.op == "binary" else None
        if divided is None or joined is None or joined.op != "concat" or divided.args[0] != "div":
            kept.append(call)
            continue
        step = number(divided.args[2])
        if step is None or not any(_scale(x) == step for x in joined.args[0]):
            kept.append(call)
            continue
        gone.update((divided, joined))
        parts = []
        for x in joined.args[0]:
            each = Call("binary", backend.binary, ("div", x, divided.args[2]), {})
            each.results.append(Value(each, 0, float32, x.shape, call.results[0].inputs))
            rounded = Call("grid", call.method, (each.results[0], *call.args[1:]), {})
            rounded.results.append(Value(rounded, 0, float32, x.shape, call.results[0].inputs))
            at = kept.index(x.call) + 1 if type(x) is Value and x.call in kept else len(kept)
            kept[at:at] = [each, rounded]
            parts.append(rounded.results[0])
        whole = Call("concat", joined.method, (parts, joined.args[1]), {})
        whole.results.append(call.results[0])
        call.results[0].call = whole
        kept.append(whole)
    trace.calls = look_up([call for call in kept if call not in gone], trace.roots)


def _scale(x: Any) -> float | None:
    """The scale of levels that are dequantized; None for others."""
    call = x.call if type(x) is Value else None
    if call is None or call.op != "binary" or call.args[0] != "mul" or type(call.args[1]) is not Value:
        return None
    made = call.args[1].call
    scale = call.args[2]
    whole = isinstance(scale, Tensor) and not scale.ndim and made is not None and made.op == "grid"
    return number(scale) if whole else None
