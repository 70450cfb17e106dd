"""Translates one node of the typed IR to the layers that compute it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from emberlet.codegen.evaluation import evaluate, foldable, known
from emberlet.codegen.ir.argument import Argument, Constant, Dynamic
from emberlet.codegen.ir.graph import Model, Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ops import movement as m
from emberlet.codegen.ops.arithmetic import Add, Where
from emberlet.codegen.ops.constant import Cast
from emberlet.codegen.ops.joining import Concat
from emberlet.codegen.ops.microsoft_quantized import QLinearAdd, QLinearSoftmax
from emberlet.codegen.ops.quantization import DequantizeLinear, QuantizeLinear
from emberlet.codegen.ops.softmax import SoftmaxLike

from .state import Importer, numpy_of
from .table import TRANSLATORS

REARRANGING = (m.Identity, m.Reshape, m.Flatten, m.Squeeze, m.Unsqueeze, m.Transpose, Concat)


# Operators between a mask and a softmax.
BEFORE_SOFTMAX = (*REARRANGING, Add, QLinearAdd, Where, Cast, QuantizeLinear, DequantizeLinear)


def _readers(model: Model) -> dict[str, list[Node[Any]]]:
    found: dict[str, list[Node[Any]]] = {}
    for node in model.graph.nodes:
        for argument in node.uses():
            found.setdefault(argument.name, []).append(node)
    return found


def only_output(model: Model, outputs: set[str]) -> set[str]:
    """The tensors that are only model outputs, possibly rearranged."""
    readers = _readers(model)
    found = {name for name in outputs if name not in readers}
    for node in reversed(model.graph.nodes):
        for output in node.outputs:
            after = readers.get(output.name, [])
            if after and all(isinstance(r, REARRANGING) and all(o.name in found for o in r.outputs) for r in after):
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


def translate(importer: Importer, node: Node[Any], arguments: dict[str, Argument]) -> None:
    """Translate one node after inferring its types from the inputs' sizes. Raises Problem."""
    inputs = tuple(arguments.get(a.name, a) if a.present else a for a in node.inputs)
    for lost in (importer.broken, importer.dropped):
        if any(a.name in lost for a in node.uses()):
            lost.update(o.name for o in node.outputs)
            return
    outputs = tuple(replace(o, source=Dynamic()) for o in node.outputs)
    node = known(replace(node, inputs=inputs, outputs=outputs).typed())
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
    for kind in type(node).__mro__:
        if kind in TRANSLATORS:
            TRANSLATORS[kind](importer, node)
            return
    raise Problem("this operator is not supported on microcontrollers")


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
