"""Drawn transformers compute what onnxruntime does, and their code is as recorded: with names, without, as exported.

`UPDATE_SNAPSHOTS=1 pytest FILE` records it again after a deliberate change.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emberlet.codegen import load
from support.drawn_transformers import DrawnTransformer
from support.exported import KINDS, exported
from support.nameless import stripped
from support.recorded import assert_recorded
from support.sources import listed

RECORDED = Path(__file__).parent / "snapshots" / "drawn_transformers.txt"


@pytest.mark.parametrize(
    ("seed", "cached"),
    [
        (0, False), (1, False), (2, False),
        (3, True),  # the caches are the first inputs, and the model makes tensors of its own
        (6, True),  # a loop collects two caches in turn
        (11, True),  # a loop comes after a layer of its own
    ],
)  # fmt: skip
def test_drawn_transformers_compute_what_onnxruntime_does(seed: int, cached: bool) -> None:
    ort = pytest.importorskip("onnxruntime")
    network = DrawnTransformer(seed, cached)
    model, arrays = network.model(), network.arrays()
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(zip((i[0] for i in network.inputs), arrays, strict=True)))
    for made in (load(model, "numpy"), load(model, "numpy", flat=True), load(stripped(model, seed), "numpy")):
        found = made(*arrays)
        for a, b in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("first", range(0, 12, 2))
def test_the_code_of_drawn_transformers_is_as_recorded(first: int) -> None:
    models = [(seed, DrawnTransformer(seed).model()) for seed in range(first, first + 2)]
    nameless = [(f"{seed} without names", stripped(model, seed)) for seed, model in models]
    assert_recorded(RECORDED, f"from {first:02} on", listed([*models, *nameless]))


@pytest.mark.parametrize("first", range(0, 12, 2))
def test_the_code_of_drawn_transformers_with_caches_is_as_recorded(first: int) -> None:
    models = [(seed, DrawnTransformer(seed, cached=True).model()) for seed in range(first, first + 2)]
    nameless = [(f"{seed} without names", stripped(model, seed)) for seed, model in models]
    assert_recorded(RECORDED, f"with caches, from {first:02} on", listed([*models, *nameless]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_of_an_exported_transformer_is_as_recorded(kind: str) -> None:
    seed = 100 + list(KINDS).index(kind)
    assert_recorded(RECORDED, f"exported, {kind}", listed(exported(DrawnTransformer(seed).model(), kind, seed)))
