"""Sizes of outputs follow from sizes of inputs, and operators declare which inputs return as outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.onnx_backend import to_tensor
from emberlet.codegen.passes import run_passes
from emberlet.codegen.reader import read_model
from emberlet.errors import EmberletError
from onnx import helper, numpy_helper
from support.onnx_models import parse
from support.rows import every

SIZES = "<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 minus = {-1}, int64 nine = {9}>"


@every(
    ("nodes", "shape"),
    [
        ("h = Shape(x)  n = Gather(h, zero)  y = Range(zero, n, one)", (6,)),
        ("h = Shape(x)  n = Gather(h, zero)  y = Range(one, n, two)", (3,)),
        ("h = Shape(x)  n = Gather(h, zero)  y = Range(n, zero, minus)", (6,)),
        ("h = Shape(x)  n = Gather(h, zero)  y = Range(n, zero, one)", (0,)),
        ("h = Shape(x)  n = Gather(h, zero)  m = Gather(h, one)  y = Range(zero, n, m)", (2,)),
        ("h = Shape(x)  n = Gather(h, two)  y = Range(zero, n, one)", ("N",)),
        ("h = Shape(x)  n = Gather(h, two)  y = Range(n, nine, one)", (None,)),
        ("h = Shape(x)  n = Gather(h, minus)  m = Gather(h, two)  y = Range(n, m, one)", (0,)),
        ("y = Range(zero, nine, two)", (5,)),
        ("y = Range(nine, zero, two)", (0,)),
        ("h = Shape(x)  n = Gather(h, one)  m = Gather(h, zero)  y = Range(n, m, one)", (3,)),
        ("h = Shape(x)  n = Gather(h, one)  m = Gather(h, two)  y = Range(n, m, one)", (None,)),
        ("h = Shape(x)  n = Gather(h, one)  m = Gather(h, two)  y = Range(n, m, two)", (None,)),
        ("h = Shape(x)  n = Gather(h, two)  m = Add(n, two)  y = Range(n, m, one)", (2,)),
        ("h = Shape(x)  n = Gather(h, two)  m = Add(n, nine)  y = Range(n, m, two)", (None,)),
        ("h = Shape(x)  n = Gather(h, two)  m = Sub(two, n)  y = Range(m, two, one)", (None,)),
        ("h = Shape(x)  n = Gather(h, two)  m = Sub(n, nine)  y = Range(zero, m, one)", (None,)),
        ("h = Shape(x)  n = Gather(h, zero)  m = Div(n, two)  y = Range(zero, m, one)", (3,)),
        ("h = Shape(x)  n = Gather(h, zero)  a = Sub(one, n)  m = Div(a, two)  y = Range(m, zero, one)", (2,)),
        (
            "h = Shape(x)  n = Gather(h, zero)  a = Sub(one, n)  b = Neg(two)  m = Div(a, b)  y = Range(zero, m, one)",
            (2,),
        ),
        ("h = Shape(x)  n = Gather(h, one)  m = Mul(n, two)  y = Range(zero, m, one)", (6,)),
        ("h = Shape(x)  n = Gather(h, one)  m = Add(n, two)  y = Range(zero, m, one)", (5,)),
        ("h = Shape(x)  n = Gather(h, one)  m = Neg(n)  y = Range(m, n, one)", (6,)),
        ("h = Shape(x)  n = Gather(h, two)  m = Mul(n, two)  y = Range(zero, m, one)", ("2*N",)),
        ("h = Shape(x)  n = Gather(h, two)  m = Div(n, two)  y = Range(zero, m, one)", (None,)),
        ("n = Size(x)  y = Range(zero, n, one)", (None,)),
        ("y = Shape(x)", (3,)),
        ("y = Shape<start = 1>(x)", (2,)),
        ("y = Shape<start = -1>(x)", (1,)),
        ("y = Shape<start = 0, end = -1>(x)", (2,)),
        ("h = Shape(x)  z = Concat<axis = 0>(h, h)  y = Reshape(z, s)", (2, 3)),
    ],
)
def test_sizes_that_follow_from_those_of_an_input(nodes: str, shape: tuple[Any, ...]) -> None:
    model = parse(f"g (float[6, 3, N] x) => (int64[a] y) {SIZES} {{ {nodes} }}")
    model.graph.initializer.append(numpy_helper.from_array(np.array([2, 3]), "s"))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    t = read_model(model).graph.outputs[0].type
    assert (t.shape if isinstance(t, TensorType) else (len(t.dims),)) == shape  # type: ignore[union-attr]
    got = load(model, "numpy")(to_tensor(np.zeros((6, 3, 4), np.float32), "numpy"))
    sizes = got.shape if hasattr(got, "shape") else (len(got),)
    assert sizes == tuple({"N": 4, "2*N": 8, None: n}.get(d, d) for d, n in zip(shape, sizes, strict=True))


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_an_identity_like_an_input_that_is_no_matrix_is_refused_when_it_runs(shape: tuple[int, ...]) -> None:
    model = parse("g (float[2] x) => (float[a, b] y) { y = EyeLike<k = 1>(x) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    run = load(model, "numpy")
    assert run(to_tensor(np.zeros((2, 3), np.float32), "numpy")).tolist() == [[0, 1, 0], [0, 0, 1]]
    with pytest.raises(EmberletError):
        run(to_tensor(np.zeros(shape, np.float32), "numpy"))


# -- states -----------------------------------------------------------------------------------------------------------

MS = "com.microsoft"
KV = "float[b, 2, past, 4]"
# operator, domain, inputs, outputs, attributes, and input -> (output, the axis that grows)
CARRIED: list[tuple[str, str, str, str, dict[str, Any], dict[str, tuple[str, int | None]]]] = [
    ("LSTM", "", "x: float[1,b,3]; w: float[1,8,3]; r: float[1,8,2]; ; ; p: float[1,b,2]; q: float[1,b,2]", "y a c",
     {"hidden_size": 2}, {"p": ("a", None), "q": ("c", None)}),
    ("GRU", "", "x: float[1,b,3]; w: float[1,6,3]; r: float[1,6,2]; ; ; p: float[1,b,2]", "y a",
     {"hidden_size": 2}, {"p": ("a", None)}),
    ("RNN", "", "x: float[1,b,3]; w: float[1,2,3]; r: float[1,2,2]; ; ; p: float[1,b,2]", "y a",
     {"hidden_size": 2}, {"p": ("a", None)}),
    ("Attention", "", f"x: float[b,2,n,4]; k: float[b,2,n,4]; v: float[b,2,n,4]; ; p: {KV}; q: {KV}", "y a c",
     {}, {"p": ("a", 2), "q": ("c", 2)}),
    ("MultiHeadAttention", MS, f"x: float[b,n,8]; k: float[b,n,8]; v: float[b,n,8]; ; ; ; p: {KV}; q: {KV}", "y a c",
     {"num_heads": 2}, {"p": ("a", 2), "q": ("c", 2)}),
    ("Attention", MS, "x: float[b,n,8]; w: float[8,24]; i: float[24]; ; p: float[2,b,2,past,4]", "y a",
     {"num_heads": 2}, {"p": ("a", 3)}),
    ("GroupQueryAttention", MS,
     f"x: float[b,n,8]; k: float[b,n,8]; v: float[b,n,8]; p: {KV}; q: {KV}; s: int32[b]; t: int32[1]", "y a c",
     {"num_heads": 2, "kv_num_heads": 2}, {"p": ("a", 2), "q": ("c", 2)}),
    ("QAttention", MS, "x: uint8[b,n,8]; w: uint8[8,24]; i: float[24]; e: float; f: float; ; g: uint8; h: uint8; "
     "p: float[2,b,2,past,4]", "y a", {"num_heads": 2}, {"p": ("a", 3)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "domain", "inputs", "outputs", "attributes", "want"), CARRIED, ids=[f"{c[1]}{c[0]}" for c in CARRIED]
)
def test_what_an_operator_carries_on_is_a_state(
    operator: str, domain: str, inputs: str, outputs: str, attributes: dict[str, Any], want: Any
) -> None:
    """No name of these values says that it is a state."""
    given = [(n.strip(), t) for n, _, t in (i.partition(":") for i in inputs.split(";"))]
    names, types = [n for n, _ in given], ", ".join(f"{t} {n}" for n, t in given if n)
    graph = onnx.parser.parse_graph(f"g ({types}) => () {{ }}")
    graph.node.append(helper.make_node(operator, names, outputs.split(), name="n", domain=domain, **attributes))
    graph.output.extend(helper.make_empty_tensor_value_info(o) for o in outputs.split())
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MS, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    found = {i: (o, axis) for i, o, _, axis in getattr(load(model, "numpy"), "STATE", ())}
    assert found == want
    assert run_passes(read_model(model).graph)[0].outputs[0].name == "y"
