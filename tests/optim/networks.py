"""The first weights and the data of three networks: an encoder of 4 layers, an LSTM and a U-Net (test_networks.py)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

STEPS, RATE = 100, 3e-3
# Where a step takes a second. EMBERLET_STEPS=100 compares the whole curves there, too.
FEW = int(os.environ.get("EMBERLET_STEPS", "2"))
LAYERS, HEADS, WIDTH = 4, 2, 16


def encoder() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for i in range(LAYERS):
        shapes.update({
            f"{i}.qkv": (WIDTH, 3 * WIDTH), f"{i}.out": (WIDTH, WIDTH),
            f"{i}.up": (WIDTH, 32), f"{i}.down": (32, WIDTH),
            f"{i}.norm1": (WIDTH,), f"{i}.norm2": (WIDTH,), f"{i}.bias": (32,),
        })  # fmt: skip
    return {**shapes, "head": (WIDTH, 3)}


def lstm() -> dict[str, tuple[int, ...]]:
    return {"w": (32, 5), "r": (32, 8), "bw": (32,), "br": (32,), "head": (8, 3)}


def unet() -> dict[str, tuple[int, ...]]:
    return {
        "down1": (4, 1, 3, 3), "down2": (8, 4, 3, 3), "up": (8, 4, 2, 2), "last": (1, 8, 3, 3), "norm": (4,),
    }  # fmt: skip


SHAPES = {"encoder": encoder, "lstm": lstm, "unet": unet}
DATA = {"encoder": (4, 6, WIDTH), "lstm": (7, 4, 5), "unet": (2, 1, 8, 8)}


def start(name: str) -> tuple[dict[str, Any], Any, Any]:
    """(weights, x, classes or the wanted image)."""
    r = np.random.RandomState(11)
    weights = {}
    for key, shape in SHAPES[name]().items():
        scale = (np.prod(shape[1:]) if len(shape) == 4 else shape[0]) ** -0.5
        weights[key] = (r.randn(*shape) * scale if "norm" not in key else np.ones(shape)).astype(np.float32)
    x = r.randn(*DATA[name]).astype(np.float32)
    return weights, x, (x**2 if name == "unet" else np.array([0, 2, 1, 0]))
