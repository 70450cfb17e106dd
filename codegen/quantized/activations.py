"""An ONNX model with its activations and weights in 8 bits: QuantizeLinear and DequantizeLinear around the operators
that integer kernels compute, in the form of onnxruntime's static quantization. Needs the package onnx.

Where products read what norms or softmaxes compute, only inputs of products are quantized, and what lies between two of
them: integers elsewhere would cost passes and digits, and save no product.

Activations are uint8 with a zero point, weights int8 with a scale for each output and zero in the middle, biases int32
with the product of both scales. A relu after such an operator is fused, so nothing is quantized between the two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from emberlet.errors import UnsupportedError
from emberlet.host.quantization.calibration import Range, grid_of
from emberlet.host.quantization.multipliers import short_scales

from .floats import FUSED, MOVING, OTHERS, PRODUCTS, between, integers, masked, sensitive
from .graph_names import Unused, drop_unused, readers
from .levels import Levels, levels_of
from .preparing import check

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

ONLY_BOARDS = {"ConvTranspose"}  # which others multiply as floats


def tensors(model: ModelProto) -> list[str]:
    """The activations of a prepared model that get a grid, in order."""
    found = [[*q.reads, q.writes] for q in _quantized(model.graph)[0]]
    return list(dict.fromkeys(name for names in found for name in names if name))


class _Quantized(NamedTuple):
    """A node that is quantized. reads: its inputs that are; writes: its result, after a fused relu, or ""; weight:
    as weight_of gives it."""

    node: NodeProto
    reads: list[str]
    writes: str
    weight: tuple[str, list[int]] | None


def _quantized(graph: GraphProto) -> tuple[list[_Quantized], bool]:
    """(the nodes that are quantized, whether all tensors of the network are): products with weights, and what lies
    between them."""
    found = list(_possible(graph))
    products = {q.node.output[0] for q in found if q.weight}
    inside = between(graph, products, {t.name for t in graph.initializer})
    if inside is None:
        return found, True
    found = [q for q in found if q.weight or q.writes in inside]
    return [q._replace(reads=[]) if q.node.op_type in ONLY_BOARDS else q for q in found], False


def _possible(graph: GraphProto) -> Iterator[_Quantized]:
    """The nodes that integer kernels compute."""
    constants = {t.name: t for t in graph.initializer}
    uses, outputs = readers(graph), {o.name for o in graph.output}
    made = {o: node for node in graph.node for o in node.output}
    biased: set[str] = set()  # the sums that are a product's bias
    beyond = masked(graph, constants, uses)
    left = integers(graph) | sensitive(graph) | beyond
    for node in graph.node:
        if node.domain not in ("", "ai.onnx") or (node.op_type in OTHERS and node.output[0] in left):
            continue
        if node.op_type in PRODUCTS:
            weight = weight_of(node, constants, made)
            if weight is not None and constants[weight[0]].data_type != 1:
                continue
            if node.input[0] in constants or (weight is None and node.input[1] in constants):
                continue
            reads = [*node.input[: 1 if weight is not None else 2]]
        elif node.op_type not in OTHERS or node.output[0] in biased:
            continue
        else:
            weight = None
            reads = [n for n in node.input[: 1 if node.op_type == "Resize" else None] if n and n not in constants]
        if not reads or any(n in left for n in reads):
            continue
        last = node.output[0]
        while last not in outputs and len(uses.get(last, ())) == 1:
            after = uses[last][0]
            bias = [n for n in after.input if n in constants and len(constants[n].dims) == 1]
            if after.op_type == "Add" and node.op_type == "MatMul" and last == node.output[0] and bias:
                biased.add(after.output[0])
            elif after.op_type not in FUSED:
                break
            last = after.output[0]
        hidden = last in left or node.output[0] in left
        ends = node.op_type in PRODUCTS and _ends(last, uses, outputs) and last not in beyond
        yield _Quantized(node, reads, "" if hidden and not ends else last, weight)


def _ends(name: str, uses: Mapping[str, list[NodeProto]], outputs: Collection[str]) -> bool:
    """Whether only the softmax that ends a classifier reads a tensor. Boards need a grid for it."""
    after = uses.get(name, [])
    return len(after) == 1 and after[0].op_type == "Softmax" and after[0].output[0] in outputs


def weight_of(
    node: NodeProto, constants: Mapping[str, Any], made: Mapping[str, NodeProto]
) -> tuple[str, list[int]] | None:
    """(the initializer of a product's weight, its axes in the order of the input's); a Transpose may lie between."""
    name = node.input[1]
    if name in constants:
        axes = list(range(len(constants[name].dims)))
    else:
        before = made.get(name)
        if before is None or before.op_type != "Transpose" or before.input[0] not in constants:
            return None
        name = before.input[0]
        axes = list(range(len(constants[name].dims)))[::-1]
        axes = next((list(a.ints) for a in before.attribute if a.name == "perm"), axes)
    return (name, axes) if len(axes) >= 2 else None


def observed(model: ModelProto, names: Collection[str]) -> ModelProto:
    """The model with these activations as outputs, after its own."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    had = {o.name for o in found.graph.output}
    inputs = {i.name for i in found.graph.input}
    for name in names:
        if name not in had and name not in inputs:
            found.graph.output.append(onnx.ValueInfoProto(name=name))
    return found


def with_values(model: ModelProto, values: Mapping[str, Any]) -> ModelProto:
    """The model with other values of some initializers; the model itself if there are none."""
    import onnx
    from onnx import numpy_helper

    if not values:
        return model
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for t in found.graph.initializer:
        if t.name in values:
            t.CopyFrom(numpy_helper.from_array(values[t.name].reshape(tuple(t.dims)), t.name))
    return found


def quantized(
    model: ModelProto, ranges: Mapping[str, Range], keep: Collection[str] = (), others: bool = True,
    levels: Mapping[tuple[str, int], Levels] = {},
) -> ModelProto:  # fmt: skip
    """The prepared model in 8 bits. ranges: of the activations that `tensors` lists. keep: names of weights whose
    operators stay in floats; others: whether those without weights are quantized; levels: the integers of weights,
    by name and axis of outputs, which are else the nearest."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    possible, whole = _quantized(graph)
    chosen = [q for q in possible if (q.weight[0] not in keep if q.weight else others)]
    grids = _grids(graph, ranges)
    wanted = {name for q in chosen for name in (*q.reads, q.writes) if name in grids}
    constants = {t.name: t for t in graph.initializer}
    outputs = {o.name for o in graph.output}
    unused = Unused(graph)
    given = {name: _pair(graph, unused, name, *grids[name], name in outputs) for name in sorted(wanted)}
    read = set(outputs) if whole else set()
    written = {q.writes for q in chosen}
    softmaxes = [n for n in graph.node if whole and n.op_type == "Softmax" and n.input[0] in written]
    for node, reads, _, _ in [*chosen, *(_Quantized(n, [*n.input], "", None) for n in softmaxes)]:
        for i, name in enumerate(node.input):
            if name in given and name in reads:
                read.add(name)
                if not given[name].own:
                    node.input[i] = given[name].result
    given = {name: pair for name, pair in given.items() if name in read}
    rounded = _Rounded(graph, unused, constants, levels)
    for node, reads, writes, weight in chosen:
        if weight is not None:
            out = grids[writes] if writes in given else None
            rounded.add(node, weight, grids.get(reads[0]) if reads else None, out)
    for name, pair in given.items():
        if pair.own:  # the producer writes under another name, and the model's output keeps its own
            for node in graph.node:
                node.output[:] = [pair.source if o == name else o for o in node.output]
                if node.op_type in FUSED:
                    node.input[:] = [pair.source if n == name else n for n in node.input]
    _insert(graph, given)
    check(found, model)
    return found


def serialized(model: ModelProto) -> bytes:
    """The bytes of a model's file. Raises UnsupportedError for one beyond the 2 GiB of protobuf."""
    try:
        return bytes(model.SerializeToString())
    except Exception as error:  # protobuf's implementations raise ValueError or an EncodeError of their own
        raise UnsupportedError(f"the quantized model cannot be written as ONNX: {error}") from None


class _Grid:
    """The nodes that quantize one activation. source: the tensor that is quantized; result: its rounded values; own:
    whether the result has the activation's name."""

    def __init__(self, source: str, result: str, own: bool, nodes: list[NodeProto]) -> None:
        self.source, self.result, self.own, self.nodes = source, result, own, nodes


def _pair(graph: GraphProto, unused: Unused, name: str, scale: float, zero: int, output: bool) -> _Grid:
    from onnx import helper, numpy_helper

    activation = name
    name = unused.stem(name, "_scale", "_zero_point", "_quantized", "_float" if output else "_dequantized")
    graph.initializer.append(numpy_helper.from_array(np.array(scale, np.float32), name + "_scale"))
    graph.initializer.append(numpy_helper.from_array(np.array(zero, np.uint8), name + "_zero_point"))
    source, result = (name + "_float", activation) if output else (activation, name + "_dequantized")
    parts, small = [name + "_scale", name + "_zero_point"], name + "_quantized"
    nodes = [
        helper.make_node("QuantizeLinear", [source, *parts], [small], name + "_QuantizeLinear"),
        helper.make_node("DequantizeLinear", [small, *parts], [result], name + "_DequantizeLinear"),
    ]
    return _Grid(source, result, output, nodes)


def _grids(graph: GraphProto, ranges: Mapping[str, Range]) -> dict[str, tuple[float, int]]:
    """A grid for each activation with a range; that of an operator that only moves elements is its input's. What only a
    Concat reads has the grid of the whole, so that it is rounded once."""
    found = {name: grid_of(*span) for name, span in ranges.items()}
    uses, outputs = readers(graph), {o.name for o in graph.output}
    made = {o: node for node in graph.node for o in node.output}
    for node in reversed(graph.node):
        whole = found.get(node.output[0]) if node.op_type == "Concat" else None
        for name in node.input if whole else ():
            chain = [name]
            while name in made and made[name].op_type in MOVING:
                name = made[name].input[0]
                chain.append(name)
            alone = all(len(uses.get(n, ())) == 1 and n in found and n not in outputs for n in chain)
            if whole and alone and name in made:
                found.update(dict.fromkeys(chain, whole))
    for node in graph.node:
        if node.op_type in MOVING and node.input and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
    return found


class _Rounded:
    """Replaces the weights and the biases of products by integers that are dequantized. chosen: the integers of
    weights, by name and axis of outputs; done: (the result, its scales) of each weight and axis of outputs."""

    def __init__(
        self, graph: GraphProto, unused: Unused, constants: Mapping[str, Any], chosen: Mapping[tuple[str, int], Levels]
    ) -> None:
        self.graph, self.unused, self.constants, self.chosen = graph, unused, constants, chosen
        self.done: dict[tuple[str, int], tuple[str, Any]] = {}

    def add(
        self, node: NodeProto, weight: tuple[str, list[int]], grid: tuple[float, int] | None,
        out: tuple[float, int] | None,
    ) -> None:  # fmt: skip
        """Those of a product. grid: of what it reads; out: of what it gives, None for floats."""
        from onnx import numpy_helper

        name, axes = weight
        w = numpy_helper.to_array(self.constants[name])
        flags = {a.name: a.i for a in node.attribute if a.type == 2}
        axis = PRODUCTS[node.op_type]
        if node.op_type == "MatMul":
            axis = w.ndim - 1
        elif flags.get("transB") or (node.op_type == "ConvTranspose" and flags.get("group", 1) != 1):
            axis = 0
        own = axes[axis]  # the outputs' axis in the initializer
        bias = node.input[2] if len(node.input) > 2 else ""
        added = numpy_helper.to_array(self.constants[bias]).astype(np.float64) if bias in self.constants else None
        key = name, own
        if key not in self.done:

            def coarser(rows: Any, scales: Any) -> Any:
                whole = added if added is not None and added.shape == scales.shape else None
                return scales if grid is None else short_scales(rows, scales, grid, out and out[0], whole)

            levels, scale = levels_of(w, own, self.chosen.get(key), coarser)
            again = any(held == name for held, _ in self.done)  # along another axis
            stem = f"{name}_{own}" if again else name
            self.done[key] = _constant(self.graph, self.unused, stem, levels, scale, own), scale
        result, scale = self.done[key]
        reader = node if node.input[1] == name else next(n for n in self.graph.node if node.input[1] in n.output)
        reader.input[:] = [result if n == name else n for n in reader.input]
        factor = next((a.f for a in node.attribute if a.name in ("alpha", "beta")), 1.0)
        if added is None or grid is None or factor != 1.0:
            return
        both = scale.astype(np.float64) * grid[0]
        steps = np.rint(added / both) if added.shape == both.shape else None
        if steps is None or np.abs(steps).max(initial=0) >= 1 << 30:
            return
        held = f"{bias}_of_{node.output[0]}"  # of one node, because its scale is its input's, too
        whole = steps.astype(np.int32)
        node.input[2] = _constant(self.graph, self.unused, held, whole, both.astype(np.float32), 0)


def _constant(graph: GraphProto, unused: Unused, name: str, levels: Any, scale: Any, axis: int) -> str:
    """Store integers and their scales, and the node that dequantizes them; returns the name of its result."""
    from onnx import helper, numpy_helper

    name = unused.stem(name, "_quantized", "_scale", "_zero_point", "_dequantized")
    parts = [name + "_quantized", name + "_scale", name + "_zero_point"]
    for part, value in zip(parts, (levels, scale, np.zeros(scale.shape, levels.dtype)), strict=True):
        graph.initializer.append(numpy_helper.from_array(value, part))
    result = name + "_dequantized"
    graph.node.insert(0, helper.make_node("DequantizeLinear", parts, [result], name + "_DequantizeLinear", axis=axis))
    return result


def _insert(graph: GraphProto, given: Mapping[str, _Grid]) -> None:
    """Put each pair after the node that makes its tensor, or first if that is an input; drop constants not used."""
    waiting = {pair.source: pair for pair in given.values()}
    nodes: list[NodeProto] = []
    for i in graph.input:
        if i.name in waiting:
            nodes += waiting.pop(i.name).nodes
    for node in graph.node:
        nodes.append(node)
        for o in node.output:
            if o in waiting:
                nodes += waiting.pop(o).nodes
    del graph.node[:]
    graph.node.extend(nodes)
    drop_unused(graph)
