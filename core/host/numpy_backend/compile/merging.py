"""Merges what a trace records several times: layers that quantize the same tensor by its range each find that, and its
levels, for themselves."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ....backend.tracing import Trace
from ....tensor import Tensor
from .tracing import Call, Value

_PURE = ("unary", "binary", "where", "cast", "reduce", "to_levels", "range_levels", "checked")


def merge(trace: Trace) -> None:
    """Compute equal values of a trace with products of integers once."""
    if not any(call.op in ("conv_8bit", "matmul_8bit") for call in trace.calls):
        return
    first: dict[Hashable, Call] = {}
    same: dict[Value, Value] = {}
    roots, kept = set(trace.roots), []
    for call in trace.calls:
        if same:
            call.args = _replaced(call.args, same)
            call.keywords = {name: _replaced(each, same) for name, each in call.keywords.items()}
        key = _key(call)
        found = call if key is None else first.setdefault(key, call)
        if found is call or roots.intersection(call.results):
            kept.append(call)
        else:
            same.update(zip(call.results, found.results, strict=True))
    trace.calls = kept


def _replaced(given: Any, same: dict[Value, Value]) -> Any:
    if type(given) is Value:
        return same.get(given, given)
    return type(given)([_replaced(each, same) for each in given]) if type(given) in (tuple, list) else given


def _key(call: Call) -> Hashable | None:
    if call.op not in _PURE or call.keywords:
        return None
    return call.op, call.results[0].dtype.name, tuple(_part(each) for each in call.args)


def _part(each: Any) -> Hashable:
    if isinstance(each, Tensor) and each.size == 1:
        return each.dtype.name, tuple(each.shape), each.data.tobytes()
    return id(each) if type(each) is Value or isinstance(each, Tensor) else repr(each)
