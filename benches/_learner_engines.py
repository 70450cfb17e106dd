"""One engine of benches/learner.py: trains on drawn images for two epochs and prints the second's seconds as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import numpy as np


def images(count: int) -> tuple[Any, Any]:
    """(count, 28, 28) bytes and (count,) labels, which a network can learn: bright squares at ten places."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 10, count)
    pixels = draw.integers(0, 100, (count, 28, 28), np.uint8)
    for i, label in enumerate(labels):
        row, column = divmod(int(label), 5)
        pixels[i, 6 * row : 6 * row + 6, 5 * column : 5 * column + 5] += 150
    return pixels, labels


def with_emberlet(count: int, batch_size: int, workers: int) -> dict[str, float]:
    import emberlet
    from emberlet import functional as F
    from emberlet import nn, optim
    from emberlet.data import DataLoader, MnistDataset
    from emberlet.module import Module
    from emberlet.train import ClassificationOutput, Events, Learner
    from emberlet.train.metric import AccuracyMetric, LossMetric

    class Net(Module):
        def __init__(self) -> None:
            self.conv1, self.conv2 = (nn.Conv2d(a, b, 3, backend="numpy") for a, b in ((1, 8), (8, 16)))
            self.linear1, self.linear2 = (nn.Linear(a, b, backend="numpy") for a, b in ((400, 64), (64, 10)))

        def step(self, batch: Any) -> ClassificationOutput:
            x = (batch.image / 255).reshape((-1, 1, 28, 28))
            x = F.max_pool(F.relu(self.conv2(F.max_pool(F.relu(self.conv1(x)), 2))), 2).flatten(1)
            output = self.linear2(F.relu(self.linear1(x)))
            return ClassificationOutput(F.cross_entropy(output, batch.label), output, batch.label)

    seconds = []

    class Clock(Events):
        def epoch_end(self, split: str, epoch: int, values: dict[str, float], took: float, items: int) -> None:
            seconds.append((took, values["Accuracy"]))

    emberlet.functional.manual_seed(0)
    loader = DataLoader(MnistDataset(*images(count)), batch_size=batch_size, shuffle=0, workers=workers)
    with tempfile.TemporaryDirectory() as folder:
        made = Learner(
            folder, Net(), optim.AdamConfig().init(), 1e-3, num_epochs=2, metrics=[LossMetric(), AccuracyMetric()],
            renderer=Clock(), checkpoints=None,
        )  # fmt: skip
        made.fit(loader)
    return {"seconds": seconds[-1][0], "accuracy": seconds[-1][1]}


def with_pytorch(count: int, batch_size: int, workers: int) -> dict[str, float]:
    import os

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    pixels, labels = images(count)

    class Images(Dataset):  # type: ignore[type-arg, unused-ignore]
        def __len__(self) -> int:
            return count

        def __getitem__(self, i: int) -> Any:
            return pixels[i].astype(np.float32), labels[i]

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-5)
    loader = DataLoader(Images(), batch_size, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    took = right = 0.0
    for _ in range(2):
        begin, right = time.perf_counter(), 0
        total = 0.0
        for x, y in loader:
            output = model((x / 255).unsqueeze(1))
            loss = nn.functional.cross_entropy(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((output.argmax(1) == y).sum())
            total += loss.item() * len(y)
        took = time.perf_counter() - begin
    return {"seconds": took, "accuracy": 100 * right / count}


if __name__ == "__main__":
    engine, *numbers = sys.argv[1:]
    train = with_pytorch if engine == "PyTorch" else with_emberlet
    print(json.dumps(train(*map(int, numbers))))
