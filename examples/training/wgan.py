"""A Wasserstein GAN with two optimizers: a generator learns to draw from a normal distribution.

    python wgan.py [--check]

The critic takes five steps for each of the generator's, and its weights are clipped (Arjovsky et al. 2017).
"""

import argparse
import sys

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.module import Module
from emberlet.optim import GradientsParams

EXPECTED = 0.5  # how far mean and deviation of what is drawn may be from these
MEAN, DEVIATION = np.float32([2.0, -1.0]), np.float32([0.5, 1.0])
BATCH, NOISE = 64, 2


class Net(Module):
    def __init__(self, inputs, outputs, backend=None):
        self.layers = nn.Sequential(
            nn.Linear(inputs, 32, backend=backend), nn.Relu(), nn.Linear(32, 32, backend=backend), nn.Relu(),
            nn.Linear(32, outputs, backend=backend),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def clipped(module, limit):
    """Keep every weight of the critic within ±limit."""
    for param in module.params():
        param.set(param.val().detach().clip(-limit, limit))


def main(words=None):
    parser = argparse.ArgumentParser(description="Train a generator and a critic.")
    parser.add_argument(
        "--check", action="store_true", help=f"fail unless it draws within {EXPECTED} of the distribution"
    )
    parser.add_argument("--steps", type=int, default=300, help="of the generator (default: 300)")
    options = parser.parse_args(words)
    F.manual_seed(0)
    draw, backend = np.random.default_rng(0), emberlet.get_backend("autodiff:numpy")
    generator, critic = Net(NOISE, 2, backend="numpy").train(), Net(2, 1, backend="numpy").train()
    of_generator, of_critic = (optim.AdamConfig(beta_1=0.5, beta_2=0.9).init() for _ in range(2))

    def noise():
        return F.normal((BATCH, NOISE), backend=backend)

    for step in range(options.steps):
        for _ in range(5):
            drawn = draw.normal(size=(BATCH, 2)).astype(np.float32)
            real = emberlet.asarray(MEAN + DEVIATION * drawn, backend=backend)
            fake = generator(noise()).detach()
            loss = critic(fake).mean() - critic(real).mean()
            critic = of_critic.step(5e-3, critic, GradientsParams.from_grads(loss.backward(), critic))
            clipped(critic, 0.2)
        loss = -critic(generator(noise())).mean()
        grads = GradientsParams.from_module(loss.backward(), generator)  # those of the critic are not used
        generator = of_generator.step(2e-3, generator, grads)
        if step % 50 == 49:
            print(f"step {step + 1}: {distance(generator.valid()):.2f} away")
    return int(options.check and distance(generator.valid()) > EXPECTED)


def distance(generator):
    """The largest difference of the mean and the deviation of drawn points from what they should be."""
    points = np.asarray(generator(F.normal((512, NOISE), seed=7, backend="numpy")))
    return float(np.abs([points.mean(0) - MEAN, points.std(0) - DEVIATION]).max())


if __name__ == "__main__":
    sys.exit(main())
