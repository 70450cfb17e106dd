"""Drawn transformers compute what onnxruntime does."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.codegen import load
from support.drawn_transformers import DrawnTransformer
from support.nameless import stripped


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
