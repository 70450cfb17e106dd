"""A training loop of one's own, without the learner: two spirals.

python custom_loop.py [--check]
"""

import argparse
import sys

import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.data import ArrayDataset, DataLoader
from emberlet.module import Module
from emberlet.optim import GradientsParams
from emberlet.train.metric import accuracy

EXPECTED = 95.0  # percent of the points


class Network(Module):
    def __init__(self, backend=None):
        self.layers = nn.Sequential(
            nn.Linear(2, 32, backend=backend), nn.Tanh(), nn.Linear(32, 32, backend=backend), nn.Tanh(),
            nn.Linear(32, 2, backend=backend),
        )  # fmt: skip

    def forward(self, points):  # (batch, 2) -> (batch, 2)
        return self.layers(points)


def spirals(count, seed):
    """Points of two spirals, and to which each belongs."""
    draw = np.random.default_rng(seed)
    which = draw.integers(0, 2, count)
    angle = draw.uniform(0.5, 6.0, count)
    points = np.stack([angle * np.cos(angle + np.pi * which), angle * np.sin(angle + np.pi * which)], axis=1) / 3
    return ArrayDataset((points + 0.03 * draw.normal(size=points.shape)).astype(np.float32), which.astype(np.int64))


def main(words=None):
    parser = argparse.ArgumentParser(description="Train a network on two spirals, in a loop of its own.")
    parser.add_argument("--check", action="store_true", help=f"fail unless {EXPECTED:g} percent are right")
    options = parser.parse_args(words)
    F.manual_seed(0)
    model = Network(backend="numpy").train()
    optimizer = optim.AdamConfig().init()
    loader = DataLoader(spirals(512, seed=1), batch_size=64, shuffle=1, backend="autodiff:numpy")
    valid = DataLoader(spirals(256, seed=2), batch_size=256, backend="numpy")

    for epoch in range(20):
        for points, targets in loader:
            loss = F.cross_entropy(model(points), targets)
            grads = GradientsParams.from_grads(loss.backward(), model)
            model = optimizer.step(1e-2, model, grads)

        inner = model.valid()  # without gradients
        right = [accuracy(inner(points), targets) for points, targets in valid]
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: loss {float(loss):.3f}, accuracy {right[0]:.1f} %")
    return int(options.check and right[0] < EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
