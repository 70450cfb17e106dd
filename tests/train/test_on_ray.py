"""A training on two workers of Ray Train, one of which is killed: the weights of one process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.errors import ArgumentError
from support.ray_processes import environment, running, wait_until
from support.small_training import Batches, Plain, fit, learner, weights

from tools.components import require
from tools.paths import ROOT

EPOCHS = 4
PATIENCE = 600  # seconds: Ray Train starts several processes, one after the other
# Waits in its third epoch until it may go on, so that a worker can be killed there.
PROGRAM = """
import os, sys, time
from pathlib import Path

import numpy as np
import ray
from emberlet.train import Events, fit_on_ray

sys.path[:0] = {path!r}
from support.small_training import Batches, Plain, learner, weights

folder = Path(sys.argv[1])


class Held(Events):
    def epoch(self, split, epoch):
        if epoch == 3 and split == "train":
            (folder / "third").write_text(str(os.getpid()))
            while (folder / "hold").exists():
                time.sleep(0.05)


def make():
    made = learner(folder / "run", {epochs}, model=Plain(), loggers=[Held()])
    return made, Batches(200, 16), Batches(50, 32, seed=1)


for last in (False, False, True):  # Ray gives its own processes 30 seconds, which a busy machine may not have
    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
        break
    except Exception:
        ray.shutdown()
        if last:
            raise
np.savez(folder / "weights.npz", **weights(fit_on_ray(make, workers=2)))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path: Ray puts sockets below it, whose paths may have 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="ray"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def start(folder: Path, home: Path) -> subprocess.Popen[str]:
    paths = [str(ROOT / "tests"), str(ROOT)]
    (folder / "program.py").write_text(PROGRAM.format(path=paths, epochs=EPOCHS), encoding="utf-8")
    # Workers import the support package by its name.
    variables = {**environment(home), "PYTHONPATH": os.pathsep.join(paths), "RAY_TRAIN_V2_ENABLED": "1",
                 "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(PATIENCE)}  # fmt: skip
    return subprocess.Popen([sys.executable, folder / "program.py", folder], env=variables, cwd=folder, text=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")  # fmt: skip


def wanted(folder: Path) -> dict[str, Any]:
    """The weights of one process with batches of twice the size."""
    return weights(learner(folder / "one", EPOCHS, model=Plain()).fit(Batches(200, 32)))


def test_a_folder_with_a_training_is_not_gone_on_with_unasked(tmp_path: Path) -> None:
    require("ray")
    pytest.importorskip("pydantic", reason="Ray Train needs it")
    from emberlet.train import fit_on_ray

    fit(tmp_path, 1)
    with pytest.raises(ArgumentError, match="resume=True"):
        fit_on_ray(lambda: (learner(tmp_path, 2), Batches(64, 32), None))


@pytest.mark.timeout(2 * PATIENCE + 300)
def test_two_workers_one_of_which_is_killed_give_the_weights_of_one_process(tmp_path: Path, home: Path) -> None:
    require("ray")
    pytest.importorskip("pydantic", reason="Ray Train needs it")
    hold = tmp_path / "hold"
    hold.touch()
    process = start(tmp_path, home)
    try:
        third = tmp_path / "third"
        wait_until(lambda: third.exists() or process.poll() is not None, "the third epoch", PATIENCE)
        assert process.poll() is None, process.communicate()[1]
        os.kill(int(third.read_text(encoding="utf-8")), signal.SIGKILL)
        hold.unlink()
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    finally:
        process.kill()
        wait_until(lambda: not running(home), "the end of Ray's processes")
    found = dict(np.load(tmp_path / "weights.npz"))
    for name, value in wanted(tmp_path).items():
        np.testing.assert_allclose(found[name], value, atol=2e-5, err_msg=name)
    lines = (tmp_path / "run/events.jsonl").read_text(encoding="utf-8").splitlines()
    begun = [event["epoch"] for event in map(json.loads, lines) if event["event"] == "begin"]
    assert begun == [1, 3]  # it went on where it was, and nothing else began again
