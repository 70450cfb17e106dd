"""The training of the guide: its configuration, the learner, and what it saves."""

import shutil
from pathlib import Path

from data import MnistBatcher
from emberlet import functional as F
from emberlet.config import Config
from emberlet.data import DataLoader
from emberlet.optim import AdamConfig
from emberlet.train import Learner
from emberlet.train.metric import AccuracyMetric, LossMetric
from model import ModelConfig


class TrainingConfig(Config):
    model: ModelConfig
    optimizer: AdamConfig
    num_epochs: int = 10
    batch_size: int = 64
    num_workers: int = 4
    seed: int = 42
    learning_rate: float = 1.0e-4


def create_artifact_dir(artifact_dir):
    """An empty folder, so that the summary is that of this training alone."""
    shutil.rmtree(artifact_dir, ignore_errors=True)
    Path(artifact_dir).mkdir(parents=True)


def train(artifact_dir, config, train_data, valid_data, backend=None, renderer="auto"):
    """Train, and save the configuration and the model; returns the Learner."""
    create_artifact_dir(artifact_dir)
    config.save(f"{artifact_dir}/config.json")
    F.manual_seed(config.seed)
    train_loader = DataLoader(
        train_data, MnistBatcher(), config.batch_size, shuffle=config.seed, workers=config.num_workers
    )
    valid_loader = DataLoader(valid_data, MnistBatcher(), config.batch_size, workers=config.num_workers)
    learner = Learner(
        artifact_dir,
        config.model.init(backend),
        config.optimizer.init(),
        config.learning_rate,
        num_epochs=config.num_epochs,
        metrics=[AccuracyMetric(), LossMetric()],
        renderer=renderer,
    )
    trained = learner.fit(train_loader, valid_loader)
    trained.save_file(f"{artifact_dir}/model")
    return learner
