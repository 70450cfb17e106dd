"""Several optimizers and rates for the parts of one model, in a loop of one's own, on handwritten digits.

python several_optimizers.py [--check] [--backend NAME] [--epochs N]
"""

import argparse
import sys
import tempfile
from pathlib import Path

import emberlet
from digits_data import batches
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.config import Config
from emberlet.module import Module
from emberlet.optim import GradientsParams
from emberlet.train.metric import accuracy

EXPECTED = 80.0  # percent of the validation's digits


class TrainingConfig(Config):
    """What a run depends on; saved with it."""

    optimizer: optim.AdamConfig
    num_epochs: int = 15
    batch_size: int = 30
    seed: int = 42
    lr: float = 3e-3


class Digits(Module):
    def __init__(self, backend):
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, backend=backend)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, backend=backend)
        self.dropout = nn.Dropout(0.2)
        self.fc1 = nn.Linear(256, 32, backend=backend)
        self.fc2 = nn.Linear(32, 10, backend=backend)

    def forward(self, images):
        x = F.relu(self.conv2(F.relu(self.conv1(images))))
        x = self.dropout(F.max_pool(x, 2).flatten(1))
        return self.fc2(F.relu(self.fc1(x)))


def run(config, name):
    """Train as the config says; returns (the model, the percentage of the validation images that it gets right)."""
    emberlet.manual_seed(config.seed)
    backend = emberlet.autodiff(name)
    model = Digits(name).train()
    # Two optimizers: one for the convolutions, another with a rate of its own for the rest.
    optimizer, other = config.optimizer.init(), optim.SgdConfig(momentum=optim.MomentumConfig(0.9, 0.0)).init()
    right = 0.0
    for epoch in range(config.num_epochs):
        for images, labels in batches(backend, "training", config.batch_size, seed=epoch):
            loss = F.cross_entropy(model(images), labels)
            grads = loss.backward()
            # Each takes its part out of the gradients.
            convolutions = [GradientsParams.from_module(grads, m) for m in (model.conv1, model.conv2)]
            rest = GradientsParams.from_grads(grads, model)
            for part in convolutions:
                model = optimizer.step(config.lr, model, part)
            model = other.step(10 * config.lr, model, rest)
        inside = model.valid()
        scores = [accuracy(inside(images), labels) for images, labels in batches(name, "validation")]
        right = sum(scores) / len(scores)
        print(f"epoch {epoch + 1}: loss {float(loss):.3f}, validation accuracy {right:.1f} %")
    return model, right


def main(name, epochs, check):
    config = TrainingConfig(optim.AdamConfig(epsilon=1e-8), num_epochs=epochs)
    model, right = run(config, name)
    with tempfile.TemporaryDirectory() as folder:
        config.save(Path(folder) / "config.json")
        model.valid().save_file(Path(folder) / "digits.bpk")
        # The way back: the config says what to make, the file what it learned.
        again = TrainingConfig.load(Path(folder) / "config.json")
        loaded = Digits(name)
        loaded.load_file(Path(folder) / "digits.bpk")
        images, _ = next(batches(name, "validation"))
        assert again.optimizer.epsilon == 1e-8
        assert loaded(images).tolist() == model.valid()(images).tolist()
    return int(check and right < EXPECTED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--check", action="store_true", help=f"fail unless {EXPECTED:g} percent are right")
    options = parser.parse_args()
    sys.exit(main(options.backend, options.epochs, options.check))
