"""An encoder, an LSTM and a U-Net train as in PyTorch, from the same weights (fixtures/torch_networks.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import optim
from emberlet.module import Module
from emberlet.optim import GradientsParams

from .networks import DATA, FEW, HEADS, LAYERS, RATE, STEPS, start

ANSWERS = dict(np.load(Path(__file__).parent / "fixtures" / "torch_networks.npz"))


def encoder(p: Any, x: Any) -> Any:
    batch, length, width = x.shape
    for i in range(LAYERS):
        w = {k.partition(".")[2]: v for k, v in p.items() if k.startswith(f"{i}.")}
        heads = (F.layer_norm(x, w["norm1"]) @ w["qkv"]).reshape((batch, length, 3, HEADS, width // HEADS))
        q, k, v = (heads[:, :, j].permute_dims((0, 2, 1, 3)) for j in range(3))
        seen = F.attention(q, k, v, is_causal=True)
        x = x + seen.permute_dims((0, 2, 1, 3)).reshape(x.shape) @ w["out"]
        x = x + F.gelu(F.layer_norm(x, w["norm2"]) @ w["up"] + w["bias"]) @ w["down"]
    return x.mean(1) @ p["head"]


def lstm(p: Any, x: Any) -> Any:
    def turned(v: Any) -> Any:  # PyTorch's gates i f g o, in ONNX's order
        return F.concat([v[8 * g : 8 * g + 8] for g in (0, 3, 1, 2)])[None]

    biases = F.concat([turned(p["bw"]), turned(p["br"])], axis=1)
    return F.lstm(x, turned(p["w"]), turned(p["r"]), biases)[1][0] @ p["head"]


def unet(p: Any, x: Any) -> Any:
    first = F.silu(F.group_norm(F.conv(x, p["down1"], padding=1), 2, p["norm"]))
    second = F.silu(F.conv(F.max_pool(first, 2), p["down2"], padding=1))
    up = F.conv_transpose(second, p["up"], stride=2)
    return F.conv(F.concat([first, up], axis=1), p["last"], padding=1)


NETWORKS = {"encoder": encoder, "lstm": lstm, "unet": unet}


class Net(Module):
    def __init__(self, weights: Any, backend: str) -> None:
        self.weights = {k: emberlet.Param(emberlet.asarray(v, backend=backend)) for k, v in weights.items()}


def losses(name: str, backend: str, steps: int) -> list[float]:
    weights, x, y = start(name)
    model = Net(weights, backend).train()
    x, y = (emberlet.asarray(v, backend="autodiff:" + backend) for v in (x, y))
    optimizer = optim.AdamConfig(epsilon=1e-8).init()
    found = []
    for _ in range(steps):
        out = NETWORKS[name]({k: p.val() for k, p in model.weights.items()}, x)
        loss = ((out - y) ** 2).mean() if name == "unet" else F.cross_entropy(out, y)
        found.append(float(loss))
        model = optimizer.step(RATE, model, GradientsParams.from_grads(loss.backward(), model))
    return found


MOST = min(STEPS, 40)  # what is wrong in a step is seen in the next
BACKENDS = [("numpy", MOST), ("python", FEW), ("wasm", MOST),
            pytest.param("wgpu", max(FEW, 5), marks=pytest.mark.needs("gpu-driver"))]  # fmt: skip


@pytest.mark.parametrize(("backend", "steps"), BACKENDS)
@pytest.mark.parametrize("name", DATA)
def test_the_losses_are_pytorchs(name: str, backend: str, steps: int) -> None:
    np.testing.assert_allclose(losses(name, backend, steps), ANSWERS[name][:steps], rtol=1e-4, atol=1e-4)


def test_steps_of_training_share_their_modules_on_wasm(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.wasm import engine

    made = []
    compiled = engine.compiled
    monkeypatch.setattr(engine, "compiled", lambda source: made.append(len(source)) or compiled(source))
    losses("lstm", "wasm", 6)
    assert len(made) <= 3  # the forward pass, and the first and the later steps of the optimizer
