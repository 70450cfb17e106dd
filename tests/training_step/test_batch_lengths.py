"""Batches of several lengths: which plans a compiled step has for them, and that each trains as a step without one."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.module import Module

from .networks import batch, dense, eager_step, squares, values

GPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))
NATIVE = pytest.mark.skipif(not find_spec("llvmlite"), reason="llvmlite is not installed")
LENGTHS = (6, 6, 4, 1, 6, 9)


class Encoder(Module):
    """A transformer on texts whose padding is masked."""

    def __init__(self, backend: Any) -> None:
        self.embedding = nn.Embedding(9, 8, backend=backend)
        self.encoder = nn.TransformerEncoder(8, 16, 2, 1, dropout=0.2, backend=backend)
        self.output = nn.Linear(8, 3, backend=backend)

    def forward(self, x: Any) -> Any:
        return self.output(self.encoder(self.embedding(x), mask_pad=x == 0)[:, 0])


class Recurrent(Module):
    def __init__(self, backend: Any) -> None:
        self.lstm = nn.Lstm(4, 5, backend=backend)
        self.output = nn.Linear(5, 3, backend=backend)

    def forward(self, x: Any) -> Any:
        return self.output(self.lstm(x)[0][:, -1])


def perceptron(backend: Any) -> Any:
    first = nn.Linear(6, 8, backend=backend)
    return nn.Sequential(first, nn.Relu(), nn.Dropout(0.3), nn.Linear(8, 3, backend=backend))


def convolutional(backend: Any) -> Any:
    convolution = nn.Conv2d(1, 4, 3, padding=1, backend=backend)
    norm, output = nn.BatchNorm(4, backend=backend), nn.Linear(36, 3, backend=backend)
    return nn.Sequential(convolution, norm, nn.Relu(), nn.MaxPool2d(2), nn.Flatten(1), output)


def drawn(*shape: int) -> Callable[[Any, int], Any]:
    return lambda rng, n: rng.standard_normal((n, *shape), np.float32)


MODELS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, int], Any]]] = {
    "perceptron": (perceptron, drawn(6)),
    "convolutional": (convolutional, drawn(1, 6, 6)),
    "encoder": (Encoder, lambda rng, n: rng.integers(0, 9, (n, 5))),
    "recurrent": (Recurrent, drawn(3, 4)),
}


def entropy(model: Any, x: Any, y: Any) -> Any:
    return F.cross_entropy(model(x), y)


@pytest.mark.parametrize(
    "name, backend",
    [
        *((name, backend) for name in MODELS for backend in ("numpy", "wasm")),
        *(pytest.param(name, "wgpu", marks=pytest.mark.needs("gpu-driver")) for name in MODELS),
        *(pytest.param(name, "native", marks=NATIVE) for name in ("perceptron", "convolutional")),
    ],
)
def test_every_length_trains_as_without_a_plan(name: str, backend: str) -> None:
    make, data = MODELS[name]
    rng = np.random.default_rng(1)
    batches = [(data(rng, n), rng.integers(0, 3, n)) for n in LENGTHS]
    found = []
    for compiled in (False, True):
        emberlet.manual_seed(7)
        model, optimizer = make(backend).train(), optim.AdamConfig(epsilon=1e-2).init()
        for p in model.params():
            p.val()
        emberlet.manual_seed(8)
        step = model.compile_step(entropy, optimizer) if compiled else None
        losses = [
            float(step(0.01, *items)) if step else eager_step(model, optimizer, 0.01, *items, loss=entropy)
            for items in batches
        ]
        found.append({**values(model), "losses": np.array(losses)})
    assert step is not None and step.cut is None and step.fixed is None
    assert len(step._plans) == 1
    for key, wanted in found[0].items():
        np.testing.assert_allclose(found[1][key], wanted, rtol=1e-5, atol=2e-6, err_msg=key)


@pytest.mark.parametrize("backend", ["numpy", "wasm", GPU])
def test_a_loss_that_needs_the_number_of_items_has_a_plan_for_each(backend: str) -> None:
    def loss(model: Any, x: Any, y: Any) -> Any:
        return squares(model, x, y) * float(x.shape[0])

    lengths = (8, 8, 5, 8)
    model, optimizer = dense(None, backend), optim.SgdConfig().init()
    step = model.compile_step(loss, optimizer)
    found = [float(step(0.01, *batch(n, n))) for n in lengths]
    other, eager = dense().train(), optim.SgdConfig().init()
    wanted = [eager_step(other, eager, 0.01, *batch(n, n), loss=loss) for n in lengths]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert "open size" in str(step.fixed) and len(step._plans) == 2


@pytest.mark.parametrize("backend", ["numpy", "wasm", GPU])
def test_a_batch_with_a_tensor_that_has_no_items(backend: str) -> None:
    """Its length may be that of the first batch by chance."""

    def loss(model: Any, x: Any, y: Any, weights: Any) -> Any:
        return ((model(x) - y) ** 2 * weights).mean()

    weights = np.array([0.5, 2], np.float32)
    lengths = (2, 5, 3, 2)
    model, optimizer = dense(None, backend), optim.SgdConfig().init()
    step = model.compile_step(loss, optimizer)
    found = [float(step(0.01, *batch(n, n), weights)) for n in lengths]
    other, eager = dense().train(), optim.SgdConfig().init()
    wanted = [eager_step(other, eager, 0.01, *batch(n, n), weights, loss=loss) for n in lengths]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_calls_for_another_length_share_the_memory() -> None:
    step = dense().compile_step(squares, optim.AdamConfig().init())
    for n in (64, 8, 64, 32):
        step(0.01, *batch(n))
    plan = step._plans[0].plan
    assert len({id(calls._memory.arena) for calls in plan._calls.values()}) == 1


def test_batches_of_many_lengths_keep_the_calls_of_a_few() -> None:
    step = dense().compile_step(squares, optim.AdamConfig().init())
    for n in range(1, 21):
        step(0.01, *batch(n))
    assert len(step._plans) == 1 and len(step._plans[0].plan._calls) == 8
