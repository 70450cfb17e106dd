"""`emberlet profile --backend native`: the time of each step of a plan."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import asarray, nn
from emberlet.wgpu_backend import profile
from emberlet.wgpu_backend.llvm.backend import NativeBackend

from tools.paths import ROOT


def test_each_step_has_its_time_and_work(backend: NativeBackend) -> None:
    x = np.ones((40, 64), np.float32)
    compiled = nn.Sequential(nn.Linear(64, 64), nn.Softmax()).compile(x, backend=backend)
    planned = compiled.planned()
    samples, clock = profile.measure(profile.profiled(planned), planned.words([asarray(x, backend=backend)]), 3)
    assert clock == "host clock" and len(samples) == len(planned.plan.steps) > 1
    assert all(s.duration > 0 for s in samples) and sum(s.flops for s in samples) >= 2 * 40 * 64 * 64
    assert [s.start for s in samples] == sorted(s.start for s in samples)


def test_the_command_names_the_processor_and_its_speed(capsys: pytest.CaptureFixture[str]) -> None:
    assert profile.main([str(ROOT / "examples/digits/digits.onnx"), "--runs", "2", "--backend", "native"]) == 0
    first, _, *rows = capsys.readouterr().out.splitlines()
    assert "bits, threads: " in first and "reached here: " in first and rows[-1].startswith("all ")
