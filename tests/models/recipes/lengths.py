"""Encoders of sequences of several lengths, which are an input, as in speech recognition."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from .recipe import Inputs, Recipe, export, export_traced, normal, seeded

WIDTH = 16


class Attention(nn.Module):
    """zeroed: as NeMo and ESPnet, hide keys with -10000, and set their weights to 0; otherwise hide them with -inf."""

    def __init__(self, zeroed: bool) -> None:
        super().__init__()
        self.zeroed = zeroed
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        query, key, value = (
            layer(x).view(x.shape[0], x.shape[1], 4, WIDTH // 4).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / (WIDTH // 4) ** 0.5
        hidden = padding[:, None, None, :]
        weights = scores.masked_fill(hidden, -10000.0 if self.zeroed else float("-inf")).softmax(-1)
        if self.zeroed:
            weights = weights.masked_fill(hidden, 0.0)
        return self.out((weights @ value).transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, zeroed: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        for norm in (self.norm1, self.norm2):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, std=0.2)
        self.attention = Attention(zeroed)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), padding)
        return x + self.down(nn.functional.silu(self.up(self.norm2(x))))


class SpeechEncoder(nn.Module):
    def __init__(self, zeroed: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(zeroed) for _ in range(3))
        self.head = nn.Linear(WIDTH, 12)

    def forward(self, frames: Tensor, lengths: Tensor) -> Tensor:
        padding = torch.arange(frames.shape[1], device=frames.device)[None, :] >= lengths[:, None]
        for layer in self.layers:
            frames = layer(frames, padding)
        return self.head(frames).log_softmax(-1)


def _inputs() -> Mapping[str, Inputs]:
    cases = (np.array([5]), np.array([7, 3]), np.array([2, 9, 4]))
    return {f"batch{len(n)}": {"frames": normal(1, len(n), n.max(), WIDTH), "lengths": n} for n in cases}


ARGUMENTS = (torch.zeros(2, 7, WIDTH), torch.tensor([7, 3]))

RECIPES = [
    Recipe(
        "speech_encoder",
        "pre-norm encoder of frames with their lengths; padding is hidden with -inf; dynamic batch and length",
        lambda: export(
            seeded(lambda: SpeechEncoder(False)), ARGUMENTS, inputs=["frames", "lengths"],
            outputs=["log_probabilities"], dynamic=[{0: "batch", 1: "length"}, {0: "batch"}],
        ),
        _inputs,
    ),
    Recipe(
        "speech_encoder_traced",
        "the same from the TorchScript exporter; padding is hidden with -10000 and zeros, as in NeMo",
        lambda: export_traced(
            seeded(lambda: SpeechEncoder(True)), ARGUMENTS, inputs=["frames", "lengths"], outputs=["log_probabilities"],
            dynamic={"frames": {0: "batch", 1: "length"}, "lengths": {0: "batch"}}, opset=17,
        ),
        _inputs,
    ),
]  # fmt: skip
