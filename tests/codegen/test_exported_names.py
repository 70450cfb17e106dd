"""The code of models whose names and weights an exporter has changed is as recorded, letter by letter.

Names, classes and lists change no result: these lines show them. `UPDATE_SNAPSHOTS=1 pytest FILE` records them again
after a deliberate change; print a source of before and after to see what changed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.checkpoint_names import metadata_entry
from emberlet.codegen.generation import translate
from support.drawn_networks import DrawnNetwork
from support.exported import KINDS, exported
from support.recorded import assert_recorded
from support.sources import CLASS

RECORDED = Path(__file__).parent / "snapshots" / "exported.txt"


def described(model: onnx.ModelProto, flat: bool) -> str:
    """The size of a source, digests of it and of the names of its weights in checkpoints."""
    written = translate(model, "net", weights_name="w.bpk", flat=flat)[1]
    weights = [(key, value.dtype.name, value.shape) for key, value in written.record.items()]
    digests = (hashlib.sha256(text.encode()).hexdigest()[:8]
               for text in (written.source, f"{weights} {metadata_entry(written.record)}"))  # fmt: skip
    return f"{len(written.source.splitlines())} lines, classes: {written.source.count(CLASS)}, {' '.join(digests)}"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_the_code_of_an_exported_model_is_as_recorded(kind: str, seed: int) -> None:
    """With classes, and as one class."""
    network = DrawnNetwork(seed, form="nodes")
    lines = []
    for label, model in exported(network.model(), kind, seed):
        lines.append(f"{label}: {described(model, False)}")
        lines.append(f"{label}, flat: {described(model, True)}")
    assert_recorded(RECORDED, f"{kind} {seed}", "\n".join(lines))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
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
