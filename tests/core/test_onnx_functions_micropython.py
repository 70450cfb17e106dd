"""ONNX's composite functions on MicroPython: the same numbers as CPython's python backend."""

from __future__ import annotations

import json
from typing import Any

import emberlet as el
import numpy as np
import pytest
from emberlet import functional as F

from tools.micropython import Port

# Each makes its operands from `ramp(shape)`, numbers that both interpreters compute alike.
CALLS = {
    "attention": "F.attention(ramp((1, 4, 3, 4)), ramp((1, 2, 5, 4)), ramp((1, 2, 5, 4)), is_causal=True, softcap=2.0)",
    "attention window": "F.attention(ramp((1, 3, 8)), ramp((1, 5, 8)), ramp((1, 5, 8)), num_heads=2, window=(1, 1))",
    "multi_head_attention": "F.multi_head_attention(ramp((1, 3, 2, 3, 4)), num_heads=2)[0]",
    "group_query_attention": "F.group_query_attention(ramp((1, 1, 16)), ramp((1, 1, 8)), ramp((1, 1, 8)), "
    "ramp((1, 2, 3, 4)), ramp((1, 2, 3, 4)), ints((3,), (1,)), 4, num_heads=4, kv_num_heads=2)[0]",
    "rotary_embedding": "F.rotary_embedding(ramp((1, 2, 3, 4)), ramp((9, 2)), ramp((9, 2)), ints((2,), (1,)))",
    "linear_attention": "F.linear_attention(ramp((1, 3, 8)), ramp((1, 3, 4)), ramp((1, 3, 6)), decay=ramp((1, 3, 1)), "
    "beta=ramp((1, 3, 1)), num_heads=2, kv_num_heads=1)[0]",
    "causal_conv": "F.causal_conv(ramp((1, 2, 5)), ramp((2, 1, 3)), activation='silu')[0]",
    "lstm": "F.lstm(ramp((3, 1, 2)), ramp((2, 12, 2)), ramp((2, 12, 3)), ramp((2, 24)), direction='bidirectional')[0]",
    "lstm peepholes": "F.lstm(ramp((3, 1, 2)), ramp((1, 12, 2)), ramp((1, 12, 3)), "
    "peepholes=ramp((1, 9)), clip=0.3)[1]",
    "gru": "F.gru(ramp((3, 2, 2)), ramp((1, 9, 2)), ramp((1, 9, 3)), ramp((1, 18)), "
    "sequence_lens=ints((3, 2), (2,)))[0]",
    "rnn": "F.rnn(ramp((3, 1, 2)), ramp((1, 3, 2)), ramp((1, 3, 3)), activations=['HardSigmoid'], alphas=[0.3])[0]",
    "quantize_linear": "F.quantize_linear(ramp((2, 3)), ramp((3,)) + 2, ints((1, 2, 3), (3,), 'int8'))",
    "dynamic_quantize_linear": "F.dynamic_quantize_linear(ramp((2, 3)))[0]",
    "qlinear_conv": "F.qlinear_conv(ints(range(16), (1, 1, 4, 4), 'uint8'), el.asarray(0.1), ints((3,), (), 'uint8'), "
    "ints(range(9), (1, 1, 3, 3), 'int8'), el.asarray(0.2), ints((0,), (), 'int8'), el.asarray(0.5), "
    "ints((7,), (), 'uint8'))",
    "matmul_nbits": "F.matmul_nbits(ramp((1, 32)), ints(range(32), (2, 1, 16), 'uint8'), ramp((2,)), "
    "rows=32, columns=2)",
    "resize linear": "F.resize(ramp((1, 1, 3, 4)), sizes=[1, 1, 5, 3], mode='linear')",
    "resize cubic": "F.resize(ramp((1, 1, 4, 4)), sizes=[1, 1, 2, 7], mode='cubic', antialias=True)",
    "resize nearest": "F.resize(ramp((1, 1, 3, 4)), scales=[1, 1, 2, 1.5])",
    "einsum": "F.einsum('bij,bkj->bik', ramp((2, 2, 3)), ramp((2, 4, 3)))",
    "einsum diagonal": "F.einsum('iij->j', ramp((3, 3, 2)))",
    "gather_nd": "F.gather_nd(ramp((2, 3, 4)), ints((0, 1, 1, -1), (2, 2)))",
    "scatter_nd": "F.scatter_nd(ramp((4, 3)), ints((0, 3), (2, 1)), ramp((2, 3)), 'add')",
    "tensor_scatter": "F.tensor_scatter(ramp((1, 4, 2)), ramp((1, 3, 2)), ints((2,), (1,)), mode='circular')",
    "det": "F.det(ramp((2, 3, 3)))",
    "cross_entropy": "F.cross_entropy(ramp((2, 3)), ints((1, 2), (2,)), ramp((3,)) + 2, ignore_index=0)",
}
OPERANDS = """
import emberlet as el
from emberlet import functional as F

def ramp(shape):
    n = 1
    for d in shape:
        n *= d
    return el.get_backend("python").from_list([(i * 37 % 101 - 50) / 50 for i in range(n)], el.float32, shape)

def ints(values, shape, dtype="int64"):
    return el.get_backend("python").from_list(list(values), el.dtypes.dtype(dtype), shape)
"""
SCRIPT = (
    OPERANDS
    + """
import json
el.backend.set_default_backend("python")
for name in CALLS:
    try:
        print("call " + json.dumps([name, list(el.get_backend("python").to_list(eval(CALLS[name])))]))
    except Exception as error:
        print("call " + json.dumps([name, repr(error)]))
"""
)


@pytest.fixture(scope="module")
def by_micropython(unix_port: Port) -> dict[str, Any]:
    result = unix_port.run(f"CALLS = {CALLS!r}\n{SCRIPT}", heap="4M").check()
    return dict(json.loads(line[5:]) for line in result.stdout.splitlines() if line.startswith("call "))


@pytest.mark.parametrize("name", CALLS)
def test_same_numbers(by_micropython: dict[str, Any], name: str) -> None:
    names: dict[str, Any] = {}
    exec(OPERANDS, names)
    el.set_default_backend("python")
    try:
        expected = eval(CALLS[name], names)
    finally:
        el.set_default_backend(None)
    found = by_micropython[name]
    assert isinstance(found, list), found
    np.testing.assert_allclose(found, expected.backend.to_list(expected), rtol=1e-4, atol=1e-5)


def test_every_call_is_of_a_function() -> None:
    assert all(hasattr(F, call.split("(")[0].removeprefix("F.")) for call in CALLS.values())
