"""Cross-layer equalization of an ONNX model: channels between two layers are scaled so that both weights use their
range, which leaves what the model computes as it is.

Nagel, van Baalen, Blankevoort, Welling 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction",
arXiv:1906.04721, section 4.1. It helps where a whole weight shares a scale; a scale for each channel does the same for
the first of two layers. Needs the package onnx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .graph_names import readers as readers_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

# What scaling a channel by a positive number passes through unchanged.
PASSING = {"Relu", "LeakyRelu", "Identity", "Dropout"}
# The same after convolutions, whose channels are axis 1.
POOLING = {"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"}
ROUNDS = 20
"""At most; after each, the scales are closer to 1."""
CLOSE = 1e-3
"""How close to 1 all scales are when it ends."""


class Pair(NamedTuple):
    """Two layers with nothing between them that scaling would change. first, second: names of their weights; rows:
    the first's axis of outputs; biases: what is added to the first's outputs; columns: the second's axis of inputs, and
    its number of groups."""

    first: str
    rows: int
    biases: tuple[str, ...]
    second: str
    columns: int
    groups: int


def equalized(model: ModelProto) -> ModelProto:
    """A copy of a prepared model (`preparing.prepared`) that computes the same with equalized weights."""
    import onnx
    from onnx import numpy_helper

    found = onnx.ModelProto()
    found.CopyFrom(model)
    tensors = {t.name: t for t in found.graph.initializer}
    chosen = pairs(found.graph)
    names = {name for pair in chosen for name in (pair.first, pair.second, *pair.biases)}
    values = {name: numpy_helper.to_array(tensors[name]).astype(np.float64) for name in names}
    largest = {name: np.abs(values[name]).max(initial=0.0) for pair in chosen for name in pair.biases}
    for _ in range(ROUNDS):
        if max([_equalize(pair, values, largest) for pair in chosen], default=0.0) < CLOSE:
            break
    for name, value in values.items():
        tensors[name].CopyFrom(numpy_helper.from_array(value.astype(np.float32), name))
    return found


def _equalize(pair: Pair, values: dict[str, Any], largest: dict[str, Any]) -> float:
    """Scale the channels between two layers; returns how far the scales are from 1, as a logarithm. largest: of each
    bias, which no channel's may pass: that of a channel of tiny weights would be the whole range of the outputs."""
    first, second = (values[name] for name in (pair.first, pair.second))
    above = _reach(first, pair.rows)
    if pair.groups == 1:
        below = _reach(second, pair.columns)
    else:  # (outputs, inputs of a group, …): those of each group
        parts = np.split(second, pair.groups)
        below = np.concatenate([_reach(part, 1) for part in parts])
    usable = (above > 0) & (below > 0)
    scale = np.sqrt(np.where(usable, above, 1.0) / np.where(usable, below, 1.0))
    for name in pair.biases:
        if largest[name] > 0:
            scale = np.maximum(scale, np.abs(values[name]) / largest[name])
    values[pair.first] = first / _along(scale, pair.rows, first.ndim)
    for name in pair.biases:
        values[name] = values[name] / scale
    if pair.groups == 1:
        values[pair.second] = second * _along(scale, pair.columns, second.ndim)
    else:
        shares = np.split(scale, pair.groups)
        parts = [part * _along(s, 1, part.ndim) for part, s in zip(parts, shares, strict=True)]
        values[pair.second] = np.concatenate(parts)
    return float(np.abs(np.log(scale)).max(initial=0.0))


def _reach(w: Any, axis: int) -> Any:
    return np.abs(w).max(tuple(i for i in range(w.ndim) if i != axis), initial=0.0)


def _along(scale: Any, axis: int, ndim: int) -> Any:
    return scale.reshape([-1 if i == axis else 1 for i in range(ndim)])


def pairs(graph: GraphProto) -> list[Pair]:
    """The layers that follow each other, in the order of the graph."""
    constants = {t.name: t for t in graph.initializer}
    readers, outputs = readers_of(graph), {o.name for o in graph.output}

    def own(name: str) -> bool:
        return name in constants and constants[name].data_type == 1 and len(readers[name]) == 1 and name not in outputs

    found = []
    for node in graph.node:
        axes = _axes(node, constants)
        if axes is None or not own(node.input[1]):
            continue
        biases = [name for name in node.input[2:] if name]
        last, convolves = node.output[0], node.op_type == "Conv"
        while last not in outputs and len(readers.get(last, ())) == 1:
            after = readers[last][0]
            there = _axes(after, constants)
            if there is not None and after.input[0] == last and own(after.input[1]):
                if (after.op_type == "Conv") == convolves and all(own(name) for name in biases):
                    pair = Pair(node.input[1], axes[0], tuple(biases), after.input[1], there[1], _groups(after))
                    if _fits(pair, constants):
                        found.append(pair)
                break
            added = [name for name in after.input if name != last]
            if node.op_type == "MatMul" and after.op_type == "Add" and last == node.output[0] and own(added[0]):
                biases += added
            elif after.op_type not in PASSING and not (convolves and after.op_type in POOLING):
                break
            if len(after.output) != 1 and any(name in readers or name in outputs for name in after.output[1:]):
                break
            last = after.output[0]
    return found


def _axes(node: NodeProto, constants: dict[str, Any]) -> tuple[int, int] | None:
    """(axis of the outputs, axis of the inputs) of a layer's weight, or None for other nodes."""
    if node.domain not in ("", "ai.onnx") or len(node.input) < 2 or node.input[1] not in constants:
        return None
    flags = {a.name: a for a in node.attribute}
    if node.op_type == "Conv":
        return 0, 1
    if node.op_type == "Gemm":
        plain = all(flags[key].f == 1 for key in ("alpha", "beta") if key in flags)
        if not plain or ("transA" in flags and flags["transA"].i):
            return None
        return (0, 1) if "transB" in flags and flags["transB"].i else (1, 0)
    if node.op_type == "MatMul" and len(constants[node.input[1]].dims) == 2:
        return 1, 0
    return None


def _groups(node: NodeProto) -> int:
    return next((int(a.i) for a in node.attribute if a.name == "group"), 1)


def _fits(pair: Pair, constants: dict[str, Any]) -> bool:
    """Whether the first layer's outputs are the second's inputs, channel by channel."""
    count = constants[pair.first].dims[pair.rows]
    return bool(
        constants[pair.second].dims[pair.columns] * pair.groups == count
        and all(list(constants[name].dims) == [count] for name in pair.biases)
    )
