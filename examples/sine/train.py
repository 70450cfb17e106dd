"""Train the sine approximator and export it to ONNX: the smallest network worth putting on a microcontroller.

    pip install torch==2.13.0 onnx onnxscript onnxruntime
    python train.py

writes, next to this file,

    sine.onnx     three dense layers, 1 -> 16 -> 16 -> 1: `x` (batch, 1) float32 in 0..2π -> `y` (batch, 1) float32
    heldout.npz   `x` (128, 1) float32 not used for training, `y` (128, 1) float32 their sine

Every random choice is seeded, so that the same versions on the same kind of processor write the same files.
"""

import math
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _export import export

HERE = Path(__file__).parent
SEED = 8
STEPS = 6000


class Sine(nn.Module):
    """Two hidden layers of sixteen rectified units: a piecewise linear function, accurate to about 1 %."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(1, 16)
        self.fc2 = nn.Linear(16, 16)
        self.fc3 = nn.Linear(16, 1)
        # PyTorch expects inputs around zero: without this nearly every kink lies outside 0..2π and stays there.
        with torch.no_grad():
            self.fc1.bias.copy_(-self.fc1.weight[:, 0] * torch.linspace(0, 2 * math.pi, 16))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def train(x: Tensor) -> Sine:
    """Adam on the mean squared error, the learning rate falling to nothing along a cosine."""
    model = Sine()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    y = x.sin()
    for step in range(STEPS):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 1000 == 0:
            print(f"step {step + 1} of {STEPS}: mean squared error {loss.item():.2e}")
    return model.eval()


def main() -> None:
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)

    # 1024 evenly spaced points to learn from; the held-out ones are drawn at random between 0 and 2π.
    model = train(torch.linspace(0, 2 * math.pi, 1024).unsqueeze(1))
    held = np.random.default_rng(SEED).uniform(0, 2 * np.pi, (128, 1)).astype(np.float32)
    np.savez(HERE / "heldout.npz", x=held, y=np.sin(held))
    export(model, torch.zeros(2, 1), HERE / "sine.onnx", "x", "y", dynamic_batch=True)

    session = onnxruntime.InferenceSession(HERE / "sine.onnx", providers=["CPUExecutionProvider"])
    y = session.run(["y"], {"x": held})[0]
    print(f"held-out: largest error {np.abs(y - np.sin(held)).max():.4f}, by onnxruntime on sine.onnx")
    print(f"parameters: {sum(p.numel() for p in model.parameters())}, multiply-accumulates: {16 + 16 * 16 + 16}")
    print(f"sine.onnx: {(HERE / 'sine.onnx').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
