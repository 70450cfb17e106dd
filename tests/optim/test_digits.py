"""The digits' network trains as in PyTorch, from the same weights and batches (fixtures/torch_digits.py)."""

from __future__ import annotations

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


def losses(backend: str, steps: int) -> tuple[list[float], Digits]:
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as file:
        images = (file["images"].astype(np.float32) / 16)[:, None]
        labels = file["labels"].astype(np.int64)
    model = Digits(backend)
    weights = {k: emberlet.asarray(v, backend=backend) for k, v in ANSWERS.items() if k != "losses"}
    model.load_record(weights, layout="pytorch")
    model.train()
    optimizer = optim.AdamWConfig(epsilon=1e-8, weight_decay=1e-2).init()
    found = []
    for step in range(steps):
        rows = np.arange(step * BATCH, (step + 1) * BATCH) % len(images)
        x = emberlet.asarray(images[rows], backend="autodiff:" + backend)
        y = emberlet.asarray(labels[rows], backend="autodiff:" + backend)
        loss = F.cross_entropy(model(x), y)
        found.append(float(loss))
        model = optimizer.step(RATE, model, GradientsParams.from_grads(loss.backward(), model))
    return found, model


STEPS = [
    ("numpy", 100), ("python", 2), ("wasm", 100),
    pytest.param("wgpu", 25, marks=pytest.mark.needs("gpu-driver")),
]  # fmt: skip


@pytest.mark.parametrize(("backend", "steps"), STEPS)
def test_the_losses_are_pytorchs(backend: str, steps: int) -> None:
    found, model = losses(backend, steps)
    np.testing.assert_allclose(found, ANSWERS["losses"][:steps], atol=1e-4, rtol=1e-4)
    assert repr(model.valid().fc2.weight.val().backend) == backend
