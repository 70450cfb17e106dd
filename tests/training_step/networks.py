"""Small models to train, on any backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.module import Module
from emberlet.optim import GradientsParams

from ..optim import test_digits
from ..optim import test_networks as networks
from ..optim.networks import RATE, start


class Dense(Module):
    """Two dense layers, with dropout, noise or batch norm between."""

    def __init__(self, between: Any = None, backend: Any = "numpy") -> None:
        self.first = nn.Linear(3, 6, backend=backend)
        self.between = between
        self.last = nn.Linear(6, 2, backend=backend)

    def forward(self, x: Any) -> Any:
        x = self.first(x).tanh()
        return self.last(x if self.between is None else self.between(x))


def dense(between: Any = None, backend: Any = "numpy") -> Dense:
    """The same one each time."""
    emberlet.manual_seed(4)
    model = Dense(between, backend)
    for p in model.params():
        p.val()
    return model


def batch(rows: int = 8, seed: int = 0) -> tuple[Any, Any]:
    r = np.random.RandomState(seed)
    return r.randn(rows, 3).astype(np.float32), r.randn(rows, 2).astype(np.float32)


def squares(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


def eager_step(model: Any, optimizer: Any, rate: float, *items: Any, loss: Callable[..., Any] = squares) -> float:
    """A step without a plan."""
    backend = model.params()[0].backend
    out = loss(model, *[emberlet.asarray(x, backend=backend) for x in items])
    optimizer.step(rate, model, GradientsParams.from_grads(out.backward(), model))
    return float(out)


def values(model: Any) -> dict[str, Any]:
    """All parameters as arrays."""
    return {name: np.asarray(p.val().inner()).copy() for name, p in model.named_params()}


def digits(backend: Any) -> tuple[Any, Any, Any, Callable[[int], tuple[Any, Any]]]:
    """(model, loss, optimizer, the batch of a step) as in optim/test_digits.py."""
    model, optimizer, batch = test_digits.start(backend)
    return model, lambda m, x, y: F.cross_entropy(m(x), y), optimizer, batch


def network(name: str, backend: Any) -> tuple[Any, Any, Any, Callable[[int], tuple[Any, Any]]]:
    """The same of a network of optim/networks.py."""
    weights, x, y = start(name)

    def loss(model: Any, x: Any, y: Any) -> Any:
        out = networks.NETWORKS[name]({k: p.val() for k, p in model.weights.items()}, x)
        return ((out - y) ** 2).mean() if name == "unet" else F.cross_entropy(out, y)

    optimizer = optim.AdamConfig(epsilon=1e-8).init()
    return networks.Net(weights, backend), loss, optimizer, lambda _: (x, y)


def curve(name: str) -> tuple[float, Any]:
    """(the rate, the losses that PyTorch has)."""
    return (test_digits.RATE, test_digits.ANSWERS["losses"]) if name == "digits" else (RATE, networks.ANSWERS[name])
