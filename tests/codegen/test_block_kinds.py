"""Blocks that a file does not name are named after what they compute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from emberlet.codegen.hierarchy.repetition.block_names import Part, around, kind_of
from emberlet.codegen.hierarchy.words import class_from
from emberlet.codegen.reader import read_model
from onnx import helper, numpy_helper
from support.onnx_models import parse
from support.rows import every

WEIGHT = re.compile(r"\bw(?:_\d+)+\w*")


def nodes_of(text: str, x: str = "n, 8, 16, 16", opset: int = 23) -> Sequence[Any]:
    """The nodes of a graph whose input is x; w_4_8_1_1 is a weight of the shape (4, 8, 1, 1)."""
    model = parse(f"g (float[{x}] x, float[{x}] z) => (float y) {{ {text} }}", opset)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for name in dict.fromkeys(WEIGHT.findall(text)):
        shape = [int(n) for n in re.findall(r"_(\d+)", name)]
        model.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    sizes = {"rows": [0, 8, -1], "seq": [0, 0, 2, -1], "flat": [0, -1], "axes": [2, 3]}
    for name, value in sizes.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
    model.graph.output[0].type.Clear()
    return read_model(model, "g").graph.nodes


ONE = "a = Conv(x, w_8_8_1_1)"
TWO = f"{ONE}  ar = Relu(a)  b = Conv<pads = [1, 1, 1, 1]>(ar, w_8_8_3_3)"
THREE = f"{TWO}  br = Relu(b)  c = Conv(br, w_8_8_1_1c)"
DEEP = "d = Conv<group = 8, pads = [1, 1, 1, 1]>"
QKV = "q = MatMul(x, w_16_16q)  k = MatMul(x, w_16_16k)  v = MatMul(x, w_16_16v)"
SCORES = "kt = Transpose<perm = [0, 2, 1]>(k)  s = MatMul(q, kt)  p = Softmax(s)  o = MatMul(p, v)"
OUT = "u = MatMul(o, w_16_16u)"
FEED = f"{OUT}  f = MatMul(u, w_16_16f)  g = Relu(f)  y = MatMul(g, w_16_16y)"
SEQUENCE = "n, 4, 16"


@every(
    ("text", "kind"),
    [
        (f"{ONE}  y = Relu(a)", "ConvBlock"),
        (f"{ONE}  y = Add(a, x)", "ConvBlock"),
        (f"{TWO}  y = Add(b, x)", "ResidualBlock"),
        (f"{TWO}  y = Add(b, w_1_8_1_1)", "ConvBlock"),  # of a constant
        (f"{TWO}  y = Sum(b, x, z)", "ResidualBlock"),
        (f"{THREE}  y = Add(c, x)", "Bottleneck"),
        (f"{THREE}  y = Relu(c)", "Bottleneck"),
        (f"{THREE}  e = Conv(c, w_8_8_1_1e)  y = Relu(e)", "ConvBlock"),
        (THREE.replace("w_8_8_3_3", "w_8_8_1_3") + "  y = Relu(c)", "ConvBlock"),
        (f"{TWO}  e = Conv(x, w_8_8_1_1e)  y = Add(b, e)", "ProjectionResidualBlock"),
        (f"{THREE}  e = Conv(x, w_8_8_1_1e)  m = InstanceNormalization(e, w_8, w_8b)  y = Add(c, m)",
         "ProjectionBottleneck"),
        (f"r = Relu(x)  {ONE.replace('(x', '(r')}  y = AveragePool<kernel_shape = [2, 2]>(a)", "Transition"),
        (f"{ONE}  y = AveragePool<kernel_shape = [2, 2]>(a)", "ConvBlock"),
        (f"r = Relu(x)  {TWO.replace('(x', '(r')}  y = AveragePool<kernel_shape = [2, 2]>(b)", "ConvBlock"),
        (f"{TWO}  y = Concat<axis = 1>(x, b)", "DenseLayer"),
        (f"{ONE}  b = Conv(a, w_8_8_1_1b)  c = Conv<pads = [1, 1, 1, 1]>(a, w_8_8_3_3)  y = Concat<axis = 1>(b, c)",
         "Fire"),
        (f"{ONE}  c = Conv<pads = [1, 1, 1, 1]>(a, w_8_8_3_3)  y = Concat<axis = 1>(a, c)", "ConvBlock"),
        (f"{ONE}  b = Conv(x, w_8_8_1_1b)  c = Relu(x)  y = Concat<axis = 1>(a, b, c)", "InceptionBlock"),
        (f"{ONE}  {DEEP}(a, w_8_1_3_3)  c = Relu(x)  y = Concat<axis = 1>(a, d, c)", "SeparableConv"),
        (f"{ONE}  r = Reshape(a, seq)  t = Transpose(r)  y = Reshape(t, flat)", "ShuffleBlock"),
        (f"{ONE}  r = Reshape(a, seq)  y = Reshape(r, flat)", "ConvBlock"),
        (f"{ONE}  {DEEP}(a, w_8_1_3_3)  y = Conv(d, w_8_8_1_1y)", "InvertedResidual"),
        (f"{ONE}  {DEEP}(a, w_8_1_3_3)  e = Conv(d, w_8_8_1_1e)  y = Add(e, x)", "InvertedResidual"),
        (f"{DEEP}(x, w_8_1_3_3)  y = Conv(d, w_8_8_1_1y)", "SeparableConv"),
        (f"{DEEP.replace('8,', '2,')}(x, w_8_4_3_3)  y = Conv(d, w_8_8_1_1y)", "ConvBlock"),  # groups of four
        ("y = ConvTranspose(x, w_8_8_1_1)", "ConvBlock"),
        ("y = Relu(x)", "Block"),
    ],
)  # fmt: skip
def test_a_block_of_convolutions_is_called_after_its_pattern(text: str, kind: str) -> None:
    assert kind_of(Part(nodes_of(text), 1)) == kind


@pytest.mark.parametrize(
    ("text", "takes", "kind"),
    [
        ("a = MatMul(x, w_16_16)  y = Relu(a)", 1, "LinearBlock"),
        ("a = MatMul(x, w_16_16)  y = Add(a, w_16)", 1, "LinearBlock"),
        ("a = MatMul(x, w_16_16)  y = Add(a, x)", 1, "FeedForward"),
        ("a = MatMul(x, w_16_16)  y = MatMul(a, w_16_16b)", 1, "FeedForward"),
        ("y = LSTM<hidden_size = 4>(x, w_1_16_16, w_1_16_4)", 1, "RecurrentLayer"),
        ("y = Softmax(x)", 1, "Attention"),
        (f"{QKV}  {SCORES}  y = MatMul(o, w_16_16o)", 1, "Attention"),
        (f"{QKV}  {SCORES}  {FEED}", 1, "EncoderLayer"),
        (f"{QKV}  {SCORES}  {OUT}  y = MatMul(u, w_16_16y)", 1, "Attention"),
        (f"{QKV}  o = Attention<q_num_heads = 2, kv_num_heads = 2>(q, k, v)  {FEED}", 1, "EncoderLayer"),
        (f"{QKV}  o = Attention<q_num_heads = 2, kv_num_heads = 2>(q, k, v)  y = MatMul(o, w_16_16o)", 1, "Attention"),
        (f"{QKV}  o = Attention<q_num_heads = 2, kv_num_heads = 2, is_causal = 1>(q, k, v)  {FEED}", 1, "DecoderLayer"),
        (f"{QKV}  {SCORES}  {FEED.replace('y =', 't =')}  y = Softmax(t)", 1, "Block"),
        (f"{QKV}  {SCORES}  {FEED.replace('y =', 't =')}  y = Softmax(t)", 2, "DecoderLayer"),
        (f"o = Softmax(x)  {FEED}", 1, "EncoderLayer"),
        (f"{FEED.replace('(o', '(x')}  e = Softmax(y)", 1, "Attention"),
    ],
)
def test_a_block_of_products_is_called_after_its_pattern(text: str, takes: int, kind: str) -> None:
    assert kind_of(Part(nodes_of(text, SEQUENCE), takes)) == kind


def test_a_block_around_a_block_is_called_after_it() -> None:
    assert around("ConvBlock", nodes_of(f"{ONE}  y = Add(a, x)")) == "ResidualConvBlock"
    assert around("ResidualBlock", nodes_of(f"{ONE}  y = Add(a, x)")) == "ResidualBlockGroup"
    assert around("ConvBlock", nodes_of(f"{ONE}  y = Relu(a)")) == "ConvBlockGroup"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), "Block"), (("0",), "Block"), (("1", "2"), "Block"),
        (("encoder", "layers", "0"), "Layer"), (("encoder", "layers"), "Layers"), (("layers", "0", "mlp"), "Mlp"),
        (("pass", "0"), "Pass"), (("blks", "0"), "Block"), (("gas", "0"), "Gas"), (("adds", "0"), "Add"),
        (("h", "3"), "Block"), (("h",), "Block"), (("layers", "0", "attn"), "Attention"), (("attns", "0"), "Attention"),
        (("self",), "SelfAttention"), (("x", "self_attn"), "SelfAttention"), (("ffn",), "FeedForward"),
    ],
)  # fmt: skip
def test_a_class_is_called_after_the_last_name_of_its_path(path: tuple[str, ...], name: str) -> None:
    assert class_from(path) == name
