"""Deep Q-learning: a small network learns to balance a pole on a cart, from what it tries.

    python dqn.py [--check]

Sixteen carts move at once, and what happens to them is kept. Every training step takes a batch of it: an action is
worth its reward and what the best action after it is worth, as an older copy of the network sees it (Mnih et al. 2015).
The network itself chooses that action (van Hasselt et al. 2016).
"""

import argparse
import sys

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.module import Module

EXPECTED = 150  # mean steps that the pole stays up, of at most LIMIT
CARTS, LIMIT, BATCH, KEPT, DISCOUNT = 16, 200, 128, 20_000, 0.98


class Carts:
    """Poles on carts (Barto, Sutton and Anderson 1983): position, speed, angle and its speed, a push left or right."""

    def __init__(self, count, seed):
        self.draw = np.random.default_rng(seed)
        self.state = self.draw.uniform(-0.05, 0.05, (count, 4))
        self.age = np.zeros(count, np.int64)

    def step(self, actions):
        """actions (count,): 0 or 1. Returns the states (count, 4) after them, and which poles fell."""
        x, speed, angle, turn = self.state.T
        sine, cosine = np.sin(angle), np.cos(angle)
        push = (20.0 * actions - 10.0 + 0.05 * turn**2 * sine) / 1.1
        turning = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        pushed = push - 0.05 * turning * cosine / 1.1
        after = np.stack([x + 0.02 * speed, speed + 0.02 * pushed, angle + 0.02 * turn, turn + 0.02 * turning], 1)
        fell = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 0.2095)
        self.age += 1
        over = fell | (self.age >= LIMIT)
        self.state = np.where(over[:, None], self.draw.uniform(-0.05, 0.05, after.shape), after)
        self.age[over] = 0
        return after, fell


class Worth(Module):
    """What each of the two actions is worth in a state: (n, 4) -> (n, 2)."""

    def __init__(self, backend=None):
        self.layers = nn.Sequential(
            nn.Linear(4, 64, backend=backend), nn.Relu(), nn.Linear(64, 64, backend=backend), nn.Relu(),
            nn.Linear(64, 2, backend=backend),
        )  # fmt: skip

    def forward(self, states):
        return self.layers(states)


def loss_of(model, states, actions, wanted):
    found = F.gather(model(states), 1, actions.reshape((-1, 1)))
    return nn.HuberLoss(1.0)(found.reshape((-1,)), wanted)


def values(model, states):
    return np.asarray(model(emberlet.asarray(states.astype(np.float32), backend="numpy")))


def score(model):
    """The mean number of steps that poles stay up, of 32."""
    carts, up = Carts(32, seed=99), np.full(32, LIMIT)
    for step in range(LIMIT):
        _, fell = carts.step(values(model, carts.state).argmax(1))
        up[fell & (up == LIMIT)] = step + 1
    return up.mean()


def main(words=None):
    parser = argparse.ArgumentParser(description="Balance a pole on a cart by deep Q-learning.")
    parser.add_argument("--check", action="store_true", help=f"fail unless poles stay up for {EXPECTED} steps")
    parser.add_argument("--steps", type=int, default=2000, help="of the network (default: 2000)")
    options = parser.parse_args(words)
    F.manual_seed(0)
    draw, carts = np.random.default_rng(0), Carts(CARTS, seed=1)
    model = Worth(backend="numpy").train()
    step = model.compile_step(loss_of, optim.AdamConfig().init())  # forward, backward and update as one plan
    now = older = model.valid()
    states, later = np.zeros((2, KEPT, 4), np.float32)
    actions, ends = np.zeros(KEPT, np.int64), np.zeros(KEPT, np.float32)
    for i in range(options.steps):
        at = np.arange(i * CARTS, (i + 1) * CARTS) % KEPT
        states[at] = carts.state
        random = draw.random(CARTS) < max(0.05, 1 - i / 500)
        actions[at] = np.where(random, draw.integers(0, 2, CARTS), values(now, carts.state).argmax(1))
        later[at], ends[at] = carts.step(actions[at])
        rows = draw.integers(0, min(KEPT, (i + 1) * CARTS), BATCH)
        best = values(now, later[rows]).argmax(1)
        wanted = 1 + DISCOUNT * (1 - ends[rows]) * values(older, later[rows])[np.arange(BATCH), best]
        step(1e-3, states[rows], actions[rows], wanted.astype(np.float32))
        if i % 10 == 9:
            now = model.valid()
        if i % 100 == 99:
            older = now
        if i % 500 == 499:
            print(f"step {i + 1}: poles stay up for {score(now):.0f} steps")
    return int(options.check and score(model.valid()) < EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
