"""Names of layers that only their weights' origins say, and constants that count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet.codegen.emit.module import ModuleWriter
from emberlet.codegen.generation import translate
from emberlet.codegen.ir.graph import Graph, Model
from emberlet.codegen.ir.value import Inline, Transposed, Value
from emberlet.dtypes import float32
from onnx import numpy_helper
from support.onnx_models import parse


def weight(origin: Any, turned: bool = False) -> Value:
    held = Value(float32, (1, 1), Inline(b"\0" * 4), origin)
    return Value(float32, (1, 1), Transposed(held)) if turned else held


@pytest.mark.parametrize(
    ("node", "values", "name"),
    [
        ("n0", [weight("fc1.weight")], "fc1"),
        ("n0", [weight("fc1.weight", turned=True)], "fc1"),
        ("n0", [weight("enc.fc1.weight"), weight("fc2.bias")], "enc.fc1"),
        ("n0", [weight(None), weight("fc2.bias")], "fc2"),
        ("n0", [weight(("fc1.weight", "piece")), weight("fc2.bias")], "fc2"),
        ("n0", [weight("onnx::MatMul_12"), weight("val_3")], "linear1"),
        ("n0", [weight(None)], "linear1"),
        ("/enc/fc3/MatMul", [weight("fc1.weight")], "enc.fc3"),
        ("classifier", [weight("fc1.weight")], "fc1"),
        ("classifier", [weight("val_3")], "classifier"),
    ],
)
def test_a_layer_is_called_after_the_tensor_that_its_weight_was(node: str, values: list[Value], name: str) -> None:
    writer = ModuleWriter(Model("net", Graph("net", (), (), ()), (), (), ()))
    output = SimpleNamespace(name="n0")
    given: Any = SimpleNamespace(name=node, outputs=(output,), op=lambda: "MatMul")
    assert writer._layer_name(given, "Linear", values) == name


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        (np.arange(17), "F.arange(17, backend=x.backend)"),
        (np.arange(3, 20), "F.arange(3, 20, backend=x.backend)"),
        (np.arange(-3, 17), "F.arange(-3, 17, backend=x.backend)"),
        (np.arange(24).reshape(4, 6), "F.arange(24, backend=x.backend).reshape((4, 6))"),
        (np.full(17, 5), "F.full((17,), 5, backend=x.backend)"),
        (np.arange(16), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"),
        (np.arange(0, 34, 2), "self.idx.val()"),
        (np.arange(17)[::-1].copy(), "self.idx.val()"),
        (np.array([5] * 16 + [6]), "self.idx.val()"),
        (np.array([*range(16), 17]), "self.idx.val()"),
    ],
)
def test_a_constant_that_counts_is_no_parameter(numbers: Any, text: str) -> None:
    model = parse("g (float[40, 2] x) => (float[a, b] y) { z = Gather(x, idx)  y = Neg(z) }")
    model.graph.initializer.append(numpy_helper.from_array(numbers.astype(np.int64), "idx"))
    model.graph.output[0].type.Clear()
    model.graph.node[0].name, model.graph.node[1].name = "/a/Gather", "/b/Neg"  # in modules
    source = translate(model, "net")[1].source
    assert text in source.partition("def forward")[2], source
