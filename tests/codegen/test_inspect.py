"""`inspect` prints the typed IR; every operator has a family."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import codegen
from emberlet.burnpack import Burnpack
from emberlet.codegen import generate, inspect, ir
from emberlet.codegen.graph_json import as_json
from emberlet.codegen.inspection import format_graph
from emberlet.codegen.ir.choices import AutoPad
from emberlet.codegen.ops import OPERATORS
from emberlet.errors import ModelError
from models.index import cases
from onnx import numpy_helper
from support.onnx_models import check, parse
from support.rows import every

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


def test_a_convolution_is_printed_with_its_arguments_types_and_config() -> None:
    model = parse(
        """g (float[2, 4, 10, 15] input) => (float[2, 6, 6, 15] out) {
            [conv2d1] out = Conv<kernel_shape = [3, 5], strides = [2, 1], pads = [4, 2, 4, 2], dilations = [3, 1],
                                 group = 2>(input, weight)
        }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((6, 2, 3, 5), np.float32), "weight"))
    text = inspect(model)
    assert list(arguments(text).items()) == [
        ("input", ("4", "(2, 4, 10, 15)", "Dynamic")),
        ("weight", ("4", "(6, 2, 3, 5)", "Static")),
        ("out", ("4", "(2, 6, 6, 15)", "Dynamic")),
    ]
    config = text[text.index("config: ConvConfig {") :]
    for said in ("kernel: (3, 5)", "stride: (2, 1)", "dilation: (3, 1)", "pads: (4, 2, 4, 2)", "groups: 2"):
        assert f" {said}," in config
    assert text.endswith("1 node: 1 convolution\n")


def test_scalars_shapes_sequences_and_subgraphs_have_types_of_their_own() -> None:
    text = inspect(
        parse(
            """g (float[N, 4] x, bool c, seq(float[2]) s) => (float[a, b] y, float[2] z) {
                shape = Shape(x)  i = Constant<value_int = 0>()  n = Gather(shape, i)
                y = If (c) <then_branch = t () => (float[N, 4] p) { p = Neg(x) },
                            else_branch = f () => (float[N, 4] q) { q = Exp(x) }>
                z = SequenceAt(s, n)
            }"""
        )
    )
    assert "type: Scalar {" in text and "value: N," in text
    assert "type: Shape {" in text and "dims: (N, 4)," in text
    assert "type: Sequence {" in text
    assert "then_branch: Graph {" in text
    assert text.splitlines()[-1] == "6 nodes: 2 elementwise, 1 constant, 1 control, 1 indexing, 1 sequence"


def arguments(text: str) -> dict[str, tuple[str, str, str]]:
    """Name -> (rank, shape, value_source) of every tensor argument; the last occurrence counts."""
    held = r"dtype: \w+,\s+rank: (\w+),\s+shape: (.*),\s+static_shape: .*"
    pattern = r"name: '(\w+)',\s+type: Tensor {\s+" + held + r"\s+},\s+value_source: (\w+)"
    return {name: (rank, shape, source) for name, rank, shape, source in re.findall(pattern, text)}


def test_arguments_say_whether_they_are_dynamic_constant_or_static() -> None:
    """A weight and an axis are absorbed by their nodes; an added constant gets a name in the code."""
    model = parse(
        """g (float[2, 3] x) => (float[2, 4] y, float[a] z) <float[3, 4] w, float[4] c, int64[1] axes = {0}> {
            p = MatMul(x, w)  y = Mul(p, c)  z = ReduceSum<keepdims = 0>(y, axes)
        }"""
    )
    del model.graph.value_info[:]  # where the notation puts what has no value
    for name, shape in (("w", (3, 4)), ("c", (4,))):
        model.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    found = arguments(inspect(model))
    sources = {"w": "Static", "c": "Constant", "axes": "Static"}
    assert {k: v[2] for k, v in found.items()} == {**dict.fromkeys("xpyz", "Dynamic"), **sources}


def test_the_rank_is_known_where_the_shape_is_not() -> None:
    found = arguments(
        inspect(
            parse(
                """g (float[N, 4] x, int64[3] s, float[a, b, c] v) => (float[p, q, r] y, float[t, u, w] z) {
                    y0 = Reshape(x, s)  z0 = Transpose(v)  keep = NonZero(x)
                    y = Neg(y0)  z = Neg(z0)  k = Cast<to = 1>(keep)
                }"""
            )
        )
    )
    assert found["y0"][:2] == ("3", "(?, ?, ?)") and found["z0"][:2] == ("3", "(c, b, a)")
    assert found["keep"][:2] == ("2", "(2, ?)")


def test_branches_in_loops_in_branches_are_printed_each_with_its_own_names() -> None:
    text = inspect(nested())
    assert text.count("then_branch: Graph {") == 2 and text.count("body: Graph {") == 1
    assert {"w", "w_2", "w_3"} <= set(arguments(text))


def nested() -> onnx.ModelProto:
    """An If whose then has a Loop whose body has an If; four weights called w in four graphs."""
    model = parse(
        """g (float[40] x, bool c, int64 n) => (float[40] y) {
            y = If (c) <
                then_branch = t () => (float[40] p) {
                    v = Add(x, w)
                    p = Loop (n, , v) <body = l (int64 i, bool k, float[40] s) => (bool k2, float[40] r) {
                        k2 = Identity(k)
                        m = Mul(s, w)
                        r = If (k) <then_branch = tt () => (float[40] q) { q = Add(m, w) },
                                    else_branch = ff () => (float[40] q2) { q2 = Neg(m) }>
                    }>
                },
                else_branch = f () => (float[40] p2) { p2 = Sub(x, w) }>
        }"""
    )
    then, otherwise = (a.g for a in model.graph.node[0].attribute)
    body = then.node[1].attribute[0].g
    inner = body.node[2].attribute[0].g
    for i, graph in enumerate((then, body, inner, otherwise)):
        graph.initializer.append(numpy_helper.from_array(np.arange(40, dtype=np.float32) / 40 + i, "w"))
    return model


def test_weights_of_branches_are_fields_numbered_alike_in_the_code_and_the_burnpack(tmp_path: Path) -> None:
    made = generate(nested(), tmp_path, name="deep")
    assert made.weights is not None
    text, pack = made.module.read_text(encoding="utf-8"), Burnpack.from_file(made.weights)
    fields = re.findall(r"self\.(w\w*) = nn\.Param\.zeros", text)
    assert fields == ["w", "w_2", "w_3", "w_4"] and sorted(pack.tensors) == fields
    for x, c, n in ((0.5, True, 2), (0.25, False, 3)):
        check(nested(), np.full(40, x, np.float32), np.array(c), np.array(n))


def test_names_cannot_break_out_of_the_text() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    model.graph.node[0].name = "a',\n}\x1b[31m"
    assert "\x1b" not in inspect(model)


def test_no_operator_is_in_the_union_twice() -> None:
    assert len({(o.domain, o.op()) for o in OPERATORS}) == len(OPERATORS)


def test_other_tools_read_the_graph() -> None:
    model = ir.read(DIGITS)
    assert [n.op() for n in model.graph.nodes][:2] == ["Conv", "Relu"]
    assert model.inputs == ("image",) and model.source == "digits.onnx"


def test_parse_gives_the_graph_that_inspect_prints() -> None:
    model = codegen.parse(DIGITS)
    assert inspect(DIGITS).startswith(format_graph(model.graph))
    with pytest.raises(ModelError):
        codegen.parse(b"not a model")


@every("case", [c for c in cases() if not c.name.startswith("shared")])
def test_the_graph_of_every_model_is_json(case: Any) -> None:
    told = json.loads(json.dumps(as_json(case.model), allow_nan=False))
    read = ir.read(case.model)
    assert [n["op"] for n in told["nodes"]] == [n.op() for n in read.graph.nodes]
    assert [i["name"] for i in told["inputs"]] == list(read.inputs)


@pytest.mark.parametrize(
    ("text", "kernel", "pads"),
    [
        ('Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w)', (3, 2), (1, 0, 1, 1)),
        ('Conv<auto_pad = "SAME_LOWER", strides = [2, 2]>(x, w)', (3, 2), (1, 1, 1, 0)),
        ('Conv<auto_pad = "VALID">(x, w)', (3, 2), (0, 0, 0, 0)),
        ("Conv(x, w)", (3, 2), (0, 0, 0, 0)),
        ('MaxPool<kernel_shape = [2, 3], auto_pad = "SAME_UPPER">(x)', (2, 3), (0, 1, 1, 1)),
        ("AveragePool<kernel_shape = [2, 2]>(x)", (2, 2), (0, 0, 0, 0)),
        ("ConvTranspose<output_shape = [10, 7], strides = [2, 1]>(x, t)", (3, 2), (1, 1, 0, 0)),
    ],
)
def test_configs_of_windows_say_kernel_strides_and_padding(
    text: str, kernel: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    """Omitted attributes, auto_pad, and channels that only the weight's shape shows."""
    graph = f"g (float[1, 4, 5, 7] x) => (float[N, M, H, W] y) {{ y = {text} }}"
    model = parse(graph)
    for name, shape in (("w", (6, 4, 3, 2)), ("t", (4, 6, 3, 2))):
        if f", {name})" in text:
            model.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    (node,) = ir.read(model).graph.nodes
    window = node.config.window
    assert (window.kernel, window.pads, window.auto_pad) == (kernel, pads, AutoPad.NOTSET)
    assert len(window.stride) == len(window.dilation) == 2
    if text.startswith("Conv"):
        assert (node.config.channels_in, node.config.channels_out) == (4, 6)
    (told,) = as_json(model)["nodes"]
    assert told["config"]["window"]["pads"] == list(pads)


def test_a_padding_that_depends_on_an_unknown_size_stays_open() -> None:
    model = parse(
        """g (float[1, 4, H, W] x) => (float[N, M, K, L] y) {
            y = MaxPool<kernel_shape = [2, 3], strides = [2, 2], auto_pad = "SAME_UPPER">(x)
        }"""
    )
    (node,) = ir.read(model).graph.nodes
    assert node.config.window.auto_pad is AutoPad.SAME_UPPER
