"""ONNX models that people published inside Python packages give onnxruntime's results, at the sizes of their use.

Each runs in one of the ways, another one in other runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet.onnxruntime as ours
import numpy as np
import pytest
from emberlet import asarray
from support.draws import draw
from support.loaded import loaded
from support.published_models import DYNAMIC, MODELS, Arrays, expected

from tools import model_packages

WAYS = ("numpy", "wasm compiled", "onnxruntime")  # a session of emberlet.onnxruntime compiles the model for NumPy


@pytest.mark.needs("model-packages")
@pytest.mark.parametrize("name", MODELS)
def test_a_published_model_gives_onnxruntimes_results(name: str) -> None:
    way = draw(name).choice(WAYS)
    print(way)
    run = runner(model_packages.FOLDER / f"{name}.onnx", way, list(expected(name)[0][0]))
    for given, wanted in expected(name):
        for want, got in zip(wanted, run(given), strict=True):
            if name in DYNAMIC:
                assert np.abs(got - want).max() <= 0.05 * np.abs(want).max()
            else:
                np.testing.assert_allclose(got, want, atol=1e-4, rtol=1e-3)


def runner(file: Any, way: str, names: list[str]) -> Callable[[Arrays], list[np.ndarray[Any, Any]]]:
    """A function from inputs by name to the outputs."""
    if way == "onnxruntime":
        session = ours.InferenceSession(file)
        return lambda given: session.run(None, given)
    backend, _, compiled = way.partition(" ")
    if backend == "wasm":
        pytest.importorskip("wasmtime")
    model = loaded(file, backend)
    if compiled:
        model = model.compile(backend=backend)

    def run(given: Arrays) -> list[np.ndarray[Any, Any]]:
        found = model(*(asarray(given[name], backend=backend) for name in names))
        return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]

    return run
