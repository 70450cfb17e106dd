"""`compile(backend="auto")` measures the available backends, keeps the fastest, and skips one that fails."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen
from emberlet.errors import BackendError
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


def test_the_faster_is_kept_whichever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for slow in ("wasm", "numpy"):
        now = [0.0]
        monkeypatch.setattr(fastest, "clock", lambda now=now: now[0])

        def made(name: str, now: list[float] = now, slow: str = slow) -> Any:
            def run() -> str:
                now[0] += 2.0 if name == slow else 1.0
                return name

            return run

        monkeypatch.setattr(fastest, "_compiled", lambda _model, _examples, name, _options, made=made: made(name))
        monkeypatch.setattr(fastest, "NAMES", ("wasm", "numpy"))
        fast = fastest.Fastest(None, ())
        said = [fast() for _ in range(12)]
        assert fast.chosen != slow
        assert said[8:] == [fast.chosen] * 4


def test_a_device_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> Any:
        raise BackendError("the GPU device was lost")

    def made(_model: Any, _examples: Any, name: str, _options: Any) -> Any:
        return fails if name == "wgpu" else lambda x: x

    monkeypatch.setattr(fastest, "_compiled", made)
    fast = fastest.Fastest(None, (), ("wgpu", "numpy"))
    assert [fast(n) for n in range(4)] == [0, 1, 2, 3]
    assert fast.chosen == "numpy"
    alone = fastest.Fastest(None, (), ("wgpu",))
    with pytest.raises(BackendError, match="was lost"):
        alone(0)


def test_where_nothing_runs_every_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_model: Any, _examples: Any, name: str, _options: Any) -> Any:
        raise BackendError(f"no {name} here")

    monkeypatch.setattr(fastest, "_compiled", refuse)
    with pytest.raises(BackendError, match="no wasm here; numpy: no numpy here"):
        fastest.Fastest(None, (), ("wasm", "numpy"))
