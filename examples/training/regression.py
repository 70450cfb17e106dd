"""Regression: the progression of diabetes from ten measurements, out of a data frame of pandas.

    python regression.py [--check]

The frame is scikit-learn's data set. Both columns and targets are normalized with the training's statistics.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.data import DataframeDataset, DataLoader, MapperDataset, split
from emberlet.module import Module
from emberlet.train import Learner, RegressionOutput
from emberlet.train.metric import LossMetric, R2Metric
from sklearn.datasets import load_diabetes

EXPECTED = 0.4  # R² of the validation; a linear model reaches about 0.48


class Regression(Module):
    def __init__(self, backend=None):
        self.hidden = nn.Linear(10, 16, backend=backend)
        self.output = nn.Linear(16, 1, backend=backend)

    def step(self, batch):
        measured, targets = batch
        output = self.output(F.relu(self.hidden(measured)))
        return RegressionOutput(nn.MseLoss()(output, targets), output, targets)


def normalized(dataset, reference):
    """The rows as (measurements, target), with a mean of 0 and a deviation of 1 over those of the reference."""
    table = np.array([list(row.values()) for row in reference], np.float32)
    mean, deviation = table.mean(0), table.std(0)

    def prepare(row):
        values = (np.array(list(row.values()), np.float32) - mean) / deviation
        return values[:-1], values[-1:]

    return MapperDataset(dataset, prepare)


def main(words=None):
    parser = argparse.ArgumentParser(description="Train a regression on a data frame.")
    parser.add_argument("--check", action="store_true", help=f"fail unless R² reaches {EXPECTED}")
    options = parser.parse_args(words)
    F.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        train, valid = split(DataframeDataset(load_diabetes(as_frame=True).frame), [0.8, 0.2], seed=3)
        learner = Learner(
            Path(folder) / "run", Regression(), optim.AdamConfig(weight_decay=1e-3).init(), 0.01, num_epochs=15,
            metrics=[LossMetric(), R2Metric()],
        )  # fmt: skip
        learner.fit(
            DataLoader(normalized(train, train), batch_size=32, shuffle=1),
            DataLoader(normalized(valid, train), batch_size=64),
        )
    reached = max(learner.history.of("valid", R2Metric.name).values())
    print(f"R² {reached:.2f}")
    return int(options.check and reached < EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
