"""The images of examples/digits: 360 handwritten digits of 8 by 8 pixels, as batches for training and validation."""

from pathlib import Path

import emberlet
import numpy as np

FILE = Path(__file__).parent.parent / "digits" / "heldout.npz"
TRAINING = 270


def arrays():
    """Images (360, 1, 8, 8) float32 in [0, 1], and labels (360,) int64."""
    with np.load(FILE) as file:
        return (file["images"].astype(np.float32) / 16)[:, None], file["labels"].astype(np.int64)


def batches(backend, part, size=30, seed=0):
    """(images, labels) of `part`, "training" in random order or "validation", as tensors on `backend`."""
    images, labels = arrays()
    rows = np.arange(TRAINING) if part == "training" else np.arange(TRAINING, len(labels))
    if part == "training":
        rows = np.random.default_rng(seed).permutation(rows)
    for first in range(0, len(rows), size):
        chosen = rows[first : first + size]
        yield tuple(emberlet.asarray(a[chosen], backend=backend) for a in (images, labels))
