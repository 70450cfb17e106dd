"""Which tensors of an ONNX model stay floats when its activations become integers, and by which operators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

# Operators with weights: the axis of the outputs in input 1.
PRODUCTS = {"Conv": 0, "ConvTranspose": 1, "Gemm": 1, "MatMul": 1}
# Operators whose inputs and outputs are quantized too, so that whole networks stay in integers.
OTHERS = {"Add", "Mul", "AveragePool", "GlobalAveragePool", "Concat", "MaxPool", "Resize", "ReduceMean", "Sigmoid",
          "LeakyRelu", "HardSigmoid", "HardSwish"}  # fmt: skip
# Their output has elements of their input, so both have one grid.
MOVING = {"MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Slice", "Dropout"}
FUSED = {"Relu", "Clip"}
# What lets integers pass between two products.
THROUGH = MOVING | FUSED | {"Add", "AveragePool", "GlobalAveragePool", "Concat", "Resize", "ReduceMean", "Split",
                            "Gather", "Expand", "Tile", "Pad", "DepthToSpace", "SpaceToDepth"}  # fmt: skip
# What a network has that stays in integers from end to end: it computes each element from those at its place, too.
POINTWISE = OTHERS | {"MatMul", "BatchNormalization", "PRelu", "Sub", "Div", "Neg", "Abs", "Elu", "Selu", "Celu",
                      "Tanh", "Softplus", "Softsign", "Mish", "Swish"}  # fmt: skip
WITH_MANY = {"Add", "Mul", "Sub", "Div", "Concat", "MatMul"}  # the others compute with their first input
# Small inputs decide what these return, and steps of one size have none left for small numbers; before a softmax a mask
# adds numbers that would leave none for the others.
SENSITIVE = {"Log", "Sqrt", "Reciprocal", "Div", "Pow", "Softmax"}
# Their results keep numbers that are far beyond the others.
UNBOUNDED = (OTHERS | MOVING) - {"Sigmoid", "HardSigmoid"}
FAR = 1000.0  # the least size of such a constant, which is also at least a hundred times the next smaller one


def sensitive(graph: GraphProto) -> set[str]:
    """The tensors that logarithms and quotients are taken of, through sums and movements, too."""
    found: set[str] = set()
    for node in reversed(graph.node):
        passing = node.op_type in OTHERS | MOVING and any(name in found for name in node.output)
        if node.op_type in SENSITIVE or passing:
            found.update(node.input)
    return found


def masked(graph: GraphProto, constants: Mapping[str, Any], uses: Mapping[str, list[NodeProto]]) -> set[str]:
    """The sums with constants of which some are far beyond the others, and what is computed of such sums: one grid for
    all would have no steps left for the others."""
    from onnx import numpy_helper

    found: set[str] = set()
    far: dict[str, bool] = {}
    for node in graph.node:
        added = node.input[2:] if node.op_type in PRODUCTS else node.input if node.op_type == "Add" else ()
        for name in added:
            if name in constants and name not in far and constants[name].data_type == 1:
                sizes = np.sort(np.abs(numpy_helper.to_array(constants[name])), axis=None)
                far[name] = bool((sizes[1:] / 100 >= np.maximum(sizes[:-1], FAR / 100)).any())
        passing = node.op_type in UNBOUNDED and any(name in found for name in node.input)
        cut = bool(uses.get(node.output[0])) and all(n.op_type in FUSED for n in uses[node.output[0]])
        if (passing or any(far.get(name) for name in added)) and not cut:
            found.update(node.output)
    return found


def between(graph: GraphProto, products: Collection[str], constants: Collection[str]) -> set[str] | None:
    """The tensors between two products: computed from results of products or inputs of the model, and read by products,
    through operators of THROUGH alone. None if no product reads what norms, softmaxes and the like compute: all tensors
    of such a network are integers, as boards need them. products: the results of those with constant weights."""
    known = integers(graph) | set(constants)
    held = {i.name for i in graph.input}
    floats: set[str] = set()  # what other operators compute
    reads, ends = {}, True
    for node in graph.node:
        name = node.output[0]
        many = node.op_type in WITH_MANY and name not in products
        reads[name] = set(node.input[: None if many else 1]) - known
        if name in products:
            ends = ends and floats.isdisjoint(reads[name])
            held.add(name)
        elif not floats.isdisjoint(reads[name]) or node.op_type not in THROUGH | POINTWISE:
            floats.update(set(node.output) - known)
        elif node.op_type in THROUGH and reads[name] and reads[name] <= held:
            held.update(node.output)
    if ends:
        return None
    asked: set[str] = set()
    for node in reversed(graph.node):
        if node.output[0] in products or (node.op_type in THROUGH and not asked.isdisjoint(node.output)):
            asked |= reads[node.output[0]]
    return held & asked


def integers(graph: GraphProto) -> set[str]:
    """The tensors known to be no float32: shapes, indices, masks."""
    declared = (*graph.input, *graph.value_info, *graph.output)
    found = {v.name for v in declared if v.type.tensor_type.elem_type not in (0, 1)}
    keeping = MOVING | OTHERS | FUSED | {*PRODUCTS} | {"Concat", "Gather", "Add", "Mul", "Cast"}
    for node in graph.node:
        moved = node.op_type in keeping and node.input and node.input[0] in found
        if node.op_type in ("Shape", "ArgMax", "Size", "NonZero") or moved:
            found.update(node.output)
    return found
