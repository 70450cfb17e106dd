"""Formulas of activations: only what computes the same becomes a call by name."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import onnxruntime
import pytest
from emberlet import codegen
from emberlet.codegen.passes.activations import step
from emberlet.codegen.passes.rewriting import rewrite
from emberlet.codegen.reader import read_model
from onnx import helper, numpy_helper

X = np.array([-100, -3, -1, -0.0, 0, 1, 2.5, np.inf, -np.inf, np.nan], np.float32)


def model(nodes: Any, dtype: Any = np.float32, **held: Any) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    io = [helper.make_tensor_value_info(n, kind, list(X.shape)) for n in "xy"]
    constants = [numpy_helper.from_array(np.asarray(x, dtype), n) for n, x in held.items()]
    graph = helper.make_graph([helper.make_node(*n) for n in nodes], "g", io[:1], io[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SWISH = [("Sigmoid", ["x"], ["g"]), ("Mul", ["q", "g"], ["y"])]


@pytest.mark.parametrize(
    "nodes",
    [
        [("Sqrt", ["x"], ["s"]), ("Mul", ["s", "s"], ["q"])],
        [("Sqrt", ["x"], ["s"]), ("Sqrt", ["x"], ["t"]), ("Mul", ["s", "t"], ["q"])],
        [("Mul", ["x", "x"], ["s"]), ("Div", ["s", "x"], ["q"])],
        [("Reciprocal", ["x"], ["s"]), ("Mul", ["x", "s"], ["t"]), ("Mul", ["t", "x"], ["q"])],
    ],
)
def test_powers_keep_the_domain_of_a_value(nodes: Any) -> None:
    """x * x / x is NaN at 0, and sqrt(x) * sqrt(x) below it."""
    made = model([*nodes, *SWISH])
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    [wanted] = session.run(None, {"x": X})
    with np.errstate(all="ignore"):
        found = codegen.load(made)(emberlet.asarray(X))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)


def test_constants_have_the_digits_of_their_dtype() -> None:
    """The root of 2 is 1.4140625 in float16."""
    nodes = [("Div", ["x", "root"], ["a"]), ("Erf", ["a"], ["b"]), ("Add", ["b", "one"], ["c"]),
             ("Mul", ["x", "c"], ["d"]), ("Mul", ["d", "half"], ["y"])]  # fmt: skip
    found, _ = rewrite(read_model(model(nodes, np.float16, root=2**0.5, one=1.0, half=0.5)).graph, step)
    assert "Gelu" in [type(n).__name__ for n in found.nodes]


@pytest.mark.parametrize("kind", ["Mul", "Div"])
def test_long_chains_are_read_in_linear_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of twice the length asks twice as often what a node multiplies, not four times as often."""
    from emberlet.codegen.passes import patterns

    asked = []
    monkeypatch.setattr(patterns, "operands", lambda node, own=patterns.operands: asked.append(node) or own(node))

    def count(n: int) -> int:
        names = ["x", *[f"v{i}" for i in range(n - 1)], "y"]
        nodes = [(kind, [names[i], f"c{i}"], [names[i + 1]]) for i in range(n)]
        asked.clear()
        rewrite(read_model(model(nodes, **{f"c{i}": np.full(X.shape, 1.0 + i / n) for i in range(n)})).graph, step)
        return len(asked)

    assert count(400) < 2.5 * count(200)
