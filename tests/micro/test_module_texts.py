"""The module of a model whose outputs are sums of trees: features become ranks, and sums scores."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.emit.inputs import inputs_source
from emberlet.micro.builder.emit.model import model_source
from emberlet.micro.builder.graph import Sums
from emberlet.micro.builder.kernels.layer import dense_view
from emberlet.micro.builder.kernels.state import Keep
from emberlet.micro.builder.program import Port, Program, Step

BYTES = Port("x", (2, 3), 0, 0.125, 100)
OUT = Port("a b", (4,), 6, 0.5, 7, "class")
CUTS = ((1.5, 2.0), (), (0.25,))


def program(
    inputs: tuple[Port, ...] = (BYTES,), outputs: tuple[Port, ...] = (OUT,), is_float: bool = False, **more: Any
) -> Program:
    layer = Keep("keep it\n", ("x",), "y", (2, 3))
    step = Step(layer, (dense_view((2, 3)),), dense_view((2, 3)), {"i0": 0, "o": 6, "wo": 0, "to": 0})
    weights = np.arange(5).astype(np.float32 if is_float else np.uint8)
    return Program("net", is_float, (step,), inputs, outputs, 40, weights, (1, 2, 1 << 29), **more)


PROGRAMS: dict[str, Program] = {
    "trees": program((replace(BYTES, shape=(3,), cuts=CUTS, nan=((2, 0, 1), ())),), (replace(OUT, sums=Sums(0.25)),)),
    "wide trees": program(
        (replace(BYTES, shape=(6,), cuts=CUTS, nan=((2, 0, 1), ())),), (replace(OUT, sums=Sums(0.5, "softmax")),)
    ),
    "trees of copies": program(
        (replace(BYTES, shape=(3,), cuts=CUTS, nan=((2, 0, 1), (1,))),), (replace(OUT, sums=Sums(2.0, "logistic")),)
    ),
}


def modules_functions(name: str) -> dict[str, Any]:
    """What a module defines, its kernels aside, without what it loads."""
    text = model_source(PROGRAMS[name])
    kernels: dict[str, Any] = {}
    exec(inputs_source(PROGRAMS[name], "bytecode"), kernels)
    names: dict[str, Any] = {"_w": b"", "_t": b"", "_kernels": SimpleNamespace(**kernels)}
    tree = ast.parse(text)
    kept: list[ast.stmt] = []
    for node in tree.body:
        is_load = isinstance(node, ast.Try) and "_words" not in ast.unparse(node)
        is_load = is_load or (isinstance(node, ast.ImportFrom) and str(node.module).startswith("net"))
        is_load = is_load or (isinstance(node, ast.Expr) and ast.unparse(node).startswith("_check("))
        is_prepared = "_kernels" in ast.unparse(node) and not isinstance(node, ast.FunctionDef)
        if not is_load and not is_prepared:
            kept.append(node)
    exec(compile(ast.Module(kept, []), name, "exec"), names)
    return names


@pytest.mark.parametrize("name", ["trees", "wide trees", "trees of copies"])
def test_features_become_ranks_and_sums_become_scores(name: str) -> None:
    module = modules_functions(name)
    port = PROGRAMS[name].inputs[0]
    copies = port.nan[1]
    features = 3 - len(copies)
    given = [2.0, 9.0, float("nan")][:features]
    module["put"](given)
    ranks = [int(np.searchsorted(cuts, v)) if v == v else nan for v, cuts, nan in zip(given, CUTS, port.nan[0])]  # noqa: B905
    ranks += [int(np.searchsorted(CUTS[2], given[c])) for c in copies]
    wide = name == "wide trees"
    assert list(module["input"]) == [b for r in ranks for b in ([r & 255, r >> 8] if wide else [r])]
    with pytest.raises(ValueError, match=f"the model takes {features} features, found 1"):
        module["put"]([1.0])
    sums = PROGRAMS[name].outputs[0].sums
    assert sums
    module["output"][:] = np.array([(1 << 29) + 5], "<u4").tobytes()
    assert module["best"]() == 0
    due = {None: 5 * sums.step, "softmax": 1.0, "logistic": 1 / (1 + np.exp(-5 * sums.step))}[sums.transform]
    assert module["get"]() == pytest.approx([due])
