"""What a step gives. Metrics take what they need from its attributes (Adaptor)."""

from __future__ import annotations

from typing import Any

from ...errors import EmberletError
from ...optim.gradients import GradientsParams
from ..metric import Adaptor


class TrainOutput:
    """The result of a training step that computes its gradients itself.

    model: the model; grads: what `loss.backward()` gave, or GradientsParams; item: the output, for the metrics.
    """

    def __init__(self, model: Any, grads: Any, item: Any) -> None:
        self.grads = grads if isinstance(grads, GradientsParams) else GradientsParams.from_grads(grads, model)
        self.item = item


class ClassificationOutput(Adaptor):
    """loss: 0-D; output: (batch, classes), scores before the softmax; targets: (batch,), integers."""

    def __init__(self, loss: Any, output: Any, targets: Any) -> None:
        self.loss = loss
        self.output = output
        self.targets = targets


class RegressionOutput(Adaptor):
    """loss: 0-D; output, targets: (batch, values)."""

    def __init__(self, loss: Any, output: Any, targets: Any) -> None:
        self.loss = loss
        self.output = output
        self.targets = targets


class TrainStep:
    """What a Learner trains: a Module with this method. The class need not be a base."""

    def step(self, batch: Any) -> Any:
        """The output of a batch, with a `loss`, from which the learner computes the gradients; or a TrainOutput."""
        raise EmberletError(
            f"{type(self).__name__} has no step(batch); write one that returns an output with a loss, such as "
            f"ClassificationOutput"
        )


class ValidStep:
    """A Module that does something else in validation. The class need not be a base."""

    def valid_step(self, batch: Any) -> Any:
        """The output of a batch, computed on the inner backend; `step` unless overridden."""
        return self.step(batch)  # type: ignore[attr-defined]
