"""The guide of the Burn book: a network for digits, from the model to the inference.

    python main.py [--mnist FOLDER] [--backend wgpu] [--out FOLDER] [--check]

--mnist: the folder of MNIST's own files. --check: fails unless the validation reaches the accuracy that is stated here.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from data import digits
from emberlet.optim import AdamConfig
from inference import infer
from model import ModelConfig
from training import TrainingConfig, train

EXPECTED = 80.0  # percent of the validation's digits


def main(words=None):
    parser = argparse.ArgumentParser(description="Train a network for digits.")
    parser.add_argument("--mnist", metavar="FOLDER", help="the folder with MNIST's own files")
    parser.add_argument("--backend", default="numpy", help="where the model computes (default: numpy)")
    parser.add_argument("--out", default="guide-run", metavar="FOLDER", help="where the training is saved")
    parser.add_argument("--check", action="store_true", help=f"fail unless {EXPECTED:g} percent are right")
    options = parser.parse_args(words)
    train_data, valid_data = digits(options.mnist)
    config = TrainingConfig(ModelConfig(10, 512), AdamConfig())
    if options.mnist is None:  # so few digits want more steps and a higher rate
        config = TrainingConfig(
            ModelConfig(10, 64, dropout=0.1), AdamConfig(), num_epochs=6, batch_size=32, learning_rate=2e-3
        )
    learner = train(options.out, config, train_data, valid_data, options.backend)
    infer(options.out, valid_data[5], options.backend)
    reached = max(learner.history.of("valid", "Accuracy").values())
    if options.check and reached < EXPECTED:
        print(f"only {reached:.1f} percent of the digits are right, expected {EXPECTED:g}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
