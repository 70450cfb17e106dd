"""The class that a classifier chooses: `best` of the built module returns its index among the labels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.problem import Problem

from ..graph import Reshape
from ..kernels.arg import Arg
from ..kernels.elementwise import MapFloat
from ..kernels.lanes import Take
from .layout import StoredTensor, dims_of
from .outputs import Decision
from .state import Importer

Labels = Sequence[int | str]


def decide(t: Importer, output: Argument, source: str, ranks: bool, labels: Labels) -> None:
    """The label of a class, an output of a node. If only the model's caller reads it, it is not computed: the module
    has the labels. Raises Problem if other nodes read a label that is text."""
    if output.name not in t.outputs.read:
        return
    if output.name in t.outputs.only_given:
        t.outputs.dropped.add(output.name)
        t.outputs.decisions.append(Decision(output.name, source, ranks, tuple(labels)))
        return
    if any(isinstance(label, str) for label in labels):
        raise Problem("labels that are text, and that another node reads, are not supported; use integers as labels")
    place = place_of_greatest(t, source) if ranks else source
    name = t.layout.fresh(output.name)
    dims = dims_of(output)
    t.layout.shapes[name] = dims
    t.grids.whole.add(name)
    table = np.asarray(labels, np.float32)
    t.add(Take(f"label {name}", (place,), name, (1, len(labels), 1), 1, table))
    t.layout.held[output.name] = t.shaped(StoredTensor(name, dims, tuple(range(len(dims)))))


def place_of_greatest(t: Importer, scores: str) -> str:
    """A tensor with the index of a tensor's greatest element, the first of equal ones."""
    name = t.layout.fresh(f"{scores}:class")
    t.layout.shapes[name] = (1,)
    t.grids.whole.add(name)
    t.add(Arg(f"class of {scores}", (scores,), name, (1, prod(t.layout.shapes[scores]), 1), "max"))
    return name


def settle(t: Importer) -> list[str]:
    """Make the tensor that decides the class an output, unless the first output's largest element decides it; returns
    the problems."""
    if not t.outputs.decisions:
        return []
    if len(t.outputs.decisions) > 1:
        names = ", ".join(repr(d.output) for d in t.outputs.decisions)
        return [
            f"the model has several labels, {names}; keep only the scores: "
            "onnx.utils.extract_model(file, new_file, inputs, scores)"
        ]
    (decision,) = t.outputs.decisions
    t.outputs.labels = decision.labels
    source, ranks = _behind(t, decision.source), decision.ranks
    writers = {layer.output: layer for layer in t.layers}
    arg = writers.get(source)
    if not ranks and isinstance(arg, Arg) and arg.operation == "max" and not arg.last and arg.shape[::2] == (1, 1):
        source, ranks = _behind(t, arg.inputs[0]), True
    if ranks and t.outputs.names and _behind(t, t.outputs.names[0]) == source:
        return []
    name = place_of_greatest(t, source) if ranks else decision.source
    if name in t.outputs.names:
        name = t.layout.part_of(StoredTensor(name, t.layout.shapes[name], (0,)), "class")
        t.add(MapFloat(f"class {name}", (decision.source,), name, t.layout.shapes[name], ()))
    t.outputs.names.append(name)
    t.outputs.decides = name
    return []


def _behind(t: Importer, name: str) -> str:
    """The tensor of which a tensor is a reshape."""
    source = {
        layer.output: layer.inputs[0]
        for layer in t.layers
        if isinstance(layer, Reshape) or (isinstance(layer, MapFloat) and not layer.chain)
    }
    while name in source:
        name = source[name]
    return name
