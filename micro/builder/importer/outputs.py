"""What the model's caller reads: the outputs, and the class that a classifier chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from emberlet.codegen.ir.graph import Model, Node
from emberlet.codegen.ops import movement as m
from emberlet.codegen.ops.arithmetic import Add, Where
from emberlet.codegen.ops.constant import Cast
from emberlet.codegen.ops.joining import Concat
from emberlet.codegen.ops.microsoft_quantized import QLinearAdd, QLinearSoftmax
from emberlet.codegen.ops.quantization import DequantizeLinear, QuantizeLinear
from emberlet.codegen.ops.softmax import SoftmaxLike

from ..graph import Sums

Kinds = tuple[type[Node[Any]], ...]

REARRANGING: Kinds = (m.Identity, m.Reshape, m.Flatten, m.Squeeze, m.Unsqueeze, m.Transpose, Concat)

CASTS: Kinds = (*REARRANGING, Cast)

# Operators that a mask passes on its way to a softmax.
BEFORE_SOFTMAX: Kinds = (*REARRANGING, Add, QLinearAdd, Where, Cast, QuantizeLinear, DequantizeLinear)


@dataclass(frozen=True)
class Decision:
    """The label of a class. source: the tensor that holds the scores (`ranks` is true), or the index of the class among
    the labels."""

    output: str
    source: str
    ranks: bool
    labels: tuple[int | str, ...]


@dataclass
class Outputs:
    """names: of the graph's outputs; read: tensors that a node or the caller reads; only_output: those that only the
    caller reads; only_given: those that only the caller reads, possibly cast; only_softmax: those that only softmax
    reads; given: the integers that only the caller reads, dequantized -> the name of that output; dropped: outputs that
    stay internal, and what is computed from them; decisions: the labels of classes among the outputs; labels: those of
    the classes; decides: as in Graph.
    """

    names: list[str] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    only_output: set[str] = field(default_factory=set)
    only_given: set[str] = field(default_factory=set)
    only_softmax: set[str] = field(default_factory=set)
    given: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    decisions: list[Decision] = field(default_factory=list)
    labels: tuple[int | str, ...] = ()
    decides: str = ""

    @staticmethod
    def of_model(model: Model) -> Outputs:
        outputs = {a.name for a in model.graph.outputs}
        return Outputs(
            read={a.name for node in model.graph.nodes for a in node.uses() if a.present} | outputs,
            only_output=only_output(model, outputs),
            only_given=only_output(model, outputs, CASTS),
            only_softmax=only_softmax(model, outputs),
            given=_given(model, outputs),
        )

    def labeled(self, shapes: Mapping[str, tuple[int, ...]], sums: Mapping[str, Sums]) -> list[str]:
        """The outputs that have a score for each class, or are the place of the class."""
        count = len(self.labels)
        return [
            name
            for name in self.names
            if name == self.decides or prod(shapes[name]) == count * (4 if name in sums else 1) > 0
        ]


def _readers(model: Model) -> dict[str, list[Node[Any]]]:
    found: dict[str, list[Node[Any]]] = {}
    for node in model.graph.nodes:
        for argument in node.uses():
            found.setdefault(argument.name, []).append(node)
    return found


def _given(model: Model, outputs: set[str]) -> dict[str, str]:
    readers = _readers(model)
    return {
        node.inputs[0].name: node.outputs[0].name
        for node in model.graph.nodes
        if isinstance(node, DequantizeLinear) and node.outputs[0].name in outputs - readers.keys()
        if node.inputs[0].name not in outputs and len(readers[node.inputs[0].name]) == 1
    }


def only_output(model: Model, outputs: set[str], kinds: Kinds = REARRANGING) -> set[str]:
    """The tensors that are only outputs of the model, possibly after nodes of some kinds."""
    readers = _readers(model)
    found = {name for name in outputs if name not in readers}
    for node in reversed(model.graph.nodes):
        for output in node.outputs:
            after = readers.get(output.name, [])
            if after and all(isinstance(r, kinds) and all(o.name in found for o in r.outputs) for r in after):
                found.add(output.name)
    return found


def only_softmax(model: Model, outputs: set[str]) -> set[str]:
    """The tensors that only softmax reads, possibly rearranged or with something added."""
    readers, found = _readers(model), set[str]()
    for node in reversed(model.graph.nodes):
        for output in node.outputs:
            after = readers.get(output.name, []) if output.name not in outputs else []
            if after and all(
                isinstance(r, SoftmaxLike | QLinearSoftmax)
                or (isinstance(r, BEFORE_SOFTMAX) and all(o.name in found for o in r.outputs))
                for r in after
            ):
                found.add(output.name)
    return found
