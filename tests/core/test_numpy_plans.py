"""What plans of NumPy calls do without, print and cut into blocks. The contract holds what they compute."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import blocks, compile, memory, repeated, steps
from emberlet.host.numpy_backend.compile.plan import Plan
from emberlet.host.numpy_backend.compile.steps import Step
from support.rows import every


def test_steps_are_printed() -> None:
    x = np.zeros((2, 3), np.float32)
    assert repr(Step(np.add, (x, np.float64(2), [x[0], "a"], F.zeros((1,), backend="numpy")), ())) == (
        "add(float32[2, 3], np.float64(2.0), [float32[3], 'a'], float32[1])"
    )
    assert repr(Step(steps.maximum, (np.zeros(()), int), ())) == "maximum(float64, int)"


def test_a_process_without_more_mappings_plans_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory.mmap, "mmap", refused)
    x = emberlet.asarray(np.arange(1 << 16, dtype=np.float32), backend="numpy")
    np.testing.assert_array_equal(np.asarray(compile(lambda x: x * 2, x)(x)), np.asarray(x) * 2)


@every("shape", [(41, 4), (41, 1), (4,), (1, 4), (1,), (3, 1, 1), (3, 1, 4), (3, 41, 4)])
def test_constants_of_blocks_broadcast(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, scale, shift = (rng.normal(size=s).astype(np.float32) for s in ((3, 41, 4), shape, shape[-1:]))
    with pytest.MonkeyPatch.context() as patch:
        for name, small in (("BLOCK", 256), ("LONG", 4)):
            patch.setattr(blocks, name, small)
        for name in ("REPEATED", "FAR"):
            patch.setattr(repeated, name, 4)
        plan = compile(lambda x: F.relu(x * scale + shift), x)
    made = plan.plan()
    assert isinstance(made, Plan) and len(made.steps) > 3, "it is not cut"
    np.testing.assert_array_equal(np.asarray(plan(x)), np.maximum(x * scale + shift, 0))
