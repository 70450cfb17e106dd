"""Splits operators that onnxruntime fused into the original ones, so that other passes recognize them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.argument import Argument
from ..ir.choices import Activation, GeluApproximation
from ..ir.graph import Node
from ..ir.value import scalar_value
from ..ops import microsoft
from ..ops.activations import AlphaConfig, Gelu, GeluConfig, HardSigmoid, HardSigmoidConfig, LeakyRelu, Swish
from ..ops.arithmetic import Add, AlignConfig, Clip, ClipConfig, Mul
from ..ops.base import transposed
from ..ops.elementwise import Relu, Sigmoid, Tanh
from ..ops.linear_algebra import MatMul
from ..ops.microsoft_products import (
    FusedActivation,
    FusedConv,
    FusedGemm,
    FusedMatMul,
    FusedMatMulActivation,
    TransposeMatMul,
)
from ..ops.movement import Transpose, TransposeConfig
from .rewriting import Change, Walk, instead, interim, value_of

SAID = "split {} fused operators"
_PLAIN: dict[Activation, type[Node[Any]]] = {
    Activation.RELU: Relu,
    Activation.SIGMOID: Sigmoid,
    Activation.TANH: Tanh,
}


def step(node: Node[Any], walk: Walk) -> Change | None:
    parts = _PARTS.get(type(node))  # a subclass may order the axes in another way
    if parts is None or not walk.only_output(node):
        return None
    made = parts(node, Parts(node, walk))
    return None if made is None else instead(node, SAID, *made)


class Parts:
    """The nodes that replace one, in order. The last gets its name and output."""

    def __init__(self, node: Node[Any], walk: Walk) -> None:
        self.node, self.walk = node, walk
        self.nodes: list[Node[Any]] = []

    def add(self, kind: type[Node[Any]], config: Any, *inputs: Argument) -> Argument:
        """A node; its output."""
        name = self.walk.fresh(f"{self.node.name}::{kind.op().lower()}")
        self.nodes.append(kind(name, inputs, (interim(name),), config))
        return self.nodes[-1].outputs[0]

    def done(self) -> list[Node[Any]]:
        last = self.nodes.pop()
        return [*self.nodes, type(last)(self.node.name, last.inputs, self.node.outputs, last.config)]

    def activated(self, x: Argument, activation: FusedActivation) -> list[Node[Any]] | None:
        """All nodes, the last of which is the activation of x; None for an activation that is not an operator."""
        name, given = activation.name, activation.parameters
        if name in _PLAIN:
            self.add(_PLAIN[name], None, x)
        elif name is Activation.LEAKY_RELU:
            self.add(LeakyRelu, AlphaConfig(*given[:1] or (0.01,)), x)
        elif name is Activation.HARD_SIGMOID:
            self.add(HardSigmoid, HardSigmoidConfig(*(*given, *(0.2, 0.5)[len(given) :])), x)
        elif name is Activation.CLIP:
            self.add(Clip, ClipConfig(*given[:2]), x)
        elif name is not Activation.NONE:
            return None
        return self.done()


def _gelu(node: Node[Any], parts: Parts) -> list[Node[Any]]:
    tanh = isinstance(node, microsoft.FastGelu)
    x = parts.add(Add, AlignConfig(), *node.inputs[:2]) if node.has(1) else node.inputs[0]
    parts.add(Gelu, GeluConfig(GeluApproximation.TANH if tanh else GeluApproximation.NONE), x)
    return parts.done()


def _quick_gelu(node: microsoft.QuickGelu, parts: Parts) -> list[Node[Any]]:
    parts.add(Swish, AlphaConfig(node.config.alpha), node.inputs[0])
    return parts.done()


def _gemm(node: FusedGemm, parts: Parts) -> list[Node[Any]] | None:
    gemm = node.gemm()
    return parts.activated(parts.add(type(gemm), gemm.config, *node.inputs), node.config.activation)


def _conv(node: FusedConv, parts: Parts) -> list[Node[Any]] | None:
    conv = node.conv()
    x = parts.add(type(conv), conv.config, *conv.inputs)
    if node.has(3):
        x = parts.add(Add, AlignConfig(), x, node.inputs[3])
    return parts.activated(x, node.config.activation)


def _product(node: FusedMatMul, parts: Parts) -> list[Node[Any]] | None:
    c = node.config
    operands = list(node.inputs)
    for i in () if node.plain() else (0, 1):
        shape, value = node.shape(i), node.value(i)
        if shape is None:
            return None
        axes = node.axes(i)
        if axes == (1, 0) and value is not None:
            operands[i] = value_of(operands[i].name, transposed(value))
        elif axes != tuple(range(len(axes))):
            operands[i] = parts.add(Transpose, TransposeConfig(axes), operands[i])
    x = parts.add(MatMul, None, *operands)
    if c.alpha != 1.0:
        scale = value_of(parts.walk.fresh(f"{node.name}::scale"), scalar_value(c.alpha, node.dtype(0)))
        x = parts.add(Mul, AlignConfig(), x, scale)
    return parts.activated(x, c.activation)


_PARTS: dict[type[Node[Any]], Callable[[Any, Parts], list[Node[Any]] | None]] = {
    microsoft.Gelu: _gelu,
    microsoft.BiasGelu: _gelu,
    microsoft.FastGelu: _gelu,
    microsoft.QuickGelu: _quick_gelu,
    FusedGemm: _gemm,
    FusedConv: _conv,
    FusedMatMul: _product,
    FusedMatMulActivation: _product,
    TransposeMatMul: _product,
}
