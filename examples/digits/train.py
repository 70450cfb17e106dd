"""Train the digit recognizer and export it to ONNX.

    pip install torch==2.13.0 onnx onnxscript onnxruntime scikit-learn
    python train.py

writes, next to this file,

    digits.onnx   the network: `image` (batch, 1, 8, 8) float32 -> `logits` (batch, 10) float32
    heldout.npz   a fifth of the images, not used for training: `images` (360, 8, 8) uint8 in 0..16, `labels` (360,)
    uint8

Nobody needs PyTorch to use the model: both files are committed. Every random choice is seeded, so that the same
versions on the same kind of processor write the same files.
"""

import copy
import math
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _export import export

HERE = Path(__file__).parent
SEED = 8
EPOCHS = 150
BATCH = 64
HELD_OUT = 360
LEVELS = 16.0
"""The data set counts the dark pixels of a 4×4 block: 0..16. The network wants them divided by 16."""


class Digits(nn.Module):
    """Two convolutions at full resolution, one pooling, two dense layers. The caller applies softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(16 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = F.relu(self.conv1(image))
        x = self.pool(F.relu(self.conv2(x)))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images (n, 8, 8) uint8 and labels (n,) uint8, to train on and held out; stratified by label."""
    digits = load_digits()
    images, labels = digits.images.astype(np.uint8), digits.target.astype(np.uint8)
    train_x, held_x, train_y, held_y = train_test_split(
        images, labels, test_size=HELD_OUT, stratify=labels, random_state=SEED
    )
    return train_x, train_y, held_x, held_y


def to_input(images: np.ndarray) -> Tensor:
    """(n, 8, 8) counts 0..16 -> (n, 1, 8, 8) float32 in 0..1."""
    return torch.from_numpy(images.astype(np.float32) / LEVELS).unsqueeze(1)


def jitter(images: Tensor) -> Tensor:
    """Turn each image by up to 12°, scale it by up to 12 % and shift it by up to 0.8 pixels."""
    n = images.shape[0]
    angle = (torch.rand(n) * 2 - 1) * math.radians(12)
    scale = 1 + (torch.rand(n, 2) * 2 - 1) * 0.12
    shift = (torch.rand(n, 2) * 2 - 1) * (0.8 / 4)
    cos, sin = angle.cos(), angle.sin()
    affine = torch.stack(
        [
            torch.stack([cos * scale[:, 0], -sin * scale[:, 1], shift[:, 0]], dim=1),
            torch.stack([sin * scale[:, 0], cos * scale[:, 1], shift[:, 1]], dim=1),
        ],
        dim=1,
    )
    grid = F.affine_grid(affine, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def train(images: Tensor, labels: Tensor) -> Digits:
    """Train by Adam with one cosine cycle; returns the running average of the weights, which generalizes better."""
    model = Digits()
    average = copy.deepcopy(model)
    steps = EPOCHS * math.ceil(len(images) / BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
    for epoch in range(EPOCHS):
        total = 0.0
        for index in torch.randperm(len(images)).split(BATCH):
            loss = F.cross_entropy(model(jitter(images[index])), labels[index], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(index)
            with torch.no_grad():
                for mean, now in zip(average.parameters(), model.parameters(), strict=True):
                    mean.lerp_(now, 0.01)
        if (epoch + 1) % 25 == 0:
            print(f"epoch {epoch + 1:4} of {EPOCHS}: loss {total / len(images):.4f}")
    return average.eval()


def multiply_accumulates(model: nn.Module) -> int:
    """Multiplications in the convolutions and dense layers for one image."""
    count = 0

    def add(layer: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal count
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        count += output.numel() * layer.weight[0].numel()

    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(add) for layer in layers]
    model(torch.zeros(1, 1, 8, 8))
    for hook in hooks:
        hook.remove()
    return count


def main() -> None:
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)

    train_x, train_y, held_x, held_y = load()
    np.savez(HERE / "heldout.npz", images=held_x, labels=held_y)
    model = train(to_input(train_x), torch.from_numpy(train_y.astype(np.int64)))
    export(model, torch.zeros(2, 1, 8, 8), HERE / "digits.onnx", "image", "logits", dynamic_batch=True)

    session = onnxruntime.InferenceSession(HERE / "digits.onnx", providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {"image": to_input(held_x).numpy()})[0]
    right = int((logits.argmax(1) == held_y).sum())
    apart = float(np.abs(logits - model(to_input(held_x)).detach().numpy()).max())
    print(f"held-out: {right} of {len(held_y)} right ({right / len(held_y):.2%}), by onnxruntime on digits.onnx")
    print(f"largest difference of a logit between onnxruntime and PyTorch: {apart:.1e}")
    print(f"parameters: {sum(p.numel() for p in model.parameters()):,}")
    print(f"multiply-accumulates an image: {multiply_accumulates(model):,}")
    print(f"digits.onnx: {(HERE / 'digits.onnx').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
