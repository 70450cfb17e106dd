"""Train the network of the accelerometer example and export it to ONNX, with samples for calibrating int8.

    pip install torch==2.13.0 onnx onnxscript
    python train.py

writes `accelerometer.onnx` and `calibration.npz` next to this file. Every random choice is seeded. Nobody needs PyTorch
to use the model: both files are committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from motions import KINDS, motion
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _export import export

HERE = Path(__file__).parent
STEPS, EACH, HELD = 64, 400, 100


class Network(nn.Module):
    """Two convolutions over time, then a GRU whose last state is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(3, 12, 5, stride=2, padding=2)
        self.second = nn.Conv1d(12, 16, 5, stride=2, padding=2)
        self.gru = nn.GRU(16, 20, batch_first=True)
        self.head = nn.Linear(20, len(KINDS))

    def forward(self, readings: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(readings.transpose(1, 2) / 100))
        x = torch.relu(self.second(x)).transpose(1, 2)
        _, state = self.gru(x)
        return self.head(state[0])


def main() -> None:
    torch.manual_seed(0)
    made = [(list(motion(KINDS[k], 5000 * k + n)), k, n) for k in range(len(KINDS)) for n in range(EACH)]
    x = torch.tensor([m[0] for m in made], dtype=torch.float32)
    y = torch.tensor([m[1] for m in made])
    held = torch.tensor([m[2] >= EACH - HELD for m in made])
    net = Network()
    steps = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=1e-2)
    generator = torch.Generator().manual_seed(0)
    kept, labels = x[~held], y[~held]
    for epoch in range(25):
        for batch in torch.randperm(len(kept), generator=generator).split(64):
            loss = nn.functional.cross_entropy(net(kept[batch]), labels[batch])
            steps.zero_grad()
            loss.backward()
            steps.step()
        with torch.no_grad():
            right = (net(x[held]).argmax(1) == y[held]).float().mean()
        print(f"epoch {epoch}: loss {loss:.4f}, held out {right:.2%}")
    print(sum(p.numel() for p in net.parameters()), "parameters")
    export(net, x[:1], HERE / "accelerometer.onnx", "readings", "kinds")
    np.savez_compressed(HERE / "calibration.npz", readings=kept[:: len(kept) // 40].numpy().astype(np.int16))


if __name__ == "__main__":
    main()
