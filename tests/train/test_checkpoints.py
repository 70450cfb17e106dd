"""Which checkpoints stay, and what a kill leaves of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.errors import ArgumentError, FormatError
from emberlet.train import (
    Checkpoints,
    Composed,
    EarlyStopping,
    History,
    Interrupter,
    KeepAll,
    KeepBest,
    KeepEvery,
    KeepLast,
)
from support import small_training
from support.small_training import Batches, fit, learner

from tools.paths import ROOT

LOSSES = {1: 0.5, 2: 0.2, 3: 0.9, 4: 0.2, 5: 0.4}


def history(**metrics: dict[int, float]) -> History:
    return History({"train": {}, "valid": metrics})


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [
        (KeepAll(), {1, 2, 3, 4, 5}),
        (KeepLast(1), {5}),
        (KeepLast(3), {3, 4, 5}),
        (KeepEvery(2), {2, 4}),
        (KeepBest("Loss"), {2}),
        (KeepBest("Loss", "highest"), {3}),
        (KeepBest("Absent"), set()),
        (Composed([KeepLast(1), KeepBest("Loss"), KeepEvery(3)]), {2, 3, 5}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_strategy_keeps(strategy: Any, kept: set[int]) -> None:
    assert strategy.keep([1, 2, 3, 4, 5], history(Loss=LOSSES)) == kept


def test_a_value_that_is_not_a_number_is_never_the_best() -> None:
    assert history(Loss={1: float("nan"), 2: 3.0}).best("valid", "Loss", "lowest") == 2


@pytest.mark.parametrize(
    ("stop", "ended"),
    [
        (EarlyStopping("Loss", epochs=3), True),
        (EarlyStopping("Loss", epochs=4), False),
        (EarlyStopping("Loss", epochs=1, direction="highest"), True),
        (EarlyStopping("Loss", epochs=3, direction="highest"), False),
        (EarlyStopping("Loss", epochs=1, split="train"), False),
        (EarlyStopping("Loss", epochs=4, min_change=0.4), True),
    ],
)
def test_early_stopping_waits_for_a_better_value(stop: EarlyStopping, ended: bool) -> None:
    assert (stop.reason(history(Loss=LOSSES)) is not None) == ended


def test_wrong_words_are_refused() -> None:
    for make in (lambda: KeepBest("Loss", "up"), lambda: EarlyStopping(split="test"), lambda: KeepLast(0),
                 lambda: KeepEvery(0), lambda: EarlyStopping(epochs=0)):  # fmt: skip
        with pytest.raises(ArgumentError):
            make()


def test_a_training_leaves_the_best_and_the_last_ones(tmp_path: Path) -> None:
    made = learner(tmp_path, 6, checkpoints=[KeepLast(1), KeepBest("Accuracy", "highest")])
    made.fit(Batches(200, 32), Batches(50, 32))
    assert made.checkpoints is not None
    accuracy = made.history.of("valid", "Accuracy")
    assert made.checkpoints.epochs() == sorted({max(accuracy, key=lambda epoch: (accuracy[epoch], -epoch)), 6})


def test_none_are_written_without_a_strategy(tmp_path: Path) -> None:
    fit(tmp_path, 1, checkpoints=None)
    assert not (tmp_path / "checkpoint").exists()


def test_a_checkpoint_without_its_last_file_is_none(tmp_path: Path) -> None:
    fit(tmp_path, 2)
    (tmp_path / "checkpoint/scheduler-2.json").unlink()
    assert Checkpoints(tmp_path / "checkpoint", KeepAll()).epochs() == [1]
    assert small_training.weights(fit(tmp_path, 2, resume=True)).keys()


def test_a_malformed_one_is_named(tmp_path: Path) -> None:
    fit(tmp_path, 1)
    (tmp_path / "checkpoint/scheduler-1.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FormatError, match=r"scheduler-1\.json"):
        fit(tmp_path, 2, resume=True)


def test_signals_are_handled_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupter = Interrupter()
    with interrupter.signals():
        signal.raise_signal(signal.SIGINT)
        assert interrupter.stopped == "by SIGINT"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupter = Interrupter()
        with interrupter.signals():
            signal.raise_signal(signal.SIGINT)
        assert interrupter.stopped is None
    finally:
        signal.signal(signal.SIGINT, before)


class Program:
    """small_training.py in a process of its own."""

    def __init__(self, folder: Path, epochs: int) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._command = [sys.executable, small_training.__file__, str(folder), str(epochs)]
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "OMP_NUM_THREADS": "1"}

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, env=self._environment, stderr=subprocess.PIPE)

    def weights(self) -> dict[str, Any] | None:
        path = self.folder / "weights.npz"
        return dict(np.load(path)) if path.exists() else None


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.timeout(300)
def test_a_training_that_is_killed_again_and_again_gives_the_weights_of_one_that_is_not(tmp_path: Path) -> None:
    epochs = 12
    whole = small_training.weights(fit(tmp_path / "whole", epochs))
    program, choose, events = Program(tmp_path / "killed", epochs), random.Random(5), tmp_path / "killed/events.jsonl"
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        process = program.start()
        lines, more = count_lines(events), choose.randrange(1, 6)  # an epoch has 5 events
        while process.poll() is None and count_lines(events) < lines + more:
            time.sleep(0.001)
        process.send_signal(number)
        process.communicate()
        assert program.weights() is None, "the training ended before the signal"
    assert program.start().wait() == 0
    found = program.weights()
    assert found is not None
    for name, value in whole.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
