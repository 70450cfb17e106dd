"""Shared by passes: a walk over a frozen graph that replaces nodes and keeps types up to date.

A pass provides a step: a function from a node to its replacement, or None to keep it. The walk follows the order of
execution, through subgraphs too. The types of a node whose inputs were replaced are inferred again before the step sees
it, so that all later nodes benefit from one rewrite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, TypeVar

from ..evaluation import known
from ..ir.argument import DYNAMIC, Argument, Constant
from ..ir.graph import Graph, Node, graph_fields
from ..ir.problem import Problem
from ..ir.sizes import identified, without_identities
from ..ir.types import OptionalType, ScalarType, SequenceType, Shape, ShapeType, TensorType, UnknownType, refine
from ..ir.value import Fill, Value
from ..ops.base import reshaped
from ..ops.internal import InputSize
from ..records import dataclass, replace

N = TypeVar("N", bound=Node[Any])
Rewrite = tuple[Graph, Counter[str]]
"""The new graph, and how often each rewrite was done."""


@dataclass(frozen=True)
class Change:
    """The replacement of a node: nodes, and values to use for outputs that none of them produces."""

    reason: str
    nodes: tuple[Node[Any], ...] = ()
    values: dict[str, Argument] = field(default_factory=dict)


Step = Callable[[Node[Any], "Walk"], Change | None]


def rewrite(graph: Graph, step: Step) -> Rewrite:
    """The graph with the step applied to every node."""
    walk = Walk(graph, step)
    out = walk.graph(graph)
    return out, walk.done


class Walk:
    """One walk. A step asks it for the producer of a value and the number of its readers."""

    def __init__(self, graph: Graph, step: Step) -> None:
        self.done: Counter[str] = Counter()
        self.sizes: dict[str, Argument] = {}
        self._step = step
        self._values: dict[str, Argument] = {}
        self._producers: dict[str, Node[Any]] = {}
        self._readers: Counter[str] = Counter()
        self._taken: set[str] = {a.name for a in graph.inputs}
        self._scopes: list[set[str]] = []
        self._count(graph)

    # -- what a step asks ---------------------------------------------------------------------------------------------

    def producer(self, a: Argument) -> Node[Any] | None:
        """The node that produces a value; None for constants and inputs of a graph."""
        return None if a.value is not None else self._producers.get(a.name)

    def made_by(self, a: Argument, kind: type[N]) -> N | None:
        """The node of this kind that produces a value, or None."""
        node = self.producer(a)
        return node if isinstance(node, kind) else None

    def alone(self, a: Argument) -> bool:
        """Whether the value is read exactly once."""
        return self._readers[a.name] == 1

    def only_output(self, node: Node[Any]) -> bool:
        """Whether only the first output of a node is read."""
        others = any(o.present and self._readers[o.name] for o in node.outputs[1:])
        return bool(node.outputs) and node.outputs[0].present and not others

    def size(self, symbol: str) -> Argument | None:
        """The size that the model calls `symbol`, if the graph already reads it from an input."""
        return self.sizes.get(symbol)

    def fresh(self, hint: str) -> str:
        """A name not used by any node or value."""
        name, n = hint, 1
        while name in self._taken:
            n += 1
            name = f"{hint} {n}"
        self._taken.add(name)
        return name

    def visible(self, node: Node[Any]) -> bool:
        """Whether a node's outputs can be read here: it is in this graph or an enclosing one."""
        return all(any(o.name in scope for scope in self._scopes) for o in node.outputs if o.present)

    # -- the walk -----------------------------------------------------------------------------------------------------

    def graph(self, graph: Graph) -> Graph:
        nodes: list[Node[Any]] = []
        changed = False
        self._scopes.append(set())
        for old in graph.nodes:
            node = self._updated(old)
            change = self._step(node, self)
            if change is None:
                changed |= node is not old
                made: tuple[Node[Any], ...] = (node,)
            else:
                changed = True
                self.done[change.reason] += 1
                made = change.nodes
                self._values.update(change.values)
                for name, value in change.values.items():
                    self._readers[value.name] += self._readers[name]
                for n in made:
                    for o in n.outputs:
                        self._values[o.name] = o
            for n in made:
                if isinstance(n, InputSize):
                    self.sizes[n.config.symbol] = n.outputs[0]
                for o in n.outputs:
                    if o.present:
                        self._producers[o.name] = n
                        self._scopes[-1].add(o.name)
            nodes += made
        self._scopes.pop()
        outputs = tuple(self._value(a) for a in graph.outputs)
        if not changed and outputs == graph.outputs:
            return graph
        return replace(graph, nodes=tuple(nodes), outputs=outputs)

    def _value(self, a: Argument) -> Argument:
        return self._values.get(a.name, a) if a.present and a.value is None else a

    def _updated(self, node: Node[Any]) -> Node[Any]:
        """The node with its inputs' replacements, and types to match."""
        values = self._values
        if not node.graphs() and not any(a.name in values for a in node.inputs):
            return node
        inputs = tuple([self._value(a) for a in node.inputs])
        inner = with_graphs(node, self.graph)
        if inner is node and inputs == node.inputs:
            return node
        new = replace(inner, inputs=inputs)
        try:
            new = typed(new)
        except Problem:
            pass  # keep the types as read; running it will raise the error
        for before, after in zip(node.outputs, new.outputs, strict=True):
            if after.present and after != before:
                self._values[after.name] = after
        return new

    def _count(self, graph: Graph) -> None:
        read = [a.name for node in graph.nodes for a in node.inputs]
        self._readers.update(read)
        self._taken.update(read)
        self._taken.update([o.name for node in graph.nodes for o in node.outputs])
        for node in graph.nodes:
            self._taken.add(node.name)
            for inner in node.graphs():
                self._count(inner)
        for a in graph.outputs:
            self._readers[a.name] += 2  # outputs are read from outside, so they must keep their names


def typed(node: N) -> N:
    """The node with its outputs' types inferred again; what was known before stays known. Raises Problem."""
    fresh = replace(node, outputs=tuple(replace(o, source=DYNAMIC) for o in node.outputs))
    new = known(fresh.typed())
    outputs = []
    for old, o in zip(node.outputs, new.outputs, strict=True):
        if o.present and o.value is None:
            t = o.type
            if node.graphs() or isinstance(t, SequenceType | OptionalType):
                t = without_identities(t)  # a size in one branch, iteration or element is not that of the next
            if not isinstance(t, ScalarType | ShapeType):
                t = refine(t, old.type)
            t = identified(t, o.name)
            if t != o.type:
                o = replace(o, type=t)
        outputs.append(o)
    return replace(new, outputs=tuple(outputs))  # type: ignore[return-value]


def with_graphs(node: Node[Any], change: Callable[[Graph], Graph]) -> Node[Any]:
    """The node with each subgraph of its config changed."""
    names = graph_fields(node.config)
    if not names:
        return node
    changed = {}
    for name in names:
        held = getattr(node.config, name)
        if isinstance(held, Graph):
            new = change(held)
            if new is not held:
                changed[name] = new
    return replace(node, config=replace(node.config, **changed)) if changed else node


def replaced_by(node: Node[Any], said: str, value: Argument) -> Change:
    """Replace the node's first output by another value; the other outputs are unread."""
    return Change(said, (), {node.outputs[0].name: value})


def instead(node: Node[Any], said: str, *nodes: Node[Any]) -> Change | None:
    """Replace a node by others, of which the last produces its first output; None if they do not fit."""
    made: list[Node[Any]] = []
    types: dict[str, Argument] = {}
    try:
        for n in nodes:
            n = typed(replace(n, inputs=tuple(types.get(a.name, a) for a in n.inputs)))
            types.update({o.name: o for o in n.outputs})
            made.append(n)
    except Problem:
        return None
    return Change(said, tuple(made))


def value_of(name: str, value: Value) -> Argument:
    """A constant argument."""
    return Argument(name, TensorType(value.dtype, value.shape), Constant(value))


def interim(name: str) -> Argument:
    """An intermediate value between nodes that a pass makes; `typed` infers its type."""
    return Argument(name, UnknownType())


def number(a: Argument) -> float | None:
    """The number a constant holds in all its elements, or None."""
    value = a.value
    if value is None or value.dtype.kind == "string":
        return None
    if isinstance(value.source, Fill):
        return float(value.source.number)
    if value.size != 1:
        return None
    return float(value.item())


def with_constant(node: Node[Any], kind: type[N], walk: Walk) -> Iterator[tuple[N, Argument, Value]]:
    """For a node of two operands in any order: a node of this kind that makes one and is read only here, and the other
    operand, a constant, with its value."""
    for a, other in (node.inputs, node.inputs[::-1]):
        made = walk.made_by(a, kind)
        if made is not None and other.value is not None and walk.alone(a):
            yield made, other, other.value


def as_bias(given: Argument, value: Value, rank: int | None, width: int) -> Argument | None:
    """A constant that a tensor of this rank is added to, as `width` numbers along the last axis; None if it is not."""
    if rank is None or len(value.shape) > rank or value.shape[-1:] != (width,) or value.size != width:
        return None
    return value_of(given.name, reshaped(value, (width,)))


def shape_of(a: Argument) -> Shape | None:
    """A tensor's shape; None if it is not a tensor or its rank is unknown."""
    return a.type.shape if isinstance(a.type, TensorType) else None


def same_shape(a: Argument, b: Argument) -> bool:
    """Whether two tensors are certain to have the same shape and dtype."""
    x, y = a.type, b.type
    if not isinstance(x, TensorType) or not isinstance(y, TensorType) or x.dtype is not y.dtype:
        return False
    return x.shape is not None and x.shape == y.shape and None not in x.shape
