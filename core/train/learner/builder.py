"""LearnerBuilder: Burn's way to configure a Learner, for code that is carried over from the book."""

from __future__ import annotations

import os
from typing import Any

from .events import Events
from .learner import DEFAULT, Learner
from .strategies import EarlyStopping, Keep


class LearnerBuilder:
    """Each method returns the builder; `build(model, optimizer, lr)` gives a Learner in the folder `directory`. As in
    Burn, checkpoints are written only after `with_file_checkpointer`."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = directory
        self._train: list[Any] = []
        self._valid: list[Any] = []
        self._options: dict[str, Any] = {"checkpoints": None, "summary": False}

    def _with(self, **options: Any) -> LearnerBuilder:
        self._options.update(options)
        return self

    def metric_train(self, metric: Any) -> LearnerBuilder:
        """Measure this in training."""
        self._train.append(metric)
        return self

    def metric_valid(self, metric: Any) -> LearnerBuilder:
        """Measure this in validation."""
        self._valid.append(metric)
        return self

    # Every metric that is a number is plotted.
    metric_train_numeric = metric_train
    metric_valid_numeric = metric_valid

    def metric_loggers(self, *loggers: Events) -> LearnerBuilder:
        """These instead of a file for each metric and epoch."""
        return self._with(loggers=list(loggers))

    def renderer(self, renderer: Any) -> LearnerBuilder:
        """What a person sees; see Learner."""
        return self._with(renderer=renderer)

    def grads_accumulation(self, count: int) -> LearnerBuilder:
        """The optimizer's step after this many steps, with the mean of their gradients."""
        return self._with(grads_accumulation=count)

    def with_file_checkpointer(self, recorder: Any = None) -> LearnerBuilder:
        """Write checkpoints. They are burnpacks, whatever recorder is named."""
        return self._with(checkpoints=self._options["checkpoints"] or DEFAULT)

    def with_checkpointing_strategy(self, strategy: Keep | list[Keep]) -> LearnerBuilder:
        """Which checkpoints are kept."""
        return self._with(checkpoints=strategy)

    def num_epochs(self, count: int) -> LearnerBuilder:
        """Train for this many epochs."""
        return self._with(num_epochs=count)

    def devices(self, devices: list[Any]) -> LearnerBuilder:
        """Backends that each take a batch of every step."""
        return self._with(devices=devices)

    def checkpoint(self, epoch: int) -> LearnerBuilder:
        """Go on after this epoch."""
        return self._with(checkpoint=epoch)

    def early_stopping(self, strategy: EarlyStopping) -> LearnerBuilder:
        """End where a metric no longer becomes better."""
        return self._with(early_stopping=strategy)

    def with_application_logger(self, wanted: Any = True) -> LearnerBuilder:
        """Whether to write experiment.log."""
        return self._with(application_log=bool(wanted))

    def summary(self) -> LearnerBuilder:
        """Print a summary at the end."""
        return self._with(summary=True)

    def build(self, model: Any, optimizer: Any, lr: Any) -> Learner:
        """The Learner. lr: a number, a schedule or its config."""
        return Learner(
            self._directory, model, optimizer, lr, metrics_train=self._train, metrics_valid=self._valid, **self._options
        )
