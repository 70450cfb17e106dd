"""Topological order of nodes."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ..ir.problem import quoted
from ..protobuf import NodeProto


def ordered(nodes: Sequence[NodeProto], given: Container[str], problems: list[str]) -> Sequence[NodeProto]:
    """The nodes in topological order; the file's own order if that is one.

    given: the names defined before any node runs. A name written twice is not a cycle: its readers get the first value,
    and the reader reports the second.
    """
    produced: dict[str, int] = {}
    for i, n in enumerate(nodes):
        for o in n.output:
            if o and o not in given:
                produced.setdefault(o, i)
    needed = [sorted({produced[key] for key in reads(n) if key in produced}) for n in nodes]
    if all(j < i for i, js in enumerate(needed) for j in js):
        return nodes
    users: list[list[int]] = [[] for _ in nodes]
    waiting = [len(js) for js in needed]
    for i, js in enumerate(needed):
        for j in js:
            users[j].append(i)
    order = [i for i, n in enumerate(waiting) if n == 0]
    for i in order:  # which grows
        for user in users[i]:
            waiting[user] -= 1
            if not waiting[user]:
                order.append(user)
    if len(order) < len(nodes):
        stuck = sorted(set(range(len(nodes))) - set(order))[0]
        problems.append(f"node {quoted(nodes[stuck].name or nodes[stuck].op_type)}: is part of a cycle")
    return [nodes[i] for i in order]


def reads(node: NodeProto) -> set[str]:
    """The names that a node reads, including those that its subgraphs take from outside."""
    names = {key for key in node.input if key}
    for a in node.attribute:
        for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
            inside = {i.name for i in (*g.input, *g.initializer)} | {o for n in g.node for o in n.output}
            names |= {key for n in g.node for key in reads(n) if key not in inside}
            names |= {o.name for o in g.output if o.name not in inside}
    return names
