"""Training with quantized weights: the gradient passes straight through the rounding."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import autodiff, nn, optim
from emberlet.errors import ShapeError
from emberlet.functional.quantized.weights import WeightScheme, fake_quantize
from emberlet.module import Module
from emberlet.optim import GradientsParams


class Net(Module):
    def __init__(self, backend: str = "numpy") -> None:
        emberlet.manual_seed(3)
        self.first = nn.Linear(4, 16, backend=backend)
        self.second = nn.Linear(16, 2, backend=backend)

    def forward(self, x: Any) -> Any:
        return self.second(emberlet.tanh(self.first(x)))


def arrays() -> tuple[Any, Any]:
    x = np.random.RandomState(0).randn(64, 4).astype(np.float32)
    return x, np.stack([np.sin(x[:, 0] * 2), x[:, 1] * x[:, 2]], 1).astype(np.float32)


def trained(model: Any, steps: int, backend: str = "numpy") -> list[float]:
    model.train()
    x, y = (emberlet.asarray(a, backend="autodiff:" + backend) for a in arrays())
    optimizer, losses = optim.AdamConfig().init(), []
    for _ in range(steps):
        loss = ((model(x) - y) ** 2).mean()
        losses.append(float(loss))
        model = optimizer.step(0.02, model, GradientsParams.from_grads(loss.backward(), model))
    return losses


@pytest.mark.parametrize(
    "scheme",
    [{}, {"bits": 4, "mode": "affine"}, {"bits": 2, "calibration": "absolute-mean"}, {"bits": 4, "level": 2}],
    ids=str,
)
@pytest.mark.parametrize("backend", ["numpy", "python", "wasm"])
def test_the_gradient_of_a_weight_is_that_of_its_quantized_form(backend: str, scheme: dict[str, Any]) -> None:
    layer = nn.Linear(4, 3, backend=backend)
    weight = layer.weight.val()
    layer.quantize_weights(**scheme, fake=True)
    layer.train()
    x = emberlet.asarray(arrays()[0], backend="autodiff:" + backend).require_grad()
    y = layer(x)
    seed = np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape)
    grads = y.backward(emberlet.asarray(seed, backend=backend))
    found = [np.asarray(t.grad(grads)) for t in (layer.weight.real.val(), x)]
    want = [arrays()[0].T @ seed, seed @ np.asarray(fake_quantize(weight, WeightScheme(**scheme))).T]
    for ours, theirs in zip(found, want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_training_with_quantized_weights_finds_better_ones_than_quantizing_afterwards() -> None:
    def loss(model: Any) -> float:
        x, y = (emberlet.asarray(a, backend="numpy") for a in arrays())
        return float(((model(x) - y) ** 2).mean())

    plain = Net()
    trained(plain, 300)
    afterwards = plain.valid()
    afterwards.quantize_weights(bits=2)
    aware = plain.clone()
    aware.quantize_weights(bits=2, fake=True)
    trained(aware, 300)
    packed = Net()
    packed.quantize_weights(bits=2)
    packed.load_record(aware.valid().to_record())
    assert loss(packed) < 0.7 * loss(afterwards)
    np.testing.assert_allclose(loss(packed), loss(aware.valid()), rtol=1e-4)


def test_straight_through_is_the_function_with_the_identitys_gradient() -> None:
    rounded = autodiff.straight_through(lambda x: x.round())
    x = emberlet.asarray([0.4, 1.6, -2.5], backend="autodiff:numpy").require_grad()
    y = rounded(x * 2.0)
    assert y.tolist() == [1.0, 3.0, -5.0]
    assert x.grad((y * y).sum().backward()).tolist() == [4.0, 12.0, -20.0]
    assert rounded(emberlet.asarray([0.4], backend="numpy")).tolist() == [0.0]


def test_straight_through_refuses_another_shape() -> None:
    x = emberlet.asarray([1.0, 2.0], backend="autodiff:numpy").require_grad()
    with pytest.raises(ShapeError, match="straight_through"):
        autodiff.straight_through(lambda x: x.sum())(x)
