"""The graph of an ONNX model, by way of the compiler's typed IR."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from emberlet.codegen.evaluation import evaluate, foldable, known
from emberlet.codegen.ir.argument import Argument, Constant, Dynamic
from emberlet.codegen.ir.graph import Model, Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ops.quantization import DequantizeLinear
from emberlet.codegen.reader import read_model
from emberlet.errors import EmberletError, ModelError

from .graph import Graph
from .importer import TRANSLATORS
from .importer.state import Importer


def read_graph(source: str | os.PathLike[str] | bytes, name: str | None = None) -> Graph:
    """The float32 graph of an ONNX model, sizes that are left open (a batch) taken as 1.

    Raises ModelError, which lists every operator that microcontrollers do not do, and OSError.
    """
    model = read_model(source, name)
    return graph_of(model, name or (Path(source).stem if not isinstance(source, bytes) else "model"))


def graph_of(model: Model, name: str) -> Graph:
    """The graph of a model that has been read. Raises ModelError.

    Images (inputs of rank 4) come in channels last; of inputs of rank 3 it is decided by what moves fewer elements.
    """
    importers = [_import(model, name, False)]
    if any(isinstance(a.type, TensorType) and a.type.rank == 3 for a in model.graph.inputs):
        importers.append(_import(model, name, True))
    return min(importers, key=lambda importer: importer.moved).graph()


def _import(model: Model, name: str, last: bool) -> Importer:
    """last: whether inputs of rank 3 come in channels last. Raises ModelError."""
    importer = Importer(name)
    outputs = {a.name for a in model.graph.outputs}
    uses = {a.name for node in model.graph.nodes for a in node.uses() if a.present}
    importer.read, importer.only_output = uses | outputs, outputs - uses
    known_arguments: dict[str, Argument] = {}
    for argument in model.graph.inputs:
        fixed = _sized(argument)
        known_arguments[argument.name] = fixed
        importer.add_input(fixed, last or fixed.type.rank != 3)  # type: ignore[union-attr]
    problems: list[str] = []
    for node in model.graph.nodes:
        try:
            _translate(importer, node, known_arguments)
        except (Problem, EmberletError) as problem:
            problems.append(f"node {node.name!r} ({node.op()}): {problem}")
            for output in node.outputs:
                importer.broken.add(output.name)
    for output in model.graph.outputs:
        if not problems:
            try:
                importer.add_output(known_arguments.get(output.name, output))
            except (Problem, EmberletError) as problem:
                problems.append(f"output {output.name!r}: {problem}")
    if problems:
        raise ModelError(f"{name} cannot run on a microcontroller:\n" + "\n".join("- " + p for p in problems))
    return importer


def _sized(argument: Argument) -> Argument:
    """The argument with a size of 1 wherever its shape leaves one open. Raises ModelError for what is no tensor."""
    t = argument.type
    if not isinstance(t, TensorType) or t.shape is None:
        raise ModelError(f"input {argument.name!r}: its rank is not known; export the model with fixed shapes")
    return replace(argument, type=TensorType(t.dtype, tuple(d if isinstance(d, int) else 1 for d in t.shape)))


def _translate(importer: Importer, node: Node[Any], arguments: dict[str, Argument]) -> None:
    """Translate one node, its types worked out again from the sizes of the inputs. Raises Problem."""
    inputs = tuple(arguments.get(a.name, a) if a.present else a for a in node.inputs)
    if any(a.name in importer.broken for a in node.uses()):
        for o in node.outputs:
            importer.broken.add(o.name)
        return
    outputs = tuple(replace(o, source=Dynamic()) for o in node.outputs)
    node = known(replace(node, inputs=inputs, outputs=outputs).typed())
    if isinstance(node, DequantizeLinear) and node.value(0) is not None:
        importer.note_scales(node)
    node = _folded(node)
    for output in node.outputs:
        arguments[output.name] = output
    if all(o.value is not None for o in node.outputs if o.present):
        return
    for kind in type(node).__mro__:
        if kind in TRANSLATORS:
            TRANSLATORS[kind](importer, node)
            return
    raise Problem("microcontrollers do not do this operator")


def _folded(node: Node[Any]) -> Node[Any]:
    """The node with its outputs known, where everything it reads is."""
    if not foldable(node) or any(o.value is not None for o in node.outputs):
        return node
    outputs: Sequence[Argument] = [
        o if v is None else replace(o, type=TensorType(v.dtype, v.shape), source=Constant(v))
        for o, v in zip(node.outputs, evaluate(node), strict=True)
    ]
    return replace(node, outputs=tuple(outputs))
