"""The data of the guide: digits, and the batcher that makes tensors of them."""

from pathlib import Path

import emberlet
import numpy as np
from emberlet.data import MnistDataset, split


def digits(folder=None):
    """(training, validation): MNIST's own files in a folder, or the 360 digits of this repository, three times as large
    and with a margin, so that they have the size of MNIST's."""
    if folder is not None:
        return MnistDataset.train(folder), MnistDataset.test(folder)
    with np.load(Path(__file__).parents[1] / "digits" / "heldout.npz") as file:
        images, labels = file["images"], file["labels"]
    large = np.pad(images.repeat(3, axis=1).repeat(3, axis=2) * 15, ((0, 0), (2, 2), (2, 2)))
    return split(MnistDataset(large.astype(np.uint8), labels), [0.8, 0.2], seed=1)


class MnistBatch:
    """images: float32 (batch, 28, 28). targets: (batch,)."""

    def __init__(self, images, targets):
        self.images = images
        self.targets = targets


class MnistBatcher:
    """Makes a batch of MnistItems, with a mean of 0 and a standard deviation of 1, as in PyTorch's example."""

    def batch(self, items):
        images = np.stack([item.image for item in items])
        targets = np.array([item.label for item in items])
        images = (images / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081)
        return MnistBatch(emberlet.asarray(images), emberlet.asarray(targets))
