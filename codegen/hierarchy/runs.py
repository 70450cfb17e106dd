"""Loops: consecutive calls of one list's modules that differ only in the carried values and in per-iteration inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.graph import Node
from ..ir.types import TensorType
from .invoke import Invoke, Repeat, RepeatConfig

LEAST = 2


def looped(nodes: Sequence[Node[Any]], results: set[str], lengths: Mapping[tuple[str, ...], int]) -> list[Node[Any]]:
    """The nodes, with calls of consecutive items of a list as loops. results: the values read after all of them.
    lengths: the number of items of each list without gaps in its numbering."""
    out: list[Node[Any]] = []
    i = 0
    while i < len(nodes):
        node = nodes[i]
        run = _run(nodes, i) if isinstance(node, Invoke) else []
        made = None
        while len(run) >= LEAST and made is None:
            made = _loop(run, nodes[i + len(run) :], results, lengths)
            if made is None:
                run = run[:-1]
        if made is not None:
            out.append(made)
            i += len(run)
        else:
            out.append(node)
            i += 1
    return out


def _run(nodes: Sequence[Node[Any]], i: int) -> list[Invoke]:
    run: list[Invoke] = []
    for node in nodes[i:]:
        if not isinstance(node, Invoke) or not node.config.place or not node.config.place[-1].isdigit():
            break
        if run:
            last, place = run[-1].config.place, node.config.place
            same = place[:-1] == last[:-1] and int(place[-1]) == int(last[-1]) + 1
            if not same or (len(node.inputs), len(node.outputs)) != (len(run[0].inputs), len(run[0].outputs)):
                break
        run.append(node)
    return run


def _passed(run: Sequence[Invoke]) -> tuple[list[tuple[int, int]], list[int]] | None:
    """(input, output) of what each call takes from the call before, and the inputs that differ from call to call; None
    if a call takes anything else from another one."""
    carried: list[tuple[int, int]] = []
    own: list[int] = []
    made = {o.name: (k, j) for k, call in enumerate(run) for j, o in enumerate(call.outputs)}
    for i in range(len(run[0].inputs)):
        names = [call.inputs[i].name for call in run]
        froms = [made.get(n) for n in names]
        if len(set(names)) == 1 and froms[0] is None:
            continue
        before = [f for f in froms[1:] if f is not None]
        if froms[0] is None and len(before) == len(run) - 1 and len({j for _, j in before}) == 1:
            if all(k == n for n, (k, _) in enumerate(before)):
                carried.append((i, before[0][1]))
                continue
        if any(f is not None for f in froms):
            return None
        own.append(i)
    return carried, own


def _loop(
    run: Sequence[Invoke],
    rest: Sequence[Node[Any]],
    results: set[str],
    lengths: Mapping[tuple[str, ...], int],
) -> Repeat | None:
    first = run[0]
    length = lengths.get(first.config.place[:-1])
    if length is None:
        return None
    passed = _passed(run)
    if passed is None:
        return None
    carried, own = passed
    outs = [o for _, o in carried]
    if len(set(outs)) < len(outs):
        return None
    after = set(results)
    for node in rest:
        after.update(a.name for a in node.uses())
    if any(call.outputs[j].name in after for j in outs for call in run[:-1]):
        return None
    collected = [
        j for j in range(len(first.outputs)) if j not in outs and any(call.outputs[j].name in after for call in run)
    ]
    if not carried and not collected:
        return None
    if not all(isinstance(call.outputs[o].type, TensorType) for call in run for _, o in carried):
        return None
    whole = int(first.config.place[-1]) == 0 and length == len(run)
    last = run[-1]
    outputs = [last.outputs[o] for o in outs]
    outputs += [call.outputs[j] for j in collected for call in run]
    inputs = [*first.inputs, *(call.inputs[i] for i in own for call in run[1:])]
    config = RepeatConfig(tuple(run), tuple(carried), tuple(own), tuple(collected), whole)
    return Repeat(first.name, tuple(inputs), tuple(outputs), config)
