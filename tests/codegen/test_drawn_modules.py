"""The code with classes computes the same as the flat code, whatever modules a file claims for its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import weights
from emberlet.codegen.emit.instance import instantiate
from emberlet.codegen.generation import translate
from emberlet.codegen.hierarchy import writer
from support.drawn_modules import SIZE, Drawn
from support.drawn_networks import DrawnNetwork
from support.draws import some
from support.rows import every


def _results(model: onnx.ModelProto, inputs: list[Any], flat: bool) -> list[bytes]:
    written = translate(model, "net", flat=flat)[1]
    made = instantiate(written, "net", "numpy")
    made.load_record(weights.tensors(written.record, "numpy"), layout="burn")
    got = made(*inputs)
    return [bytes(r.backend.to_bytes(r)) for r in (got if isinstance(got, tuple) else (got,))]


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("seed", some(range(60), 4, __name__))
def test_drawn_modules_compute_what_the_flat_code_does(
    seed: int, always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """always: with a class for each module, even if one class for all would be shorter."""
    if always:
        monkeypatch.setattr(writer, "_shorter", lambda first, other: other)
        monkeypatch.setattr(writer, "repeats", lambda root: True)
    model = Drawn(seed).model()
    inputs = [np.random.default_rng(n).standard_normal((3, SIZE)).astype(np.float32) for n in range(2)]
    assert _results(model, inputs, False) == _results(model, inputs, True)


def test_most_drawn_modules_are_classes_and_loops() -> None:
    sources = [translate(Drawn(seed).model(), "net")[1].source for seed in range(40)]
    assert sum(source.count("\nclass ") > 1 for source in sources) > 10
    assert sum("        for " in source for source in sources) > 5


@every("seed", range(40), share=4)
def test_drawn_networks_compute_what_the_flat_code_does(seed: int) -> None:
    network = DrawnNetwork(seed)
    model, x = network.model(), network.input()
    assert _results(model, [x], False) == _results(model, [x], True)
