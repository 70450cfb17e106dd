"""What `bench train` trains: the shapes of four networks, their first weights and a batch of each, in NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np

LAYERS, HEADS, WIDTH, HIDDEN = 4, 4, 64, 128  # of the encoder
UNITS = 64  # of the LSTM
RATE = 1e-3  # Adam's, with PyTorch's other settings


def _digits() -> dict[str, tuple[int, ...]]:
    return {
        "conv1": (8, 1, 3, 3), "bias1": (8,), "conv2": (16, 8, 3, 3), "bias2": (16,),
        "fc1": (256, 32), "bias3": (32,), "fc2": (32, 10), "bias4": (10,),
    }  # fmt: skip


def _encoder() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for i in range(LAYERS):
        shapes |= {
            f"{i}.qkv": (WIDTH, 3 * WIDTH), f"{i}.out": (WIDTH, WIDTH), f"{i}.up": (WIDTH, HIDDEN),
            f"{i}.down": (HIDDEN, WIDTH), f"{i}.norm1": (WIDTH,), f"{i}.norm2": (WIDTH,), f"{i}.bias": (HIDDEN,),
        }  # fmt: skip
    return {**shapes, "head": (WIDTH, 10)}


def _lstm() -> dict[str, tuple[int, ...]]:
    """PyTorch's layout and gates, i f g o."""
    return {"w": (4 * UNITS, 28), "r": (4 * UNITS, UNITS), "bias": (4 * UNITS,), "head": (UNITS, 10)}


def _unet() -> dict[str, tuple[int, ...]]:
    return {
        "down1": (16, 1, 3, 3), "down2": (32, 16, 3, 3), "up": (32, 16, 2, 2), "last": (1, 32, 3, 3), "norm": (16,),
        "shift": (16,),
    }  # fmt: skip


# name -> (shapes of the weights, shape of the input, what it is)
NETWORKS: dict[str, tuple[dict[str, tuple[int, ...]], tuple[int, ...], str]] = {
    "digits": (_digits(), (32, 1, 8, 8), "the digits' CNN, batches of 32"),
    "encoder": (_encoder(), (16, 32, WIDTH), "4 layers of a transformer of width 64, 16 sequences of 32"),
    "lstm": (_lstm(), (28, 32, 28), "an LSTM of 64 units, 32 sequences of 28 steps"),
    "unet": (_unet(), (4, 1, 32, 32), "a U-Net of two levels, 4 images of 32 by 32"),
}


def start(name: str) -> tuple[dict[str, Any], Any, Any]:
    """(weights, input, classes or the wanted images)."""
    shapes, shape, _ = NETWORKS[name]
    draw = np.random.RandomState(7)
    weights = {}
    for key, of in shapes.items():
        if len(of) == 1:
            weights[key] = (np.ones if "norm" in key else np.zeros)(of, np.float32)
        else:
            inside = np.prod(of[1:]) if len(of) == 4 or (name == "lstm" and key != "head") else of[0]
            weights[key] = (draw.randn(*of) * inside**-0.5).astype(np.float32)
    x = draw.randn(*shape).astype(np.float32)
    if name == "unet":
        return weights, x, np.tanh(x * 2).astype(np.float32)
    return weights, x, draw.randint(0, 10, shape[1] if name == "lstm" else shape[0]).astype(np.int64)
