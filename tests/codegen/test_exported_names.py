"""Models whose names and weights an exporter has changed compute what they do in one class."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.codegen import load
from support.drawn_networks import DrawnNetwork
from support.exported import KINDS, exported
from support.rows import every


@pytest.mark.parametrize("seed", range(2))
@every("kind", KINDS)
def test_an_exported_model_computes_what_its_one_class_does(kind: str, seed: int) -> None:
    network = DrawnNetwork(seed, form="nodes")
    for label, model in exported(network.model(), kind, seed):
        x = network.input()
        if label.startswith("half") or "half" in label.split(", "):
            x = x.astype(np.float16)
        results = [load(model, "numpy", flat=flat)(x) for flat in (False, True)]
        given = [r if isinstance(r, tuple) else (r,) for r in results]
        for a, b in zip(*given, strict=True):
            assert a.shape == b.shape and a.tolist() == b.tolist(), label
