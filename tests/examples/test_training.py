"""The examples of training reach the score that they state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from emberlet.train.learner.report.reading import read

from tools.paths import ROOT

EXAMPLES = (
    "regression", "text_classification", "text_generation", "custom_loop", "wgan", "dqn", "autodiff",
    "several_optimizers", "fine_tune",
)  # fmt: skip


def run(program: Path, folder: Path, *words: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, program, "--check", *words], cwd=folder, env=environment, check=False,
                          capture_output=True, text=True, encoding="utf-8")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_reaches_its_score(tmp_path: Path, name: str) -> None:
    for library in ("pandas", "pyarrow") if name == "regression" else ():
        pytest.importorskip(library)
    run(ROOT / "examples" / "training" / f"{name}.py", tmp_path)


@pytest.mark.timeout(300)
def test_the_guide_trains_saves_and_predicts(tmp_path: Path) -> None:
    said = run(ROOT / "examples" / "guide" / "main.py", tmp_path, "--out", "run")
    assert said.startswith("Predicted ")
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"config.json", "model.bpk", "checkpoint", "train"}
    assert read(tmp_path / "run").metrics == ["Accuracy", "Loss"]
