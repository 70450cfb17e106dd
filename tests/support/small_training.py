"""A small training: a network with dropout on drawn points, in batches whose last one is smaller.

Also a program: `python small_training.py FOLDER EPOCHS` trains, or goes on, and
writes the weights to FOLDER/weights.npz.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.module import Module
from emberlet.train import ClassificationOutput, Learner
from emberlet.train.metric import AccuracyMetric, LossMetric


class Net(Module):
    def __init__(self, backend: str = "numpy", dropout: float = 0.1) -> None:
        self.first = nn.Linear(4, 16, backend=backend)
        self.norm = nn.BatchNorm(16, backend=backend)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(16, 3, backend=backend)

    def step(self, batch: Any) -> ClassificationOutput:
        x, targets = batch
        output = self.last(self.dropout(F.relu(self.norm(self.first(x)))))
        return ClassificationOutput(F.cross_entropy(output, targets), output, targets)


class Plain(Module):
    """Without dropout and statistics of a batch."""

    def __init__(self, backend: str = "numpy") -> None:
        self.first = nn.Linear(4, 16, backend=backend)
        self.last = nn.Linear(16, 3, backend=backend)

    def step(self, batch: Any) -> ClassificationOutput:
        output = self.last(F.relu(self.first(batch[0])))
        return ClassificationOutput(F.cross_entropy(output, batch[1]), output, batch[1])


class Batches:
    """Points whose class is the largest of their first three coordinates, shuffled by the epoch."""

    def __init__(self, count: int, size: int, seed: int = 0) -> None:
        self.points = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
        self.size, self.epoch = size, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-len(self.points) // self.size)

    def __iter__(self) -> Iterator[Any]:
        order = np.random.default_rng(self.epoch).permutation(len(self.points))
        for start in range(0, len(order), self.size):
            x = self.points[order[start : start + self.size]]
            yield emberlet.asarray(x, backend="numpy"), emberlet.asarray(x[:, :3].argmax(1), backend="numpy")


def learner(folder: Path, epochs: int, **options: Any) -> Learner:
    """A learner of a new network, the same each time."""
    F.manual_seed(3)
    settings = {"renderer": None, "metrics": [LossMetric(), AccuracyMetric()], "model": Net(), "lr": 0.01, **options}
    model, lr = settings.pop("model"), settings.pop("lr")
    return Learner(folder, model, optim.AdamConfig().init(), lr, num_epochs=epochs, **settings)


def fit(folder: Path, epochs: int, **options: Any) -> Any:
    return learner(folder, epochs, **options).fit(Batches(200, 32), Batches(50, 32, seed=1))


def weights(model: Any) -> dict[str, Any]:
    return {name: np.asarray(param.val()) for name, param in model.named_params()}


def train_to(folder: Path, epochs: int) -> None:
    """Train, or go on, and write the weights to weights.npz unless a signal ended it."""
    made = learner(folder, epochs, resume=True)
    trained = made.fit(Batches(200, 32), Batches(50, 32, seed=1))
    if made.reason is None:
        np.savez(folder / "part.npz", **weights(trained))
        (folder / "part.npz").replace(folder / "weights.npz")  # a kill leaves the whole file, or none


if __name__ == "__main__":
    train_to(Path(sys.argv[1]), int(sys.argv[2]))
