"""AWQ in an ONNX model: each input of a product is multiplied by a number and its weights divided by it, which leaves
what the model computes as it is (core/store/weight_methods/awq.py chooses the numbers).

Where only these products read their input, what computes it takes the numbers: a norm's weight, the outputs of a
product before, a constant factor. Elsewhere a Mul does. Needs the package onnx.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from emberlet.errors import UnsupportedError

from .activations import weight_of
from .equalization import PASSING
from .graph_names import Unused, readers

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

NORMS = {"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"}
DENSE = {"MatMul", "Gemm"}
Places = list[tuple[str, int]]
"""Initializers, and the axis of each that is multiplied."""


def scaled(model: ModelProto, factors: Mapping[str, Any], fixed: Collection[str] = ()) -> ModelProto:
    """A copy of a prepared model (`preparing.prepared`) that computes the same with scaled inputs; the model itself
    without factors. factors: weight -> what each input of its products is multiplied by, float32 (inputs,). Weights
    that something else reads, too, stay as they are. fixed: weights that were quantized for their factors: nothing else
    multiplies them, and if one of `factors` cannot be applied to them, this raises UnsupportedError."""
    import onnx

    if not factors:
        return model
    found = onnx.ModelProto()
    found.CopyFrom(model)
    _Scaling(found, fixed).apply(factors)
    return found


class _Scaling:
    """Rewrites the graph of a model."""

    def __init__(self, model: ModelProto, fixed: Collection[str]) -> None:
        self.graph, self.fixed = model.graph, fixed
        self.tensors = {t.name: t for t in self.graph.initializer}
        self.uses, self.outputs = readers(self.graph), {o.name for o in self.graph.output}
        self.made = {o: node for node in self.graph.node for o in node.output}
        self.unused = Unused(self.graph)

    def apply(self, factors: Mapping[str, Any]) -> None:
        together: dict[tuple[str, bytes], list[NodeProto]] = {}  # the products of an input that have the same factors
        for name, factor in factors.items():
            products = self.products(name, len(factor))
            for node, _ in products:
                together.setdefault((node.input[0], np.asarray(factor, np.float32).tobytes()), []).append(node)
            if products:
                self.multiply(name, products[0][1], 1 / np.asarray(factor, np.float64))
            elif name in self.fixed:
                why = "awq needs a weight of float32 that only products of matrices read"
                raise UnsupportedError(f"{name}: {why}; leave out onnx, or awq")
        before: dict[str, NodeProto] = {}
        for (x, raw), nodes in together.items():
            factor = np.frombuffer(raw, np.float32)
            places = self.places(x, len(factor), len(nodes))
            for name, axis in places or ():
                self.multiply(name, axis, factor)
            if not places:
                self.insert(x, factor, nodes, before)
        ordered = [n for node in self.graph.node for n in (before.get(node.output[0]), node) if n is not None]
        del self.graph.node[:]
        self.graph.node.extend(ordered)

    def products(self, name: str, count: int) -> list[tuple[NodeProto, int]]:
        """(product, axis of the inputs in the initializer) of all that reads a weight; none if something else does, or
        along another axis."""
        found = []
        for node in self.graph.node:
            fused = (node.domain, node.op_type) == ("com.microsoft", "FusedMatMul")
            dense = fused or (node.op_type in DENSE and node.domain in ("", "ai.onnx"))
            given = weight_of(node, self.tensors, self.made) if dense and node.input[0] not in self.tensors else None
            turned = _flag(node, "transA") or _flag(node, "transBatchA")
            if given is not None and given[0] == name and len(given[1]) == 2 and not turned:
                found.append((node, given[1][_flag(node, "transB")]))
        results = {node.output[0] for node, _ in found}

        def only(node: NodeProto) -> bool:
            moved = node.op_type == "Transpose" and node.output[0] not in self.outputs
            return node.output[0] in results or (moved and all(map(only, self.uses.get(node.output[0], ()))))

        axes = {axis for _, axis in found}
        whole = (
            len(axes) == 1
            and self.tensors[name].data_type == 1
            and name not in self.outputs
            and all(map(only, self.uses[name]))
        )
        return found if whole and self.tensors[name].dims[axes.pop()] == count else []

    def multiply(self, name: str, axis: int, factor: Any) -> None:
        from onnx import numpy_helper

        x = numpy_helper.to_array(self.tensors[name]).astype(np.float64)
        x *= factor.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
        self.tensors[name].CopyFrom(numpy_helper.from_array(x.astype(np.float32), name))

    def places(self, name: str, count: int, reads: int = 1) -> Places | None:
        """What multiplies the last axis of a tensor if it is multiplied itself; None if nothing does, or the tensor is
        read otherwise than by so many nodes."""
        node = self.made.get(name)
        if node is None or not node.input or node.domain not in ("", "ai.onnx"):
            return None
        if name in self.outputs or len(self.uses[name]) != reads:
            return None
        constants = [n for n in node.input if n in self.tensors]
        first = None if node.input[0] in self.tensors else node.input[0]
        found: Places | None = None
        if node.op_type in PASSING and first:
            return self.places(first, count)
        if node.op_type in NORMS and len(constants) == len(node.input) - 1:
            found = [(n, -1) for n in constants]
        elif node.op_type in DENSE and first and len(constants) == len(node.input) - 1:
            found = [(constants[0], 1 - _flag(node, "transB")), *((n, -1) for n in constants[1:])]
        elif node.op_type == "Mul" and len(constants) == 1:
            found = [(constants[0], -1)]
        elif node.op_type == "Mul":
            return next((p for n in reversed(node.input) if (p := self.places(n, count))), None)
        elif node.op_type == "Add" and len(constants) == 1:
            others = self.places(next(n for n in node.input if n not in self.tensors), count)
            found = [*others, (constants[0], -1)] if others else None
        return found if found and all(self.fits(n, axis, count) for n, axis in found) else None

    def fits(self, name: str, axis: int, count: int) -> bool:
        """Whether a constant, a matrix unless the axis is -1, can be multiplied along an axis."""
        t = self.tensors[name]
        if len(self.uses[name]) != 1 or name in {*self.outputs, *self.fixed} or t.data_type != 1 or not t.dims:
            return False
        plain = int(np.prod(t.dims)) == count if axis == -1 else len(t.dims) == 2
        return plain and t.dims[axis] == count

    def insert(self, x: str, factor: Any, nodes: list[NodeProto], before: dict[str, NodeProto]) -> None:
        """Let a Mul before the first of the nodes scale what they read."""
        from onnx import helper, numpy_helper

        stem = self.unused.stem(x, "_factors", "_scaled", "_Mul")
        self.graph.initializer.append(numpy_helper.from_array(factor, stem + "_factors"))
        results = {node.output[0] for node in nodes}
        first = next(node for node in self.graph.node if node.output[0] in results)
        mul = helper.make_node("Mul", [x, stem + "_factors"], [stem + "_scaled"], stem + "_Mul")
        before[first.output[0]] = mul
        for node in nodes:
            node.input[0] = stem + "_scaled"


def _flag(node: NodeProto, name: str) -> int:
    return next((int(bool(a.i)) for a in node.attribute if a.name == name), 0)
