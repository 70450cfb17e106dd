"""Translates one node of the typed IR to the layers that compute it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from emberlet.codegen.evaluation import evaluate, foldable, known
from emberlet.codegen.ir.argument import Argument, Constant, Dynamic
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType, as_tensor
from emberlet.codegen.ops.control import Scan, without_axis
from emberlet.codegen.ops.quantization import DequantizeLinear, QuantizeLinear

from .state import Importer
from .table import TRANSLATORS
from .values import numpy_of


def translate(importer: Importer, node: Node[Any], arguments: dict[str, Argument]) -> None:
    """Translate one node after inferring its types from the inputs' sizes. Raises Problem."""
    inputs = tuple(arguments.get(a.name, a) if a.present else a for a in node.inputs)
    for lost in (importer.broken, importer.outputs.dropped):
        if any(a.name in lost for a in node.uses()):
            lost.update(o.name for o in node.outputs)
            return
    outputs = tuple(replace(o, source=Dynamic()) for o in node.outputs)
    node = replace(node, inputs=inputs, outputs=outputs)
    node = known((sized_loop(node) if isinstance(node, Scan) else node).typed())
    if isinstance(node, QuantizeLinear | DequantizeLinear):
        _check_scale(node)
    if isinstance(node, DequantizeLinear) and node.value(0) is not None:
        importer.grids.note_constant(node)
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
