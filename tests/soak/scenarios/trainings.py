"""Trainings killed at random moments and gone on with: the weights at the end are those of one that was not killed."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
from support import small_training

from soak.killing import killed, said
from soak.telling import Clock, Told

WHAT = "up to 50 kills of a training, by three signals, after each of which it goes on: weights of one in peace"
NEEDS = ()
SHARE = 4

KILLS = 50  # unless --times says otherwise
EPOCHS = 12
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("kills")
    if not hasattr(os, "fork"):
        told.facts["left out"] = "this system has no fork"
        return told
    with tempfile.TemporaryDirectory() as name:
        begin = time.perf_counter()
        wanted = small_training.weights(small_training.fit(Path(name) / "whole", EPOCHS))
        took = time.perf_counter() - begin
        number, most = 0, KILLS if clock.times is None else clock.times
        while (clock or not told.tried) and told.tried < most and not told.failures:
            number += 1
            _one(told, Path(name) / str(number), choose, took, most)
            found = np.load(Path(name) / str(number) / "weights.npz")
            told.checked += 1
            wrong = [key for key, value in wanted.items() if not np.array_equal(found[key], value)]
            if wrong:
                told.failures.append(f"training {number}: other weights of {', '.join(wrong)}")
        told.facts["trainings"] = number
    return told


def _one(told: Told, folder: Path, choose: random.Random, took: float, most: int) -> None:
    """Train, killed at some moments, to the end."""
    folder.mkdir()
    error = folder / "error.txt"
    left = choose.randrange(2, 8)  # kills of this training; then it may finish
    while not (folder / "weights.npz").exists():
        more = left > 0 and told.tried < most
        number = choose.choice(SIGNALS)
        killed(
            lambda: small_training.train_to(folder, EPOCHS), choose.uniform(0, took) if more else 300.0, error, number
        )
        if more and not (folder / "weights.npz").exists():
            told.tried += 1
            left -= 1
        text = said(error)
        if text and "KeyboardInterrupt" not in text:
            told.failures.append(text)
            return
