"""An ONNX model of QuantizeLinear and DequantizeLinear (activations.py) with operators on integers in their place, as
onnxruntime's format QOperator has them: QLinearConv and QLinearMatMul of the standard, QGemm, QLinearAdd and their
peers of com.microsoft. Needs the package onnx.

A product whose sums are not quantized at once, since a bias in float or another function follows, becomes MatMulInteger
or ConvInteger, and its sums are scaled in float. What has no form on integers stays between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .floats import FUSED, MOVING
from .graph_names import Unused, drop_unused, keep_only, names_read, readers

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

MICROSOFT = "com.microsoft"
ONE = {"Sigmoid": "QLinearSigmoid", "LeakyRelu": "QLinearLeakyRelu", "AveragePool": "QLinearAveragePool",
       "GlobalAveragePool": "QLinearGlobalAveragePool"}  # fmt: skip
TWO = {"Add": "QLinearAdd", "Mul": "QLinearMul"}
SMALL = MOVING - {"Dropout"}  # which take integers as they are


class Real(NamedTuple):
    """A tensor that is dequantized: the names of its integers, scale and zero point."""

    integers: str
    scale: str
    zero: str


def of_integers(model: ModelProto) -> ModelProto:
    """A copy of a model that `activations.quantized` made, with operators on integers."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    _Writer(graph).rewrite()
    _drop_dead(graph)
    if any(n.domain == MICROSOFT for n in graph.node) and all(o.domain != MICROSOFT for o in found.opset_import):
        found.opset_import.add(domain=MICROSOFT, version=1)
    return found


class _Writer:
    """Rewrites the nodes of a graph. real: the tensors that are dequantized, by name; after: the QuantizeLinear that
    alone reads what a node gives, by the name of the node's result; gone: results that no node makes any more."""

    def __init__(self, graph: GraphProto) -> None:
        from onnx import numpy_helper

        self.graph = graph
        self.unused = Unused(graph)
        self.values = {t.name: t for t in graph.initializer}
        self.array = lambda name: numpy_helper.to_array(self.values[name])
        self.real = {n.output[0]: Real(*n.input) for n in graph.node if n.op_type == "DequantizeLinear"}
        self.uses = readers(graph)
        self.outputs = {o.name for o in graph.output}
        self.gone: set[str] = set()

    def rewrite(self) -> None:
        nodes: list[NodeProto] = []
        for node in self.graph.node:
            if node.output[0] not in self.gone:
                nodes += self.written(node) or [node]
        del self.graph.node[:]
        self.graph.node.extend(nodes)

    def written(self, node: NodeProto) -> list[NodeProto] | None:
        """What stands in the place of a node; None for itself."""
        if node.domain not in ("", "ai.onnx") or len(node.output) != 1:
            return None
        given = [self.real.get(name) for name in node.input]
        if node.op_type in ("Conv", "MatMul", "Gemm"):
            if given[0] is None or given[1] is None:
                return None
            return self.product(node, given) or self.sums(node, given)
        after = self.quantized(node)
        if after is None or not given or given[0] is None:
            return None
        if node.op_type in SMALL:
            return self.moved(node, given[0], after)
        if any(one is None for one in given):
            return None
        return self.other(node, [one for one in given if one is not None], after)

    def quantized(self, node: NodeProto) -> NodeProto | None:
        """The QuantizeLinear that alone reads what a node gives, also behind a relu or a clip that its integers cut
        anyway."""
        between: list[NodeProto] = []
        last = node.output[0]
        while last not in self.outputs and len(self.uses.get(last, ())) == 1:
            after = self.uses[last][0]
            if after.op_type == "QuantizeLinear" and after.input[0] == last:
                if not all(self.cuts(each, after) for each in between):
                    return None
                return after
            if after.op_type not in FUSED:
                return None
            between.append(after)
            last = after.output[0]
        return None

    def cuts(self, node: NodeProto, after: NodeProto) -> bool:
        """Whether the ends of the integers cut off whatever a relu or a clip does."""
        low, high = (0.0, np.inf) if node.op_type == "Relu" else (-np.inf, np.inf)
        for i, name in enumerate(node.input[1:]):
            if name and name not in self.values:
                return False
            if name:
                end = float(self.array(name).item())  # of an array of one number, too
                low, high = (end, high) if i == 0 else (low, end)
        scale, zero = float(self.array(after.input[1])), int(self.array(after.input[2]))
        least = 0 if self.array(after.input[2]).dtype == np.uint8 else -128
        return bool(np.rint(low / scale) + zero <= least and np.rint(high / scale) + zero >= least + 255)

    def taken(self, node: NodeProto, after: NodeProto) -> str:
        """The name of the integers that a node gives now, in the place of the nodes from it to QuantizeLinear."""
        last = node.output[0]
        while last != after.input[0]:
            last = self.uses[last][0].output[0]
            self.gone.add(last)
        self.gone.add(after.output[0])
        return str(after.output[0])

    def product(self, node: NodeProto, given: list[Real | None]) -> list[NodeProto] | None:
        """A product that gives integers; None where it cannot."""
        after = self.quantized(node)
        options, (x, w, bias) = _options(node), self.operands(node, given)
        if after is None or x is None or w is None:
            return None
        if node.op_type == "MatMul" and w.integers in self.values and len(self.values[w.integers].dims) != 2:
            return None  # a scale for each column is for matrices
        parts, results = [*x, *w], list(after.input[1:3])
        whole = [] if bias is None else [bias.integers]
        if node.op_type == "Conv":
            return [self.made("QLinearConv", [*parts, *results, *whole], node, after, options)]
        if node.op_type == "MatMul":
            return [self.made("QLinearMatMul", [*parts, *results], node, after, {})]
        inputs = [*parts, *(whole or [""]), *results]
        return [self.made("QGemm", inputs, node, after, {"transB": int(options.get("transB", 0))}, MICROSOFT)]

    def operands(self, node: NodeProto, given: list[Real | None]) -> tuple[Real | None, Real | None, Real | None]:
        """The input, the weight and the bias of a product, in integers; None, None, None where it is none of these."""
        options = _options(node)
        x, w, bias = (*given, None)[:3]
        plain = not options.get("transA") and options.get("alpha", 1.0) == options.get("beta", 1.0) == 1.0
        if not plain or (any(node.input[2:3]) and bias is None):
            return None, None, None
        if bias is not None and (bias.integers not in self.values or self.array(bias.integers).dtype != np.int32):
            return None, None, None
        return x, w, bias

    def sums(self, node: NodeProto, given: list[Real | None]) -> list[NodeProto] | None:
        """A product of integers whose sums are scaled in float, unless a bias in float is added."""
        from onnx import TensorProto, helper

        x, w, bias = self.operands(node, given)
        levels, zero = (self.values.get(name) for name in (w.integers, w.zero)) if w else (None, None)
        if x is None or w is None or levels is None or zero is None or self.array(w.zero).any():
            return None
        conv, options = node.op_type == "Conv", _options(node)
        if not conv and len(levels.dims) != 2:
            return None
        y = node.output[0]
        stem = self.unused.stem(y, "_weight", "_sums", "_bias", "_total", "_floats", "_scales")
        weight, total = w.integers, stem + "_sums"
        if options.get("transB"):
            weight = self.add(stem + "_weight", self.array(weight).T)
        spread = [-1, *[1] * (len(levels.dims) - 2)] if conv else [-1]
        scales = self.array(w.scale).astype(np.float32) * self.array(x.scale).astype(np.float32)
        self.add(stem + "_scales", scales.reshape(spread))
        kind = "ConvInteger" if conv else "MatMulInteger"
        inputs = [x.integers, weight, x.zero]
        nodes = [helper.make_node(kind, inputs, [total], node.name, **(options if conv else {}))]
        if bias is not None:
            inputs = [total, self.add(stem + "_bias", self.array(bias.integers).reshape(spread))]
            total = stem + "_total"
            nodes.append(helper.make_node("Add", inputs, [total], stem + "_Add"))
        return [
            *nodes,
            helper.make_node("Cast", [total], [stem + "_floats"], stem + "_Cast", to=TensorProto.FLOAT),
            helper.make_node("Mul", [stem + "_floats", stem + "_scales"], [y], stem + "_Mul"),
        ]

    def moved(self, node: NodeProto, x: Real, after: NodeProto) -> list[NodeProto] | None:
        """An operator that moves or selects elements, between one grid and the same."""
        from onnx import NodeProto

        grids = [[self.array(name) for name in names] for names in (x[1:], after.input[1:3])]
        if any(a != b for a, b in zip(*grids, strict=True)) or node.output[0] != after.input[0]:
            return None
        made = NodeProto()
        made.CopyFrom(node)
        made.input[0], made.output[0] = x.integers, self.taken(node, after)
        return [made]

    def other(self, node: NodeProto, given: list[Real], after: NodeProto) -> list[NodeProto] | None:
        options, results = _options(node), list(after.input[1:3])
        parts = [name for one in given for name in one]
        if node.op_type in TWO:
            return [self.made(TWO[node.op_type], [*parts, *results], node, after, {}, MICROSOFT)]
        if node.op_type == "Concat":
            return [self.made("QLinearConcat", [*results, *parts], node, after, options, MICROSOFT)]
        divided = options.get("ceil_mode") and options.get("count_include_pad")  # otherwise by onnxruntime
        if node.op_type in ONE and "dilations" not in options and not divided:
            return [self.made(ONE[node.op_type], [*parts, *results], node, after, options, MICROSOFT)]
        return None

    def made(
        self, kind: str, inputs: list[str], node: NodeProto, after: NodeProto, options: dict[str, Any],
        domain: str = "",
    ) -> NodeProto:  # fmt: skip
        from onnx import helper

        return helper.make_node(kind, inputs, [self.taken(node, after)], node.name, domain=domain, **options)

    def add(self, name: str, x: Any) -> str:
        """Store a constant; returns its name."""
        from onnx import numpy_helper

        self.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(x), name))
        return name


def _options(node: NodeProto) -> dict[str, Any]:
    from onnx import helper

    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _drop_dead(graph: GraphProto) -> None:
    """Drop what dequantized integers that only operators on integers read now, and constants that nothing reads."""
    read = {*names_read(graph.node)} | {o.name for o in graph.output}
    keep_only(graph.node, [n.op_type != "DequantizeLinear" or n.output[0] in read for n in graph.node])
    drop_unused(graph)
