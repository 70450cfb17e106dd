"""`compile(backend="auto")` measures the available backends, keeps the fastest, and skips one that fails."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen
from emberlet.wgpu_backend import fastest

from tools.paths import ROOT


def model() -> Any:
    return codegen.load(str(ROOT / "examples" / "digits" / "digits.onnx"), backend="numpy")


def images(count: int) -> list[np.ndarray[Any, Any]]:
    return [np.random.default_rng(i).random((1, 1, 8, 8), np.float32) for i in range(count)]


def test_results_are_the_models_while_it_measures_and_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastest, "NAMES", ("wasm", "numpy"))
    plain = model()
    fast = plain.compile(backend="auto")
    assert fast.chosen is None
    for x in images(12):
        found = fast(x)
        assert found.backend is emberlet.get_backend("numpy")
        np.testing.assert_allclose(np.asarray(found), np.asarray(plain(x)), rtol=1e-5, atol=1e-5)
    assert {name: len(times) for name, times in fast.times.items()} == {"wasm": 3, "numpy": 3}
    assert min(fast.times[fast.chosen]) == min(min(times) for times in fast.times.values())
