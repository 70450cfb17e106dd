"""Models by their fronts: ONNX's node cases and the models of the tests, through `emberlet.onnxruntime`,
`onnx_backend`, `emberlet run` and `Predictor` (contract/fronts.py).

The first call has the case's own inputs, the second others of the same dtypes and shapes, and every third case an
integer far outside of the axes. The first result is also compared with what ONNX, or whoever recorded the model's
cases, expects.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from conformance import drawn as by_chance
from conformance.cases import node_cases

from ..case import Case, other_values
from ..fronts import fronts, model_case, names_of
from ..properties import broken
from ..reference import choice, expected, leaves, quiet

NEEDS: tuple[str, ...] = ()
MODELS = Path(__file__).resolve().parents[2] / "models"
OF_MODELS = ("lstm_stack", "gru_stack", "rnn_stack", "mobile_cnn", "residual_cnn", "quantized_qdq", "loop_and_branch")
FAR = 37  # small enough that a shape of it fits in memory
SHARE = {"numpy": 0.6, "python": 0.3, "wasm": 0.3, "native": 0.15, "wgpu": 0.1}


class Drawn(NamedTuple):
    """name: a node case, or the folder of a model of the tests."""

    name: str
    seed: int


@cache
def _names() -> list[str]:
    return [name for name in sorted(node_cases()) if not by_chance.is_drawn(name) and _plain(name)]


def _plain(name: str) -> bool:
    case = node_cases()[name]
    inputs = case.data_sets[0][0]
    return bool(inputs) and all(isinstance(a, np.ndarray) and a.dtype.kind in "fiub" for a in inputs)


def draw(choose: random.Random) -> Drawn | None:
    names = OF_MODELS if choose.random() < 0.05 else _names()
    return Drawn(choose.choice(names), choose.randrange(1 << 30))


@cache
def _opened(name: str) -> tuple[Any, tuple[Any, ...], list[Any], float, float]:
    """The model, the arrays of its first case, what it has to give, and how far a result may be off."""
    if name in OF_MODELS:
        model = onnx.load(MODELS / name / "model.onnx")
        with np.load(sorted((MODELS / name).glob("case*.npz"))[0]) as found:
            arrays = tuple(found[f"in_{n}"] for n in names_of(model))
            wanted = [found[f"out_{o.name}"] for o in model.graph.output if f"out_{o.name}" in found.files]
        return model, arrays, wanted if len(wanted) == len(model.graph.output) else [], 1e-3, 1e-4
    case = node_cases()[name]
    inputs, outputs = case.data_sets[0]
    return case.model, tuple(inputs), list(outputs), case.rtol, case.atol


def case_of(drawn: Drawn) -> Case:
    model, arrays, _, _, _ = _opened(drawn.name)
    choose = choice(drawn.seed, "calls")
    calls = [arrays, tuple(other_values(a, choose) for a in arrays)]
    places = [i for i, a in enumerate(arrays) if a.dtype.kind in "iu" and a.size]
    if places and drawn.seed % 3 == 0:
        bad = [np.array(a) for a in arrays]
        far = bad[choose.choice(places)].reshape(-1)
        far[choose.randrange(far.size)] = FAR if far.dtype.kind == "u" else choose.choice([FAR, -FAR])
        calls.insert(1, tuple(bad))
    return model_case(model, tuple(calls), drawn.seed)


def difference(drawn: Drawn) -> str:
    case = case_of(drawn)
    choose = choice(drawn.seed, "fronts")
    with quiet():
        wanted = [expected(case, arrays) for arrays in case.calls]
    ways = [w for w in fronts() if choose.random() < SHARE[w.backend]]
    return _as_recorded(drawn, case) or broken(case, ways, wanted)


def _as_recorded(drawn: Drawn, case: Case) -> str:
    """Compare one front with what the case expects, which the reference of the other calls is not asked for."""
    _, arrays, outputs, rtol, atol = _opened(drawn.name)
    way = choice(drawn.seed, "recorded").choice([w for w in fronts() if w.backend == "numpy" and w.name != "Predictor"])
    with quiet():
        found = leaves(way.open(case, arrays)(tuple(np.array(a) for a in arrays)))
    for i, (got, want) in enumerate(zip(found, outputs, strict=False)):
        plain = isinstance(want, np.ndarray) and want.dtype.kind in "fiub"
        if plain and not np.allclose(np.asarray(got.array, want.dtype), want, rtol, atol, equal_nan=True):
            return f"{way.name}: output {i} is not what ONNX expects"
    return ""


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    return ()


def program(drawn: Drawn) -> str:
    return f"# {drawn.name}, seed {drawn.seed}\n{case_of(drawn).text()}"
