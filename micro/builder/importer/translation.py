"""Translates one node of the typed IR to the layers that compute it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from emberlet.codegen.evaluation import evaluate, foldable, known
from emberlet.codegen.ir.argument import Argument, Constant, Dynamic
from emberlet.codegen.ir.graph import Model, Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType, as_tensor
from emberlet.codegen.ops import movement as m
from emberlet.codegen.ops.arithmetic import Add, Where
from emberlet.codegen.ops.constant import Cast
from emberlet.codegen.ops.control import Scan, without_axis
from emberlet.codegen.ops.joining import Concat
from emberlet.codegen.ops.machine_learning_features import Imputer, Scaler, ZipMap
from emberlet.codegen.ops.machine_learning_trees import (
    TreeEnsemble,
    TreeEnsembleClassifier,
    TreeEnsembleRegressor,
)
from emberlet.codegen.ops.microsoft_quantized import QLinearAdd, QLinearSoftmax
from emberlet.codegen.ops.quantization import DequantizeLinear, QuantizeLinear
from emberlet.codegen.ops.softmax import SoftmaxLike

from .state import Importer, numpy_of
from .table import TRANSLATORS

Ensemble = TreeEnsemble | TreeEnsembleClassifier | TreeEnsembleRegressor

Kinds = tuple[type[Node[Any]], ...]

REARRANGING: Kinds = (m.Identity, m.Reshape, m.Flatten, m.Squeeze, m.Unsqueeze, m.Transpose, Concat)

CASTS: Kinds = (*REARRANGING, Cast)

# Operators that a mask passes on its way to a softmax.
BEFORE_SOFTMAX: Kinds = (*REARRANGING, Add, QLinearAdd, Where, Cast, QuantizeLinear, DequantizeLinear)


def _readers(model: Model) -> dict[str, list[Node[Any]]]:
    found: dict[str, list[Node[Any]]] = {}
    for node in model.graph.nodes:
        for argument in node.uses():
            found.setdefault(argument.name, []).append(node)
    return found


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


ON_RANKS = (Scaler, Imputer, ZipMap, Cast, m.Identity, m.Reshape, m.Flatten, m.Squeeze, m.Unsqueeze)


def ranks_alone(model: Model) -> bool:
    """Whether the model is one ensemble of trees, apart from nodes that prepare its input or only pass on its
    outputs."""
    made = {a.name for node in model.graph.nodes for a in node.outputs if isinstance(node, Ensemble)}
    for node in model.graph.nodes:
        if any(a.name in made for a in node.uses()):
            made.update(a.name for a in node.outputs)
    kinds = [node for node in model.graph.nodes if not isinstance(node, ON_RANKS)]
    return len(kinds) == 1 and isinstance(kinds[0], Ensemble) and all(a.name in made for a in model.graph.outputs)


def translate(importer: Importer, node: Node[Any], arguments: dict[str, Argument]) -> None:
    """Translate one node after inferring its types from the inputs' sizes. Raises Problem."""
    inputs = tuple(arguments.get(a.name, a) if a.present else a for a in node.inputs)
    for lost in (importer.broken, importer.dropped):
        if any(a.name in lost for a in node.uses()):
            lost.update(o.name for o in node.outputs)
            return
    outputs = tuple(replace(o, source=Dynamic()) for o in node.outputs)
    node = replace(node, inputs=inputs, outputs=outputs)
    node = known((sized_loop(node) if isinstance(node, Scan) else node).typed())
    if isinstance(node, QuantizeLinear | DequantizeLinear):
        _check_scale(node)
    if isinstance(node, DequantizeLinear) and node.value(0) is not None:
        importer.note_scales(node)
    node = _folded(node)
    for output in node.outputs:
        arguments[output.name] = output
    importer.channels.see(node)
    if all(o.value is not None for o in node.outputs if o.present):
        return
    if any(isinstance(o.type, TensorType) and 0 in (o.type.static_shape or ()) for o in node.outputs if o.present):
        raise Problem("the result is empty")
    for kind in type(node).__mro__:
        if kind in TRANSLATORS:
            TRANSLATORS[kind](importer, node)
            return
    raise Problem("this operator is not supported on microcontrollers")


def sized_loop(node: Scan) -> Scan:
    """The loop with its body's types inferred again from the sizes of the inputs."""
    c = node.config
    states = len(node.inputs) - c.num_scan_inputs
    if c.batched or not all(isinstance(a.type, TensorType) for a in node.inputs):
        return node
    types = [as_tensor(a.type) for a in node.inputs]
    types[states:] = [without_axis(t, axis) for t, axis in zip(types[states:], c.input_axes, strict=True)]
    known_ = {a.name: replace(a, type=t) for a, t in zip(c.body.inputs, types, strict=True)}
    nodes = []
    for inner in c.body.nodes:
        given = tuple(known_.get(a.name, a) if a.present else a for a in inner.inputs)
        inner = replace(inner, inputs=given).typed()
        nodes.append(inner)
        known_.update((a.name, a) for a in inner.outputs)
    outputs = tuple(known_.get(a.name, a) for a in c.body.outputs)
    body = replace(c.body, nodes=tuple(nodes), inputs=tuple(known_[a.name] for a in c.body.inputs), outputs=outputs)
    return cast(Scan, replace(cast(Any, node), config=replace(c, body=body)))


def _check_scale(node: Node[Any]) -> None:
    """Raises Problem for an infinite scale, which onnxruntime's quantizer writes for a tensor with minus infinity."""
    scale = node.value(1)
    if scale is not None and np.any(np.isinf(numpy_of(scale))):
        raise Problem(
            f"the scale {node.inputs[1].name!r} is infinite, so every number of the tensor is lost: it was quantized "
            "with a mask of minus infinity; quantize the float model again, excluding the node that adds the mask and "
            "the softmax after it (nodes_to_exclude of onnxruntime's quantize_static)"
        )


def _folded(node: Node[Any]) -> Node[Any]:
    """The node with constant outputs, if all of its inputs are constant."""
    if not foldable(node) or any(o.value is not None for o in node.outputs):
        return node
    outputs: Sequence[Argument] = [
        o if v is None else replace(o, type=TensorType(v.dtype, v.shape), source=Constant(v))
        for o, v in zip(node.outputs, evaluate(node), strict=True)
    ]
    return replace(node, outputs=tuple(outputs))
