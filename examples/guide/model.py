"""The model of the guide: two convolutions and two dense layers."""

from emberlet import nn
from emberlet.config import Config
from emberlet.module import Module
from emberlet.train import ClassificationOutput


class Model(Module):
    def __init__(self, num_classes, hidden_size, dropout, backend=None):
        self.conv1 = nn.Conv2d(1, 8, 3, backend=backend)
        self.conv2 = nn.Conv2d(8, 16, 3, backend=backend)
        self.pool = nn.AdaptiveAvgPool2d((8, 8))
        self.dropout = nn.Dropout(dropout)
        self.linear1 = nn.Linear(16 * 8 * 8, hidden_size, backend=backend)
        self.linear2 = nn.Linear(hidden_size, num_classes, backend=backend)
        self.activation = nn.Relu()

    def forward(self, images):
        """Images (batch, height, width) -> scores (batch, classes)."""
        batch, height, width = images.shape
        x = images.reshape((batch, 1, height, width))
        x = self.dropout(self.conv1(x))  # (batch, 8, _, _)
        x = self.dropout(self.conv2(x))  # (batch, 16, _, _)
        x = self.pool(self.activation(x))  # (batch, 16, 8, 8)
        x = x.reshape((batch, 16 * 8 * 8))
        x = self.activation(self.dropout(self.linear1(x)))
        return self.linear2(x)  # (batch, classes)

    def step(self, batch):
        """The output of a MnistBatch, with its loss: what the learner calls in training and in validation."""
        output = self.forward(batch.images)
        loss = nn.CrossEntropyLoss()(output, batch.targets)
        return ClassificationOutput(loss, output, batch.targets)


class ModelConfig(Config):
    num_classes: int
    hidden_size: int
    dropout: float = 0.5

    def init(self, backend=None):
        return Model(self.num_classes, self.hidden_size, self.dropout, backend)
