"""Training on each backend, eager and compiled, interrupted at random moments: weights and the optimizer's state are
those of before or after a step, and nothing grows."""

from __future__ import annotations

import gc
import random
import sys
import time
from typing import Any

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.module import Module
from emberlet.optim import GradientsParams

from soak.scenarios.interrupts import ERRORS, Interrupter
from soak.telling import Clock, Told, resident

WHAT = "up to 10,000 training steps on each backend, eager and compiled, every fourth interrupted: no mixture"
NEEDS = ("gpu-driver",)
SHARE = 4

STEPS = 10_000  # of each backend
WARM = 20
ROUND = 25
BLOCKS = 1.0  # blocks of Python's memory that a step may leave on average, beside SOME: a graph leaves hundreds
SOME = 2000  # a module that one way imports, or a cache that it fills, once
GROWTH = 24.0  # megabytes


class Net(Module):
    def __init__(self, backend: str) -> None:
        self.first = nn.Linear(8, 16, backend=backend)
        self.norm = nn.LayerNorm(16, backend=backend)
        self.last = nn.Linear(16, 4, backend=backend)

    def forward(self, x: Any) -> Any:
        return self.last(F.gelu(self.norm(self.first(x))))


class Training:
    """A model, its optimizer and its data, the same for the same backend."""

    def __init__(self, way: str) -> None:
        backend, _, compiled = way.partition(" ")
        F.manual_seed(7)
        draw = np.random.RandomState(3)
        self.model: Any = Net(backend).train()
        for p in self.model.params():
            p.val()  # initialize now, from this seed
        self.optimizer = optim.AdamConfig(weight_decay=0.01).init()
        self.x = emberlet.asarray(draw.randn(5, 8).astype(np.float32), backend="autodiff:" + backend)
        self.y = emberlet.asarray(draw.randint(0, 4, 5), backend="autodiff:" + backend)
        self.compiled = self.model.compile_step(_loss, self.optimizer) if compiled else None

    def step(self) -> None:
        if self.compiled is not None:
            self.compiled(1e-3, self.x, self.y)
            return
        loss = F.cross_entropy(self.model(self.x), self.y)
        self.optimizer.step(1e-3, self.model, GradientsParams.from_grads(loss.backward(), self.model))

    def state(self) -> list[Any]:
        """The weights and the optimizer's state, by place."""
        weights = [np.asarray(p.val().inner().to("numpy")) for p in self.model.params()]
        record = self.optimizer.to_record()
        kept = [np.asarray(record[name].to("numpy")) for name in sorted(record)]
        # The parameters' ids differ between two trainings, their number does not.
        return weights + sorted(kept, key=lambda a: a.tobytes())


def _loss(model: Any, x: Any, y: Any) -> Any:
    return F.cross_entropy(model(x), y)


def _equal(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("steps")
    names = ("numpy", "wasm", "python", "wgpu", "numpy compiled", "wasm compiled", "wgpu compiled")
    interrupter = Interrupter()
    trainings = {name: (Training(name), Training(name)) for name in names}
    long = dict.fromkeys(names, 0.0)
    for name, pair in trainings.items():
        for _ in range(WARM):
            start = time.perf_counter()
            for training in pair:
                training.step()
            long[name] = (time.perf_counter() - start) / 2
        if not _equal(pair[0].state(), pair[1].state()):
            told.failures.append(f"{name}: the same training gives different weights")
    gc.collect()
    megabytes = resident()
    made, blocks = dict.fromkeys(names, 0), dict.fromkeys(names, 0)  # steps, and blocks that they left
    while clock and min(made.values()) < STEPS and not told.failures:
        for name in choose.sample(names, len(names)):
            already = sys.getallocatedblocks()
            _interrupted(told, name, trainings[name], interrupter, choose, long[name])
            for training in trainings[name]:
                for _ in range(ROUND):
                    training.step()
            gc.collect()
            blocks[name] += sys.getallocatedblocks() - already
            made[name] += 2 * ROUND
    told.tried = sum(made.values())
    told.facts["blocks of Python's memory grown"] = blocks
    # Together: an interrupt may empty a pool of buffers, which the steps of another way fill again.
    if sum(blocks.values()) > BLOCKS * told.tried + SOME:
        told.failures.append(f"{told.tried} steps left {sum(blocks.values())} blocks of memory")
    if resident() - megabytes > GROWTH:
        told.failures.append(f"{told.tried} steps left {resident() - megabytes:.0f} MB")
    return told


def _interrupted(
    told: Told, name: str, pair: tuple[Training, Training], interrupter: Interrupter, choose: random.Random, long: float
) -> None:
    """Interrupt steps of one training; the other one takes the same steps in peace."""
    harmed, peaceful = pair
    for _ in range(ROUND // 4):
        hit = interrupter.interrupt(harmed.step, choose.uniform(0, 1.2 * long), choose.choice(ERRORS))
        found = harmed.state()
        if not hit or not _equal(found, peaceful.state()):
            peaceful.step()
        told.checked += 1
        if not _equal(found, peaceful.state()):
            told.failures.append(f"{name}: a step that was {'' if hit else 'not '}interrupted left other weights")
            return
