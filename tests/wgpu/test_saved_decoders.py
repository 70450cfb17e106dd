"""Saved decoders whose past may be empty: one file runs the first step and all later ones as onnxruntime does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from emberlet.wgpu_backend import plan_file

MODELS = Path("tests/models")
STEPS = [(0, 1), (0, 6), (1, 1), (5, 3), (16, 8), (0, 8), (7, 1), (0, 1)]  # past, new
DIMS = {"llama": ["batch=1..3"], "transformer_decoder": ["batch=1..3", "memory:1=1..8"]}


@pytest.fixture(scope="module", params=["wasm", "plan"])
def ending(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", DIMS)
def test_one_file_runs_the_first_step_and_later_ones(name: str, ending: str, tmp_path: Path) -> None:
    from emberlet.host.cli.compile import write

    path = str(tmp_path / f"{name}.{ending}")
    write(str(MODELS / name / "model.onnx"), path, [*DIMS[name], "past=0..16", "new=1..8"], [], None)
    wanted, plan = onnxruntime.InferenceSession(MODELS / name / "model.onnx"), plan_file.load(path)
    rng = np.random.default_rng(5)
    for past, new in STEPS:
        batch, length = int(rng.integers(1, 4)), int(rng.integers(1, 9))
        given = {}
        for port in wanted.get_inputs():
            sizes = {"past": past, "new": new, "batch": batch}
            shape = [sizes.get(d, length) if isinstance(d, str) or d is None else d for d in port.shape]
            whole = port.type == "tensor(int64)"
            given[port.name] = rng.integers(0, 60, shape) if whole else rng.standard_normal(shape, dtype=np.float32)
        found = plan.run(*(given[port.name] for port in plan.inputs))
        for got, due in zip(found, wanted.run(None, given), strict=True):
            assert got.shape == due.shape
            np.testing.assert_allclose(np.asarray(got), due, rtol=1e-4, atol=1e-5, err_msg=f"{past} + {new}")
    plan.release()
