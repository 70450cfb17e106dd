"""An ONNX model whose products have weights of 8 bits and quantize their input by the range that each call has:
DynamicQuantizeLinear with MatMulInteger or ConvInteger, as onnxruntime's dynamic quantization writes them. Needs the
package onnx.

Activations are uint8 with one scale and zero point for the whole tensor, weights int8 with a scale for each output and
zero in the middle, biases floats.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from emberlet.store.quantizing import is_large

from .activations import weight_of
from .floats import PRODUCTS
from .graph_names import Unused, drop_unused, graphs_of, keep_only, names_read
from .levels import Levels, levels_of
from .preparing import check

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

KINDS = {*PRODUCTS} - {"ConvTranspose"}  # which no operator of integers computes
FEWEST = 4  # multiplications of each number: with fewer, its range and rounding take longer than products of floats


def quantized(
    model: ModelProto, keep: Collection[str] = (), chosen: Mapping[tuple[str, int], Levels] = {}
) -> ModelProto:  # fmt: skip
    """A copy of the prepared model (preparing.py) in which every product and convolution with a constant float32
    weight multiplies integers, in branches and bodies, too, if it multiplies each number of its input FEWEST times at
    least. keep: names of weights whose operators stay in floats; chosen: the integers of weights, by name and axis of
    outputs, which are else the nearest. Raises UnsupportedError if it is no valid ONNX."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    writer = _Writer(found.graph, keep, chosen)
    writer.rewrite(found.graph, {})
    drop_unused(found.graph)
    check(found, model)
    return found


class Product(NamedTuple):
    """A node that multiplies integers. weight: the name of its initializer; levels, scales: in the form that the
    integer operator takes, and a scale for each output; bias: the name of what is added, or ""."""

    node: NodeProto
    weight: str
    levels: Any
    scales: Any
    bias: str


class _Writer:
    """Rewrites the graphs of a model; new initializers are those of its main graph, which all others see."""

    def __init__(self, main: GraphProto, keep: Collection[str], chosen: Mapping[tuple[str, int], Levels]) -> None:
        self.main, self.keep, self.chosen = main, keep, chosen
        self.unused = Unused(main)
        self.held: dict[tuple[Any, ...], list[str]] = {}  # the constants of each weight

    def rewrite(self, graph: GraphProto, outer: Mapping[str, TensorProto]) -> None:
        """outer: the constants that enclosing graphs have."""
        own = {i.name for i in graph.input} | {o for node in graph.node for o in node.output}  # they hide outer names
        constants = {name: t for name, t in outer.items() if name not in own} | {t.name: t for t in graph.initializer}
        made = {o: node for node in graph.node for o in node.output}
        ranges: dict[str, list[str]] = {}  # what DynamicQuantizeLinear makes of each input
        nodes: list[NodeProto] = []
        for node in graph.node:
            for inner in graphs_of(node):
                self.rewrite(inner, constants)
            product = None if node.op_type not in KINDS else self.product(node, constants, made)
            nodes += [node] if product is None else self.written(product, ranges)
        del graph.node[:]
        graph.node.extend(nodes)
        _drop_dead(graph)

    def product(
        self, node: NodeProto, constants: Mapping[str, TensorProto], made: Mapping[str, NodeProto]
    ) -> Product | None:
        from onnx import numpy_helper

        found = weight_of(node, constants, made)
        if found is None or node.domain not in ("", "ai.onnx") or node.input[0] in constants:
            return None
        name, axes = found
        if name in self.keep or constants[name].data_type != 1:
            return None
        w = numpy_helper.to_array(constants[name]).transpose(axes)
        flags = {a.name: a.i if a.type == 2 else a.f for a in node.attribute}
        conv = node.op_type == "Conv"
        if (w.ndim != 2 and not (conv and w.ndim <= 5)) or flags.get("transA") or flags.get("beta", 1.0) != 1.0:
            return None
        w = w.T if flags.get("transB") else w
        axis = PRODUCTS[node.op_type]
        if not is_large(w.shape, axis) or not np.isfinite(w).all() or _multiplications(node, w) < FEWEST:
            return None
        own = axes[1 - axis if flags.get("transB") else axis]  # the outputs' axis in the initializer
        levels, scales = levels_of(w, axis, self.chosen.get((name, own)))
        bias = node.input[2] if len(node.input) > 2 else ""
        return Product(node, name, levels, scales * np.float32(flags.get("alpha", 1.0)), bias)

    def written(self, p: Product, ranges: dict[str, list[str]]) -> list[NodeProto]:
        """The nodes in the place of a product."""
        from onnx import TensorProto, helper

        node, x, conv = p.node, p.node.input[0], p.node.op_type == "Conv"
        nodes = []
        if x not in ranges:
            stem = self.unused.stem(x, "_quantized", "_scale", "_zero_point")
            ranges[x] = [stem + end for end in ("_quantized", "_scale", "_zero_point")]
            nodes.append(helper.make_node("DynamicQuantizeLinear", [x], ranges[x], stem + "_DynamicQuantizeLinear"))
        q, scale, zero = ranges[x]
        levels, scales, middle = self.constants_of(p, conv)
        y = node.output[0]
        stem = self.unused.stem(y, "_sums", "_floats", "_scales", "_scaled")
        options = {a.name: helper.get_attribute_value(a) for a in node.attribute} if conv else {}
        kind, scaled = "ConvInteger" if conv else "MatMulInteger", stem + "_scaled" if p.bias else y
        nodes += [
            helper.make_node(kind, [q, levels, zero, middle], [stem + "_sums"], node.name or stem, **options),
            helper.make_node("Cast", [stem + "_sums"], [stem + "_floats"], stem + "_Cast", to=TensorProto.FLOAT),
            helper.make_node("Mul", [scale, scales], [stem + "_scales"], stem + "_Mul_scales"),
            helper.make_node("Mul", [stem + "_floats", stem + "_scales"], [scaled], stem + "_Mul"),
        ]
        if p.bias:
            nodes += self.biased(p, conv, scaled, stem)
        return nodes

    def biased(self, p: Product, conv: bool, scaled: str, stem: str) -> list[NodeProto]:
        """The nodes that add a bias, of a convolution along its axis of channels."""
        from onnx import helper, numpy_helper

        if not conv:
            return [helper.make_node("Add", [scaled, p.bias], [p.node.output[0]], stem + "_Add")]
        shape = self.unused.stem(stem, "_shape", "_bias") + "_shape"
        spread = np.array([1, -1] + [1] * (p.levels.ndim - 2))
        self.main.initializer.append(numpy_helper.from_array(spread, shape))
        bias = shape.removesuffix("_shape") + "_bias"
        return [
            helper.make_node("Reshape", [p.bias, shape], [bias], stem + "_Reshape"),
            helper.make_node("Add", [scaled, bias], [p.node.output[0]], stem + "_Add"),
        ]

    def constants_of(self, p: Product, conv: bool) -> list[str]:
        """The names of the weight's integers, scales and zero point. Those of a weight that several products read in
        one form are stored once."""
        from onnx import numpy_helper

        key = p.weight, p.levels.shape, sha256(p.levels.tobytes() + p.scales.tobytes()).digest()
        if key not in self.held:
            ends = ("_quantized", "_scale", "_zero_point")
            stem = self.unused.stem(p.weight, *ends)
            scales = p.scales.reshape(-1, *[1] * (p.levels.ndim - 2)) if conv else p.scales
            for end, x in zip(ends, (p.levels, scales, np.zeros((), np.int8)), strict=True):
                self.main.initializer.append(numpy_helper.from_array(np.ascontiguousarray(x), stem + end))
            self.held[key] = [stem + end for end in ends]
        return self.held[key]


def _multiplications(node: NodeProto, w: NDArray[Any]) -> float:
    """How often a product multiplies each number of its input."""
    if node.op_type != "Conv":
        return w.shape[1]
    options = {a.name: a.ints if a.type == 7 else a.i for a in node.attribute}
    return w.size / (w.shape[1] * options.get("group", 1) * prod(options.get("strides", ())))


def _drop_dead(graph: GraphProto) -> None:
    """Drop the movements of weights that nothing reads any more."""
    read = {*names_read(graph.node)} | {o.name for o in graph.output}
    keep_only(graph.node, [n.op_type != "Transpose" or not read.isdisjoint(n.output) for n in graph.node])
