"""Modules that have a name wherever they occur: squeeze-and-excitation (Hu et al. 2018) and the embedding of an image's
patches (Dosovitskiy et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...ir.graph import Node
from ...ops.movement import Transpose

MEANS = ("ReduceMean", "GlobalAveragePool")
GATES = ("Sigmoid", "HardSigmoid")
_LAYERS = ("Conv", "Linear", "Gemm", "QuantizedLinear", "QuantizedConv")
_BETWEEN = ("Relu", "Swish", "HardSwish", "Gelu", "LeakyRelu", "PRelu", "Clip", "Reshape", "Flatten", "Unsqueeze")
PATCH_STEPS = 3
LONGEST_GATE = 10  # nodes


def excites(nodes: Sequence[Node[Any]]) -> bool:
    """Whether nodes are a squeeze-and-excitation: x times a gate, of two layers, from the mean of x."""
    if len(nodes) < 5 or nodes[0].op() not in MEANS or nodes[-1].op() != "Mul" or nodes[-2].op() not in GATES:
        return False
    inner = nodes[1:-2]
    if sum(n.op() in _LAYERS for n in inner) != 2 or not all(n.op() in (*_LAYERS, *_BETWEEN) for n in inner):
        return False
    if any(b.inputs[0].name != a.outputs[0].name for a, b in pairwise(nodes[:-1])):
        return False
    return {a.name for a in nodes[-1].inputs} == {nodes[0].inputs[0].name, nodes[-2].outputs[0].name}


def embeds(nodes: Sequence[Node[Any]]) -> bool:
    """Whether nodes turn an image into the features of its patches, (batch, patches, features): a convolution with a
    stride above one, whose positions are flattened and whose features are moved last."""
    if [n.op() for n in nodes] != ["Conv", "Reshape", "Transpose"]:
        return False
    conv, flat, turned = nodes
    if flat.inputs[0].name != conv.outputs[0].name or turned.inputs[0].name != flat.outputs[0].name:
        return False
    x, rows = conv.shape(0), turned.shape(0)
    if x is None or len(x) != 4 or rows is None or len(rows) != 3:
        return False
    if not isinstance(turned, Transpose) or turned.perm() != (0, 2, 1):
        return False
    weight, steps = conv.shape(1), conv.config.window.stride
    return weight is not None and rows[1] == weight[0] and len(steps) == 2 and min(steps) > 1
