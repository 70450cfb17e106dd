"""Operators on quantized tensors (onnxruntime's format QOperator): decomposed into DequantizeLinear, the operator on
real numbers, and QuantizeLinear. Also products and lookups with block-quantized weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from emberlet import dtypes
from emberlet.codegen.evaluation import evaluate
from emberlet.codegen.ir.argument import ABSENT, Argument, Constant
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType, UnknownType
from emberlet.codegen.ir.value import Inline, Value
from emberlet.codegen.ops import REGISTRY
from emberlet.codegen.ops import microsoft_quantized as q
from emberlet.codegen.ops import microsoft_quantized_products as p
from emberlet.codegen.ops import quantization as s
from emberlet.codegen.ops.attributes import Attributes, AttributeValue
from emberlet.codegen.ops.microsoft_products import GatherBlockQuantized, MatMulNBits
from emberlet.codegen.ops.pooling import AveragePool

from ..kernels.layer import Array
from ..quantization.reference import ZERO
from .state import Importer
from .table import translates
from .translation import translate
from .values import numpy_of

OPSET = 21

MOST_ROWS = 1 << 14
"""The most rows of a weight or a table. Its real numbers are the operator's results for ones, or for all indices."""


def constant(array: Array, name: str) -> Argument:
    """An argument that is an array of float32 or int64."""
    kinds = {"float32": dtypes.float32, "int64": dtypes.int64}
    value = Value(kinds[array.dtype.name], array.shape, Inline(np.ascontiguousarray(array).tobytes()))
    return Argument(name, TensorType(value.dtype, value.shape), Constant(value))


class Parts:
    """The nodes that replace one node; their names are derived from its name."""

    def __init__(self, t: Importer, node: Node[Any]) -> None:
        self.t, self.node = t, node
        self.known: dict[str, Argument] = {}
        self.count = 0

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"{self.node.name}:{what}.{self.count}"

    def make(self, kind: str, inputs: Sequence[Argument], name: str = "", **attributes: AttributeValue) -> Argument:
        """The result of an ONNX node. name: the node's name, "" to derive one. Raises Problem."""
        out = Argument(self.fresh(kind.lower()), UnknownType())
        if self.node.outputs[0].name in self.t.outputs.only_softmax:
            self.t.outputs.only_softmax.add(out.name)
        given = tuple(inputs)
        made = REGISTRY[("", kind)].make(
            name or self.fresh(kind), given, (out,), Attributes(attributes, OPSET, given, (out,))
        )
        return self.do(made)

    def do(self, node: Node[Any]) -> Argument:
        """The only output of an existing node."""
        own = {o.name for o in self.node.outputs}
        self.t.outputs.read.update(o.name for o in node.outputs if o.name not in own)
        translate(self.t, node, self.known)
        return self.known[node.outputs[0].name]

    def channels_first(self, x: Argument, last: bool) -> Argument:
        """The tensor with its channels first, if they are `last`."""
        rank = len(dims_known(x))
        return self.make("Transpose", [x], perm=(0, rank - 1, *range(1, rank - 1))) if last else x

    def channels_last(self, y: Argument, last: bool) -> Argument:
        """Undo `channels_first`."""
        return self.make("Transpose", [y], perm=(0, *range(2, len(dims_known(y))), 1)) if last else y

    def argument(self, i: int) -> Argument:
        return self.node.inputs[i] if self.node.has(i) else ABSENT

    def real(self, i: int, scale: int, zero: int, axis: int = 0) -> Argument:
        """Input i, dequantized. axis: the axis of the scales, if there are several."""
        given = [self.argument(i), self._scale(scale), self._scale(zero)]
        return self.make("DequantizeLinear", [a for a in given if a.present], axis=axis)

    def _scale(self, i: int) -> Argument:
        """A scale or zero point, without the axes of size 1 that some exporters add."""
        found = self.argument(i)
        value = found.value if found.present else None
        if value is None or len(value.shape) < 2 or value.size not in value.shape:
            return found
        flat = Value(value.dtype, (value.size,), Inline(bytes(value.raw())))
        return Argument(f"{found.name}:flat", TensorType(flat.dtype, flat.shape), Constant(flat))

    def end(self, value: Argument, scale: int, zero: int) -> None:
        """The node's output: a value, quantized."""
        if zero < len(self.node.inputs) and self.node.has(zero):
            given = [value, self._scale(scale), self._scale(zero)]
        else:
            given = [value, self._scale(scale)]
        self.output(self.make("QuantizeLinear", given))

    def output(self, value: Argument) -> None:
        """Make a value that the parts computed the node's output."""
        self.t.layout.held[self.node.outputs[0].name] = self.t.layout.held[value.name]

    def bias(self, i: int, x_scale: int, w_scale: int, factor: float = 1.0) -> list[Argument]:
        """An int32 bias, in units of the product of both scales, as real numbers; nothing if there is no bias."""
        if not self.node.has(i):
            return []
        steps, x, w = (numpy_of(v) for v in map(self.node.value, (i, x_scale, w_scale)) if v is not None)
        real = steps.astype(np.float64) * x.astype(np.float64).reshape(-1) * w.astype(np.float64).reshape(-1) * factor
        return [constant(real.reshape(-1).astype(np.float32), self.fresh("bias"))]


def _known_scales(node: Node[Any], *indices: int) -> None:
    for i in indices:
        if node.has(i) and node.value(i) is None:
            raise Problem("weights, scales or a bias that the model computes are not supported; they must be constant")


@translates(s.QLinearConv, p.QLinearConv)
def conv(t: Importer, node: Any) -> None:
    _known_scales(node, 1, 2, 3, 4, 5, 8)
    last = isinstance(node, p.QLinearConv) and node.config.channels_last
    config = node.config.conv if isinstance(node, p.QLinearConv) else node.config
    parts = Parts(t, node)
    x = parts.channels_first(parts.real(0, 1, 2), last)
    w = parts.real(3, 4, 5)
    window = node.conv().window() if isinstance(node, p.QLinearConv) else node.window()
    attributes = window_attributes(window, dims_known(x), config.groups)
    y = parts.make("Conv", [x, w, *parts.bias(8, 1, 4)], node.name, **attributes)
    parts.end(parts.channels_last(y, last), 6, 7)


def window_attributes(window: Any, dims: tuple[int, ...], groups: int) -> dict[str, AttributeValue]:
    """The attributes of a Conv. dims: of its input."""
    pads = window.padding(dims[2:])
    return {
        "kernel_shape": tuple(window.kernel),
        "strides": tuple(window.stride),
        "dilations": tuple(window.dilation),
        "pads": (*(low for low, _ in pads), *(high for _, high in pads)),
        "group": groups,
    }


def dims_known(a: Argument) -> tuple[int, ...]:
    shape = a.type.static_shape if isinstance(a.type, TensorType) else None
    if shape is None:
        raise Problem(f"the shape of {a.name!r} is not known before the model runs")
    return shape


@translates(s.QLinearMatMul)
def matmul(t: Importer, node: s.QLinearMatMul) -> None:
    parts = Parts(t, node)
    parts.end(parts.make("MatMul", [parts.real(0, 1, 2), parts.real(3, 4, 5, axis=1)], node.name), 6, 7)


@translates(p.QGemm)
def gemm(t: Importer, node: p.QGemm) -> None:
    _known_scales(node, 1, 3, 4, 6)
    c, parts = node.config, Parts(t, node)
    a, b = parts.real(0, 1, 2), parts.real(3, 4, 5, axis=0 if c.trans_b else 1)
    # The bias is in units of the product of both scales and alpha.
    bias = parts.bias(6, 1, 4, c.alpha)
    how: dict[str, AttributeValue] = {"alpha": c.alpha, "transA": int(c.trans_a), "transB": int(c.trans_b)}
    y = parts.make("Gemm", [a, b, *bias], node.name, **how)
    if node.has(7):
        parts.end(y, 7, 8)
    else:
        parts.output(y)


@translates(q.QLinearAdd, q.QLinearMul)
def pairwise(t: Importer, node: q.QLinearBinary) -> None:
    parts = Parts(t, node)
    kind = "Add" if isinstance(node, q.QLinearAdd) else "Mul"
    parts.end(parts.make(kind, [parts.real(0, 1, 2), parts.real(3, 4, 5)], node.name), 6, 7)


@translates(q.QLinearSigmoid, q.QLinearLeakyRelu, q.QLinearSoftmax, q.QLinearReduceMean)
def function(t: Importer, node: Any) -> None:
    parts, c = Parts(t, node), node.config
    x = parts.real(0, 1, 2)
    if isinstance(node, q.QLinearSigmoid):
        y = parts.make("Sigmoid", [x], node.name)
    elif isinstance(node, q.QLinearLeakyRelu):
        y = parts.make("LeakyRelu", [x], node.name, alpha=c.alpha)
    elif isinstance(node, q.QLinearSoftmax):
        y = _softmax(parts, x, c)
    else:
        axes = constant(np.asarray(node.axes(), np.int64), parts.fresh("axes"))
        y = parts.make("ReduceMean", [x, axes], node.name, keepdims=int(c.keepdims))
    parts.end(y, 3, 4)


def _softmax(parts: Parts, x: Argument, c: q.SoftmaxConfig) -> Argument:
    dims = dims_known(x)
    if c.flattened and any(n != 1 for n in dims[c.axis % len(dims) + 1 :]):
        raise Problem("softmax over several axes (before opset 13) is not supported")
    return parts.make("Softmax", [x], parts.node.name, axis=c.axis)


@translates(q.QLinearConcat)
def concat(t: Importer, node: q.QLinearConcat) -> None:
    parts = Parts(t, node)
    given = [parts.real(i, i + 1, i + 2) for i in range(2, len(node.inputs), 3)]
    parts.end(parts.make("Concat", given, node.name, axis=node.config.axis), 0, 1)


@translates(q.QLinearAveragePool)
def average_pool(t: Importer, node: q.QLinearAveragePool) -> None:
    parts, last = Parts(t, node), node.config.channels_last
    x = parts.channels_first(parts.real(0, 1, 2), last)
    out = Argument(parts.fresh("pool"), UnknownType())
    y = parts.do(AveragePool(node.name, (x,), (out,), node.config.pool))
    parts.end(parts.channels_last(y, last), 3, 4)


@translates(q.QLinearGlobalAveragePool)
def global_average_pool(t: Importer, node: q.QLinearGlobalAveragePool) -> None:
    parts = Parts(t, node)
    x = parts.real(0, 1, 2)
    rank = len(dims_known(x))
    axes = range(1, rank - 1) if node.config.channels_last else range(2, rank)
    given = [x, constant(np.asarray(axes, np.int64), parts.fresh("axes"))]
    parts.end(parts.make("ReduceMean", given, node.name, keepdims=1), 3, 4)


# -- weights of 2, 4 or 8 bits in blocks that share a scale -----------------------------------------------------------


@translates(MatMulNBits)
def matmul_of_block_weights(t: Importer, node: MatMulNBits) -> None:
    """In int8, a column whose weights are a single block keeps its scale; other columns get one scale each."""
    c = node.config
    _check(node, range(1, len(node.inputs)), c.rows)
    ones = constant(np.eye(c.rows, dtype=np.float32), "every")
    weights = constant(_real(node, (ones, *node.inputs[1:5])), f"{node.name}:weights")
    if c.block_size >= c.rows and not node.has(3):
        t.grids.weights[weights.name] = t.array(node, 2, "the scales").astype(np.float64).reshape(-1), 1, ZERO
        if c.bits <= 4:
            t.grids.narrow.add(weights.name)
    parts = Parts(t, node)
    y = parts.make("MatMul", [node.inputs[0], weights], node.name)
    parts.output(parts.make("Add", [y, node.inputs[5]]) if node.has(5) else y)


@translates(GatherBlockQuantized)
def gather_of_block_weights(t: Importer, node: GatherBlockQuantized) -> None:
    table = node.value(0)
    if table is None:
        raise Problem("a computed table is not supported; it must be constant")
    axis = node.config.gather_axis % len(table.shape)
    _check(node, (2, 3), table.shape[axis])
    every = constant(np.arange(table.shape[axis], dtype=np.int64), "every")
    parts = Parts(t, node)
    real = constant(_real(node, (node.inputs[0], every, *node.inputs[2:])), parts.fresh("table"))
    parts.output(parts.make("Gather", [real, node.inputs[1]], node.name, axis=axis))


def _check(node: Node[Any], constants: Sequence[int] | range, rows: int) -> None:
    if any(node.has(k) and node.value(k) is None for k in constants if k < len(node.inputs)):
        raise Problem("weights, scales or a bias that the model computes are not supported; they must be constant")
    if not 0 < rows <= MOST_ROWS:
        raise Problem(f"a weight of {rows} rows; at most {MOST_ROWS} are supported")


def _real(node: Node[Any], inputs: Sequence[Argument]) -> Array:
    """The operator evaluated on other inputs, all of them constant."""
    out = Argument("real", UnknownType())
    given = tuple(a if a.present else ABSENT for a in inputs)
    (found,) = evaluate(replace(node, inputs=given, outputs=(out,)).typed())
    if found is None:
        raise Problem("its weights cannot be dequantized")
    return np.ascontiguousarray(numpy_of(found), np.float32)
