"""Train the network of the wake word example and export it to ONNX, with samples for calibrating int8.

    pip install torch==2.13.0 onnx onnxscript
    python train.py

writes `wake_word.onnx` and `calibration.npz` next to this file. Every random choice is seeded. Nobody needs PyTorch to
use the model: both files are committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from emberlet.micro.builder.audio import log_mel
from sounds import KINDS, RATE, sound
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _export import export

HERE = Path(__file__).parent
FRAMES, BANDS, HOP = 61, 32, 256
EACH, HELD = 260, 60


class Network(nn.Module):
    """One convolution, then depthwise and pointwise ones, as is usual for wake words: 11,556 parameters."""

    def __init__(self) -> None:
        super().__init__()

        def pair(n: int, m: int, stride: int) -> list[nn.Module]:
            deep = nn.Conv2d(n, n, 3, stride, 1, groups=n, bias=False)
            wide = nn.Conv2d(n, m, 1, bias=False)
            return [deep, nn.BatchNorm2d(n), nn.ReLU(), wide, nn.BatchNorm2d(m), nn.ReLU()]

        first = [nn.Conv2d(1, 24, (9, 5), (2, 2), (4, 2), bias=False), nn.BatchNorm2d(24), nn.ReLU()]
        self.layers = nn.Sequential(*first, *pair(24, 48, 2), *pair(48, 64, 2), *pair(64, 64, 1))
        self.head = nn.Linear(64, len(KINDS))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        x = self.layers((features - 8) / 4)
        return torch.softmax(self.head(x.mean((2, 3))), 1)


def examples(kind: int, seed: int) -> np.ndarray:
    """One second of a sound, its end somewhere in it or after it: (frames, bands)."""
    samples = np.concatenate([np.array(block) for block in sound(KINDS[kind], seed)])
    loud = np.abs(samples) > 1.5 * np.abs(samples[: RATE // 100]).max() if kind else np.zeros(1, bool)
    last = int(np.flatnonzero(loud)[-1]) if loud.any() else RATE + seed % 9000
    end = min(len(samples), max(RATE, last + 400 + (seed * 37) % 3000))
    return log_mel(samples[end - RATE : end], RATE, 512, HOP, BANDS)[:FRAMES]


def main() -> None:
    torch.manual_seed(0)
    made = [(examples(k, 1000 * k + n), k, n) for k in range(len(KINDS)) for n in range(EACH)]
    x = torch.tensor(np.stack([m[0] for m in made]))[:, None]
    y = torch.tensor([m[1] for m in made])
    held = torch.tensor([m[2] >= EACH - HELD for m in made])
    net = Network()
    steps = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=1e-2)
    generator = torch.Generator().manual_seed(0)
    kept, labels = x[~held], y[~held]
    for epoch in range(30):
        net.train()
        for batch in torch.randperm(len(kept), generator=generator).split(64):
            shifted = torch.roll(kept[batch], int(torch.randint(-3, 4, (1,), generator=generator)), 2)
            loss = nn.functional.nll_loss(torch.log(net(shifted) + 1e-6), labels[batch])
            steps.zero_grad()
            loss.backward()
            steps.step()
        net.eval()
        with torch.no_grad():
            right = (net(x[held]).argmax(1) == y[held]).float().mean()
        print(f"epoch {epoch}: loss {loss:.4f}, held out {right:.2%}")
    print(sum(p.numel() for p in net.parameters()), "parameters")
    export(net, x[:1], HERE / "wake_word.onnx", "features", "kinds")
    some = np.round(kept[:: len(kept) // 16].numpy() * 8) / 8
    np.savez_compressed(HERE / "calibration.npz", features=some.astype(np.float16))


if __name__ == "__main__":
    main()
