"""Reads dynamically quantized models (from onnxruntime's quantize_dynamic) as models on real numbers. Such a model
quantizes a tensor by its current range, multiplies the integers with those of the weights, and multiplies the product
with both scales.

The scales cancel, which leaves a product of real numbers and int8 weights with their scales. The tensor's range then
comes from samples, as for any model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops import REGISTRY
from emberlet.codegen.ops import microsoft_quantized_products as p
from emberlet.codegen.ops import quantization as s
from emberlet.codegen.ops.attributes import Attributes, AttributeValue

from ..kernels.layer import Array
from .quantized import OPSET, Parts, constant, dims_known, window_attributes
from .state import Importer
from .table import translates
from .values import BYTES, numpy_of


@dataclass(frozen=True)
class Scale:
    """The scale of a tensor that is quantized at run time, times a constant. of: the name of its integers."""

    of: str
    times: Array


@dataclass(frozen=True)
class Product:
    """A product of integers not yet multiplied with both scales. x: the real tensor; of: the name of its integers."""

    node: Node[Any]
    x: Argument
    of: str


@translates(s.DynamicQuantizeLinear)
def quantize(t: Importer, node: s.DynamicQuantizeLinear) -> None:
    integers, scale, _ = node.outputs
    t.layout.held[integers.name] = t.of(node.inputs[0], flat=True)
    t.dynamic[integers.name] = node.inputs[0]
    t.dynamic[scale.name] = Scale(integers.name, np.ones(1))


@translates(s.MatMulInteger, s.ConvInteger)
def product(t: Importer, node: Node[Any]) -> None:
    x = t.dynamic.get(node.inputs[0].name)
    if not isinstance(x, Argument):
        raise Problem("its integers must come from a DynamicQuantizeLinear")
    if node.value(1) is None or (node.has(3) and node.value(3) is None):
        raise Problem("weights that the model computes are not supported; they must be constant")
    t.dynamic[node.outputs[0].name] = Product(node, x, node.inputs[0].name)


def cast(t: Importer, node: Node[Any]) -> bool:
    """Whether a Cast reads such a product; it then does nothing."""
    found = t.dynamic.get(node.inputs[0].name)
    if isinstance(found, Product):
        t.dynamic[node.outputs[0].name] = found
    return isinstance(found, Product)


def multiply(t: Importer, node: Node[Any]) -> bool:
    """Whether a Mul multiplies such scales, or a product with its scales."""
    names = [a.name for a in node.inputs]
    found = [t.dynamic.get(name) for name in names]
    for k, scale in enumerate(found):
        if not isinstance(scale, Scale):
            continue
        other = found[1 - k]
        if isinstance(other, Product) and other.of == scale.of:
            _finish(t, node, other, scale)
            return True
        if node.value(1 - k) is not None:
            times = scale.times * t.array(node, 1 - k, "a scale").astype(np.float64)
            t.dynamic[node.outputs[0].name] = Scale(scale.of, times)
            return True
    return False


def _finish(t: Importer, node: Node[Any], product: Product, scale: Scale) -> None:
    """The node's output: the product on real numbers."""
    made = product.node
    parts = Parts(t, node)
    zero = made.value(3) if made.has(3) else None
    is_conv = isinstance(made, s.ConvInteger)
    weights = _weights(t, parts, made, 1, scale.times, None if zero is None else numpy_of(zero), 0 if is_conv else 1)
    if isinstance(made, s.ConvInteger):
        attributes = window_attributes(made.window(), dims_known(product.x), made.config.groups)
        y = parts.make("Conv", [product.x, weights], made.name, **attributes)
    else:
        y = parts.make("MatMul", [product.x, weights], made.name)
    parts.output(y)


def _weights(
    t: Importer, parts: Parts, node: Node[Any], i: int, scale: Array, zero: Array | None, axis: int
) -> Argument:
    """Input i, which holds integers, as real numbers. scale, zero: one number, or one per channel along `axis`."""
    value = node.value(i)
    if value is None:
        raise Problem("weights that the model computes are not supported; they must be constant")
    stored = numpy_of(value).astype(np.float64)
    factor, point = (_along(x, stored, axis) for x in (scale, np.zeros(1) if zero is None else zero))
    real = ((stored - point) * factor).astype(np.float32)
    made = constant(real, parts.fresh("weights"))
    if np.all(point == point.reshape(-1)[0]):
        byte = int(point.reshape(-1)[0]) + BYTES[value.dtype.name]
        t.grids.weights[made.name] = factor.astype(np.float64).reshape(-1), axis, byte
    return made


def _along(x: Array, weights: Array, axis: int) -> Array:
    """Numbers per channel, reshaped to an axis of the weights."""
    if x.size == 1:
        return x.reshape(-1)
    if x.size != weights.shape[axis]:
        raise Problem(f"got {x.size} scales for weights of shape {weights.shape}")
    return x.reshape([-1 if k == axis else 1 for k in range(weights.ndim)])


@translates(p.DynamicQuantizeMatMul)
def dynamic_matmul(t: Importer, node: p.DynamicQuantizeMatMul) -> None:
    _matmul(t, node, Parts(t, node), node.inputs[0], 2, 3, 4)


@translates(p.MatMulIntegerToFloat)
def matmul_to_float(t: Importer, node: p.MatMulIntegerToFloat) -> None:
    x, scale = t.dynamic.get(node.inputs[0].name), t.dynamic.get(node.inputs[2].name)
    parts = Parts(t, node)
    if isinstance(x, Argument) and isinstance(scale, Scale) and scale.of == node.inputs[0].name:
        _matmul(t, node, parts, x, 3, 5, 6)
    else:
        _matmul(t, node, parts, parts.real(0, 2, 4), 3, 5, 6)


def _matmul(t: Importer, node: Node[Any], parts: Parts, x: Argument, scale: int, zero: int, bias: int) -> None:
    point = t.array(node, zero, "a zero point") if node.has(zero) else None
    weights = _weights(t, parts, node, 1, t.array(node, scale, "a scale"), point, 1)
    y = parts.make("MatMul", [x, weights], node.name)
    parts.output(parts.make("Add", [y, node.inputs[bias]]) if node.has(bias) else y)


@translates(p.DynamicQuantizeLSTM)
def lstm(t: Importer, node: p.DynamicQuantizeLSTM) -> None:
    """Weights are (directions, from, 4 · to), transposed relative to an LSTM's."""
    c, parts = node.config, Parts(t, node)
    given = []
    for i, scale in ((1, 8), (2, 10)):
        value = node.value(i)
        if value is None:
            raise Problem("weights that the model computes are not supported; they must be constant")
        w = numpy_of(value).astype(np.float64)
        by, point = (_of_direction(t.array(node, k, "a scale"), len(w)) for k in (scale, scale + 1))
        real = np.swapaxes((w - point) * by, 1, 2)
        given.append(constant(np.ascontiguousarray(real, np.float32), parts.fresh("weights")))
    inputs = (node.inputs[0], *given, *(parts.argument(k) for k in range(3, 8)))
    attributes: dict[str, AttributeValue] = {
        "hidden_size": len(numpy_of(node.value(2))[0]),  # type: ignore[arg-type]
        "direction": c.direction.value,
        "input_forget": int(c.input_forget),
    }
    if c.activations:
        attributes["activations"] = c.activations
    if c.clip:
        attributes["clip"] = c.clip
    given_attributes = Attributes(attributes, OPSET, inputs, node.outputs)
    parts.do(REGISTRY[("", "LSTM")].make(node.name, inputs, node.outputs, given_attributes))


def _of_direction(x: Array, directions: int) -> Array:
    """One number per direction, or per row of each direction."""
    return x.astype(np.float64).reshape(directions if x.size >= directions else 1, 1, -1)
