"""Tables of embeddings in an ONNX model: the rows that are looked up are dequantized, not the whole table in each call.
Needs the package onnx.

Rows of 8 bits with a scale for each are cast and multiplied, which every opset can; those in blocks take
DequantizeLinear, whose scales are looked up, too. ONNX looks up no integers of fewer bits, which are written in 8
(packing.py), and no floats of 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from emberlet.store.quantizing import is_large

from .floats import MOVING
from .graph_names import Unused, drop_unused, readers
from .levels import Levels, levels_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

    Readers = Mapping[str, Sequence[NodeProto]]


def is_looked_up(node: NodeProto, name: str) -> bool:
    """Whether a node gives rows of a table."""
    return node.op_type == "Gather" and node.input[0] == name and not any(a.i for a in node.attribute)


def rows_of(
    node: NodeProto, parts: Sequence[str], fresh: Callable[[str], str], block: int = 0, dtype: int = 1
) -> list[NodeProto]:
    """The nodes in the place of a Gather. parts: the integers (rows, columns), the scales, float32 (rows, blocks), and
    the zero points, if there are any; block: the numbers that share a scale, 0 for rows with one; dtype: ONNX's number
    for that of the result; fresh: a function that makes a name unique."""
    from onnx import helper

    nodes: list[NodeProto] = []

    def add(kind: str, inputs: Sequence[str], **more: Any) -> str:
        name = fresh(f"{node.output[0]}_{kind}")
        nodes.append(helper.make_node(kind, inputs, [name], name, **more))
        return name

    found = [add("Gather", [part, node.input[1]]) for part in parts]
    if block:
        add("DequantizeLinear", found, axis=-1, block_size=block)
    else:
        levels, scale, *zero = [found[0], found[1], *found[2:]]
        floats = [add("Cast", [x], to=1) for x in (levels, *zero)]
        add("Mul", [add("Sub", floats) if zero else floats[0], scale])
    if dtype != 1:
        add("Cast", [nodes[-1].output[0]], to=dtype)
    nodes[-1].output[0], nodes[-1].name = node.output[0], node.name
    return nodes


def quantized(
    model: ModelProto, names: Collection[str], chosen: Mapping[tuple[str, int], Levels] = {}
) -> ModelProto:  # fmt: skip
    """The model with the tables among these initializers in 8 bits: those of float32 that only Gathers read. Rows that
    are quantized as they come get that grid, others a scale each. chosen: the integers of weights, by name and axis of
    outputs, which are else the nearest."""
    import onnx
    from onnx import numpy_helper

    read = readers(model.graph)
    tables = {
        t.name: numpy_helper.to_array(t) for t in model.graph.initializer
        if t.name in names and t.data_type == 1 and len(t.dims) == 2
        and all(is_looked_up(n, t.name) for n in read[t.name])
    }  # fmt: skip
    tables = {name: x for name, x in tables.items() if is_large(x.shape, 0) and np.isfinite(x).all()}
    if not tables:
        return model
    found = onnx.ModelProto()
    found.CopyFrom(model)
    writer = _Writer(found.graph, read)
    nodes = [n for node in found.graph.node for n in writer.instead(node, tables, chosen)]
    del found.graph.node[:]
    found.graph.node.extend(nodes)
    drop_unused(found.graph)
    return found


class _Writer:
    """Replaces the Gathers of a graph."""

    def __init__(self, graph: GraphProto, read: Readers) -> None:
        self.graph, self.read, self.unused = graph, read, Unused(graph)
        self.held = {t.name: t for t in graph.initializer}
        self.known: dict[tuple[str, ...], list[str]] = {}

    def instead(
        self, node: NodeProto, tables: Mapping[str, Any], chosen: Mapping[tuple[str, int], Levels]
    ) -> list[NodeProto]:  # fmt: skip
        name = node.input[0] if node.op_type == "Gather" else ""
        if name not in tables:
            return [node]
        grid = self.grid(node.output[0])
        if grid:
            return self.on_grid(node, tables[name], grid)
        if (name,) not in self.known:
            levels, scales = levels_of(tables[name], 0, chosen.get((name, 0)))
            self.known[name,] = self.stored(name, {"_quantized": levels, "_scales": scales.reshape(-1, 1)})
        return rows_of(node, self.known[name,], lambda stem: self.unused.stem(stem, ""))

    def on_grid(self, node: NodeProto, table: Any, grid: tuple[str, str]) -> list[NodeProto]:
        """The Gather of integers that stand for what their rows are rounded to, and the node that dequantizes them."""
        from onnx import helper, numpy_helper

        name = node.input[0]
        if (name, *grid) not in self.known:
            scale, zero = (numpy_helper.to_array(self.held[part]) for part in grid)
            levels = np.clip(np.rint(table / scale) + zero, 0, 255).astype(np.uint8)
            self.known[name, *grid] = self.stored(name, {"_quantized": levels})
        rows = self.unused.stem(node.output[0] + "_Gather", "")
        return [
            helper.make_node("Gather", [*self.known[name, *grid], node.input[1]], [rows], rows),
            helper.make_node("DequantizeLinear", [rows, *grid], [node.output[0]], node.name),
        ]

    def grid(self, name: str) -> tuple[str, str] | None:
        """The scale and zero point by which a tensor, or what moves its elements, is quantized if nothing reads it
        otherwise."""
        after = self.read.get(name, ())
        if len(after) != 1 or name in {o.name for o in self.graph.output}:
            return None
        if after[0].op_type in MOVING and after[0].input[0] == name:
            return self.grid(after[0].output[0])
        if after[0].op_type != "QuantizeLinear":
            return None
        _, scale, zero = after[0].input
        plain = not self.held[scale].dims and self.held[zero].data_type == 2
        return (scale, zero) if plain else None

    def stored(self, name: str, parts: Mapping[str, Any]) -> list[str]:
        from onnx import numpy_helper

        stem = self.unused.stem(name, *parts)
        self.graph.initializer.extend(numpy_helper.from_array(x, stem + end) for end, x in parts.items())
        return [stem + end for end in parts]
