"""The digits' network trains as in PyTorch, from the same weights and batches (fixtures/torch_digits.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.module import Module
from emberlet.optim import GradientsParams

from tools.paths import ROOT

from .networks import FEW

BATCH, RATE = 32, 4e-3
ANSWERS = dict(np.load(Path(__file__).parent / "fixtures" / "torch_digits.npz"))


class Digits(Module):
    def __init__(self, backend: Any) -> None:
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, backend=backend)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, backend=backend)
        self.fc1 = nn.Linear(256, 32, backend=backend)
        self.fc2 = nn.Linear(32, 10, backend=backend)

    def forward(self, image: Any) -> Any:
        x = F.relu(self.conv2(F.relu(self.conv1(image))))
        return self.fc2(F.relu(self.fc1(F.max_pool(x, 2).flatten(1))))


def start(backend: Any) -> tuple[Digits, Any, Callable[[int], tuple[Any, Any]]]:
    """(model, optimizer, the images and labels of a step), as PyTorch began."""
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as file:
        images = (file["images"].astype(np.float32) / 16)[:, None]
        labels = file["labels"].astype(np.int64)
    model = Digits(backend)
    weights = {k: emberlet.asarray(v, backend=backend) for k, v in ANSWERS.items() if k != "losses"}
    model.load_record(weights, layout="pytorch")

    def batch(step: int) -> tuple[Any, Any]:
        rows = np.arange(step * BATCH, (step + 1) * BATCH) % len(images)
        return images[rows], labels[rows]

    return model, optim.AdamWConfig(epsilon=1e-8, weight_decay=1e-2).init(), batch


def losses(backend: str, steps: int) -> tuple[list[float], Digits]:
    model, optimizer, batch = start(backend)
    model.train()
    found = []
    for step in range(steps):
        x, y = (emberlet.asarray(v, backend="autodiff:" + backend) for v in batch(step))
        loss = F.cross_entropy(model(x), y)
        found.append(float(loss))
        model = optimizer.step(RATE, model, GradientsParams.from_grads(loss.backward(), model))
    return found, model


STEPS = [
    ("numpy", 100), ("python", FEW), ("wasm", 100),
    pytest.param("wgpu", max(FEW, 25), marks=pytest.mark.needs("gpu-driver")),
]  # fmt: skip


@pytest.mark.parametrize(("backend", "steps"), STEPS)
def test_the_losses_are_pytorchs(backend: str, steps: int) -> None:
    found, model = losses(backend, steps)
    np.testing.assert_allclose(found, ANSWERS["losses"][:steps], atol=1e-4, rtol=1e-4)
    assert repr(model.valid().fc2.weight.val().backend) == backend
