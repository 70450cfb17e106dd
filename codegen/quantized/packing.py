"""An ONNX model with the packed weights of a quantized module: as DequantizeLinear of integers, or as MatMulNBits.
Needs the package onnx.

Scales are float32 in the file, whatever the module's are: products of float16 scales would be rounded again. A weight
of another dtype is cast after DequantizeLinear. Products with float32 weights of 2 bits are always MatMulNBits:
onnxruntime 1.32 multiplies dequantized ones wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from emberlet.errors import UnsupportedError
from emberlet.functional.quantized.packed_weights import unpack_bits
from emberlet.nn.quantized_weight import QuantizedWeight

from ..checkpoint_names import is_parameter_name
from ..emit.names import Names
from .graph_names import drop_unused, names_in, readers, rename_inputs
from .input_scales import scaled
from .preparing import with_opset
from .tables import is_looked_up, rows_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

FORMS = ("qdq", "nbits")
INTEGERS = {(8, True): "INT8", (8, False): "UINT8", (4, True): "INT4", (4, False): "UINT4", (2, True): "INT2",
            (2, False): "UINT2"}  # fmt: skip
FLOATS = {"float8_e4m3fn": "FLOAT8E4M3FN", "float8_e5m2": "FLOAT8E5M2"}  # onnxruntime reads none of 4 bits
# The first opset whose DequantizeLinear takes integers of so many bits, and blocks.
OPSETS = {8: 13, 4: 21, 2: 25}
FLOATS_SINCE = 19
BLOCKS_SINCE = 21


class Placed(NamedTuple):
    """A packed weight, and whether the model's initializer is its transpose."""

    weight: QuantizedWeight
    turned: bool

    def is_same(self, other: Placed) -> bool:
        """Whether both are the same numbers in the same form."""
        a, b = self.weight, other.weight
        parts, others = ({name: p.val() for name, p in w.named_params()} for w in (a, b))
        return (
            (self.turned, a.shape, a.axis, a.bits) == (other.turned, b.shape, b.axis, b.bits)
            and parts.keys() == others.keys()
            and all(np.array_equal(np.asarray(x), np.asarray(others[name])) for name, x in parts.items())
        )


def packed(model: ModelProto, weights: Mapping[str, Placed], form: str = "qdq") -> ModelProto:
    """A copy of the model whose initializers are these packed weights, by their names. form: "qdq", or "nbits" for
    MatMulNBits where a product of matrices reads them. Raises UnsupportedError for a weight that ONNX has no form for,
    and names it."""
    import onnx

    given = {name: np.asarray(s.val()) for name, (w, _) in weights.items() if (s := w.input_scale) is not None}
    factors = {name: factor for name, factor in given.items() if (factor != 1).any()}
    found = onnx.ModelProto()
    found.CopyFrom(scaled(model, factors, weights))
    graph = _Graph(found.graph)
    by_nbits = {
        name for name, placed in weights.items()
        if ((form == "nbits" or placed.weight.bits == 2) and _is_factor(graph, name, placed))
        or (form == "nbits" and _is_table(graph, name, placed))
    }  # fmt: skip
    asked = (_opset(name, p.weight, _bits(graph, name, p)) for name, p in weights.items() if name not in by_nbits)
    needed = max(asked, default=0)
    converted = with_opset(found, needed)
    if converted is not found:
        found, graph = converted, _Graph(converted.graph)
    found.ir_version = max(found.ir_version, {19: 9, 21: 10, 25: 13}.get(needed, 4))
    if by_nbits and not any(o.domain == "com.microsoft" for o in found.opset_import):
        found.opset_import.add(domain="com.microsoft", version=1)
    for name, placed in weights.items():
        if name in by_nbits:
            _as_nbits(graph, name, placed)
        else:
            _as_qdq(graph, name, placed)
    graph.finish()
    return found


def copies_of_table(model: ModelProto, read: Mapping[str, Sequence[NodeProto]], name: str) -> list[str]:
    """The initializers that hold a table transposed for the last product of a language model, see passes/tied.py; none
    where the weight called `name` is no table. read: what reads each tensor."""
    from onnx import numpy_helper

    if all(n.op_type != "Gather" for n in read.get(name, ())):
        return []
    constants = {t.name: t for t in model.graph.initializer}
    table = constants[name]
    found = [
        t for t in constants.values()
        if list(t.dims) == list(table.dims)[::-1] and t.data_type == table.data_type
        and not is_parameter_name(t.name) and {n.op_type for n in read.get(t.name, ())} <= {"MatMul", "Gemm"}
    ]  # fmt: skip
    if not found:
        return []
    values = numpy_helper.to_array(table).T
    return [t.name for t in found if np.array_equal(numpy_helper.to_array(t), values)]


class _Graph:
    """The graph of a model while weights are packed in it. nodes: new ones, before all others; instead: those in the
    place of a node, by its result; renamed: what is read under another name."""

    def __init__(self, proto: GraphProto) -> None:
        self.proto = proto
        self.readers = readers(proto)
        self.constants: dict[str, TensorProto] = {t.name: t for t in proto.initializer}
        self.names = Names(names_in(proto))
        self.nodes: list[NodeProto] = []
        self.instead: dict[str, list[NodeProto]] = {}
        self.renamed: dict[str, str] = {}

    def add(self, name: str, kind: str, x: Any) -> str:
        """Store an initializer called like this, or so that the name is free; returns the name."""
        from onnx import TensorProto, helper, numpy_helper

        name = self.names.unique(name)
        if kind in ("INT8", "UINT8", "FLOAT"):
            made = numpy_helper.from_array(np.ascontiguousarray(x), name)
        else:
            made = helper.make_tensor(name, TensorProto.DataType.Value(kind), x.shape, x.reshape(-1).tolist())
            made.raw_data = bytes(n & 255 for n in made.int32_data)  # which takes 1.5 bytes each
            del made.int32_data[:]
        self.proto.initializer.append(made)
        return name

    def finish(self) -> None:
        rename_inputs(self.proto.node, self.renamed)
        placed = (n for node in self.proto.node for n in self.instead.get(node.output[0], [node]))
        nodes = [*self.nodes, *placed]
        del self.proto.node[:]
        self.proto.node.extend(nodes)
        drop_unused(self.proto)


def _opset(name: str, w: QuantizedWeight, bits: int) -> int:
    """The opset that DequantizeLinear of a weight in so many bits needs. Raises UnsupportedError."""
    blocks = -(-w.count // w.block_size)
    why = ""
    if w.tensor_scale is not None:
        why = "ONNX has no scales of two levels"
    elif w.levels is not None:
        why = f"ONNX has no levels of {w.scheme.codebook}"
    elif w.scheme.value is not None and w.scheme.value.name not in FLOATS:
        why = f"onnxruntime reads no weights of {w.scheme.value}"
    elif blocks > 1 and len(w.shape) != 2:
        why = f"ONNX has no blocks of {w.block_size} weights over several axes"
    if why:
        raise UnsupportedError(f"{name}: {why}; leave out onnx, or give another scheme")
    return max(OPSETS[bits], BLOCKS_SINCE if blocks > 1 else 0, FLOATS_SINCE if w.scheme.value is not None else 0)


def _levels(w: QuantizedWeight) -> Any:
    """The levels, uint8 (channels, weights of each)."""
    values = w.values.val()
    levels = np.asarray(unpack_bits(values, w.bits)).reshape(values.shape[0], -1)
    return levels[:, : w.count]


def _grid(name: str, w: QuantizedWeight) -> tuple[Any, Any]:
    """(scales float32 (channels, blocks), zero points, integers of the same shape, or None)"""
    scales = np.asarray(w.scales()).reshape(w.shape[w.axis], -1)
    if w.zero_point is None:
        return scales, None
    zero = np.asarray(w.zero_point.val()).reshape(scales.shape)
    if not ((zero == np.rint(zero)) & (zero >= 0) & (zero < 1 << w.bits)).all():
        raise UnsupportedError(
            f"{name}: its zero points are no integers of {w.bits} bits, as ONNX's are; leave out onnx, or give "
            "another scheme"
        )
    return scales, zero.astype(np.uint8)


def _as_qdq(graph: _Graph, name: str, placed: Placed) -> None:
    """Put DequantizeLinear before what reads a weight, in branches and bodies, too, and after look-ups of rows."""
    from onnx import TensorProto, helper

    w, turned = placed
    scales, zero = _grid(name, w)
    symmetric, axis, looked_up = zero is None, w.axis, _look_ups(graph, name, placed)
    if w.scheme.value is not None:
        kind = FLOATS[w.scheme.value.name]
        rows = np.asarray(w.values.val().astype("float32")).reshape(len(scales), -1)[:, : w.count]
    else:
        kind = INTEGERS[_bits(graph, name, placed), symmetric]
        rows = _levels(w).astype(np.int16) - ((1 << (w.bits - 1)) if symmetric else 0)
        rows = rows.astype(np.int8 if symmetric else np.uint8)
    others = [n for i, n in enumerate(w.shape) if i != axis]
    x = np.moveaxis(rows.reshape(-1, *others), 0, axis)
    if turned:
        x, axis = x.T, 1 - axis
    more = {"axis": axis}
    if scales.shape[1] > 1:
        more = {"axis": 1 - axis, "block_size": w.block_size}

    def placed_as(part: Any) -> Any:
        return part[:, 0] if scales.shape[1] == 1 else part if axis == 0 else part.T

    dtype = graph.constants[name].data_type
    levels = graph.add(name + "_quantized", kind, x)
    if looked_up:
        held = [levels, graph.add(name + "_scales", "FLOAT", scales)]
        if zero is not None:
            held.append(graph.add(name + "_zero_points", kind, zero))
        block = w.block_size if scales.shape[1] > 1 else 0
        for node in looked_up:
            graph.instead[node.output[0]] = rows_of(node, held, graph.names.unique, block, dtype)
        if len(looked_up) == len(graph.readers[name]):
            return
    parts = [levels, graph.add(name + "_scale", "FLOAT", placed_as(scales))]
    if zero is not None:
        parts.append(graph.add(name + "_zero_point", kind, placed_as(zero)))
    result = graph.names.unique(name + "_dequantized")
    called = graph.names.unique(name + "_DequantizeLinear")
    graph.nodes.append(helper.make_node("DequantizeLinear", parts, [result], called, **more))
    if dtype != TensorProto.FLOAT:
        wide, result = result, graph.names.unique(name + "_cast")
        graph.nodes.append(helper.make_node("Cast", [wide], [result], graph.names.unique(name + "_Cast"), to=dtype))
    graph.renamed[name] = result


def _bits(graph: _Graph, name: str, placed: Placed) -> int:
    """The bits of a weight's integers in the file: 8 where rows are looked up, since ONNX looks up none of fewer."""
    return 8 if _look_ups(graph, name, placed) else placed.weight.bits


def _look_ups(graph: _Graph, name: str, placed: Placed) -> list[NodeProto]:
    """The Gathers of rows of a weight whose integers ONNX looks up."""
    w = placed.weight
    if w.scheme.value is not None or len(w.shape) != 2 or w.axis != placed.turned:
        return []
    return [n for n in graph.readers.get(name, ()) if is_looked_up(n, name)]


def _has_blocks(graph: _Graph, name: str, w: QuantizedWeight) -> bool:
    """Whether MatMulNBits and GatherBlockQuantized have the form of a weight."""
    from onnx import TensorProto

    power = w.block_size & (w.block_size - 1) == 0 and w.block_size >= 16
    if len(w.shape) != 2 or not (power or w.count <= w.block_size) or w.scheme.value is not None:
        return False
    if w.tensor_scale is not None or w.levels is not None:
        return False
    return graph.constants[name].data_type == TensorProto.FLOAT and name in graph.readers


def _is_table(graph: _Graph, name: str, placed: Placed) -> bool:
    """Whether GatherBlockQuantized can stand for each node that reads a weight."""
    w = placed.weight
    whole = w.count % (8 // w.bits) == 0 and (w.count <= w.block_size or w.count % w.block_size == 0)
    return (
        _has_blocks(graph, name, w) and whole and w.bits > 2 and w.axis == placed.turned
        and all(is_looked_up(n, name) for n in graph.readers[name])
    )  # fmt: skip


def _is_factor(graph: _Graph, name: str, placed: Placed) -> bool:
    """Whether MatMulNBits can stand for each node that reads a weight."""
    w = placed.weight
    if not _has_blocks(graph, name, w):
        return False
    for node in graph.readers[name]:
        flags = {a.name: a.i for a in node.attribute if a.type == 2}
        factors = [a.f for a in node.attribute if a.name in ("alpha", "beta")]
        plain = node.op_type == "MatMul" or (
            node.op_type == "Gemm" and not flags.get("transA") and all(f == 1.0 for f in factors)
        )
        turned = node.op_type == "Gemm" and bool(flags.get("transB"))
        if not plain or len(node.input) < 2 or node.input[1] != name or w.axis != (turned == placed.turned):
            return False
        if any(node.input[2:3]):
            bias = graph.constants.get(node.input[2])
            if bias is None or list(bias.dims) != [w.shape[w.axis]]:
                return False
    return True


def _as_nbits(graph: _Graph, name: str, placed: Placed) -> None:
    """Replace the products that read a weight by MatMulNBits, look-ups by GatherBlockQuantized."""
    from onnx import helper

    w = placed.weight
    scales, zero = _grid(name, w)
    columns, blocks = scales.shape
    size = w.block_size if blocks > 1 else max(16, 1 << (w.count - 1).bit_length())
    levels = np.full((columns, blocks * size), 1 << (w.bits - 1), np.uint8)
    levels[:, : w.count] = _levels(w)
    each = 8 // w.bits
    held = _bytes(levels, w.bits)
    reading = graph.readers[name]
    table = reading[0].op_type == "Gather"
    held = held[:, : w.count // each] if table else held.reshape(columns, blocks, size // each)
    parts = [
        graph.add(f"{name}_Q{w.bits}", "UINT8", held),
        graph.add(name + "_scale", "FLOAT", scales if table else scales.reshape(-1)),
    ]
    if zero is not None:
        points = np.zeros((columns, -(-blocks // each) * each), np.uint8)
        points[:, :blocks] = zero
        parts.append(graph.add(name + "_zero_point", "UINT8", _bytes(points, w.bits)))
    for node in reading:
        more: dict[str, Any] = {"bits": w.bits, "block_size": size}
        if table:
            kind, inputs = "GatherBlockQuantized", [parts[0], node.input[1], *parts[1:]]
        else:
            kind, inputs = "MatMulNBits", [node.input[0], *parts]
            more |= {"K": w.count, "N": columns}
            if any(node.input[2:3]):
                inputs += [""] * (5 - len(inputs)) + [node.input[2]]
        made = helper.make_node(kind, inputs, list(node.output), node.name, domain="com.microsoft", **more)
        node.CopyFrom(made)


def _bytes(levels: Any, bits: int) -> Any:
    """uint8 (n, k) -> uint8 (n, k * bits / 8), the first in the lowest bits."""
    each = 8 // bits
    parts = levels.reshape(len(levels), -1, each) << (np.arange(each, dtype=np.uint8) * bits)
    return np.bitwise_or.reduce(parts, axis=2).astype(np.uint8)
