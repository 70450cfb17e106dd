"""Learner: trains a model on batches, epoch by epoch, and can go on where an earlier run ended."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from types import GenericAlias
from typing import Any

from ...backend import get_backend
from ...data import Dataset
from ...errors import ArgumentError
from ...functional.randomness import draws
from ...optim.rates import finite
from ...optim.schedules import ConstantLr
from . import arguments
from .batches import inside, moved, rows
from .checkpoints import Checkpoints
from .epochs import Epoch, batches_of
from .events import All, Events
from .history import History
from .interrupting import Interrupter
from .loggers import EventLog, FileLogger
from .renderers import renderer as renderer_of
from .stepping import Group, steps
from .strategies import Composed, EarlyStopping, Keep, KeepBest, KeepLast
from .summary import Summary

DEFAULT = Composed([KeepLast(2), KeepBest()])


class Learner:
    """Trains `model` with `optimizer`; everything it writes goes into the folder `directory`.

    model: a Module with `step(batch)`, which returns an output with a loss or a TrainOutput; `valid_step(batch)`, if it
    has one, is called in validation. lr: a number, a schedule or its config. metrics: for training and validation;
    metrics_train, metrics_valid: for one of them, instead. grads_accumulation: the number of steps whose gradients are
    averaged before the optimizer's step. devices: backends that each take a batch of every step; their gradients are
    averaged. checkpoints: which are kept, a strategy or several; None: none is written. checkpoint: go on after
    this epoch; resume: go on after the last epoch that has a checkpoint, if there is one. early_stopping: an
    EarlyStopping, or several. renderer: "auto", "dashboard", "plain", "notebook", an Events, or None. loggers: Events
    instead of the files of the metrics. compile: whether steps are compiled where they can be.

    Raises ArgumentError for values that these do not take.
    """

    __class_getitem__: Any = classmethod(GenericAlias)  # Learner[Model, Adam], as Burn's has type parameters

    def __init__(
        self,
        directory: str | os.PathLike[str],
        model: Any,
        optimizer: Any,
        lr: Any,
        *,
        num_epochs: int = 1,
        metrics: Sequence[Any] = (),
        metrics_train: Sequence[Any] | None = None,
        metrics_valid: Sequence[Any] | None = None,
        grads_accumulation: int = 1,
        devices: Sequence[Any] | None = None,
        checkpoints: Keep | Sequence[Keep] | None = DEFAULT,
        checkpoint: int | None = None,
        resume: bool = False,
        early_stopping: EarlyStopping | Sequence[EarlyStopping] | None = (),
        renderer: Any = "auto",
        loggers: Sequence[Events] | None = None,
        interrupter: Interrupter | None = None,
        application_log: bool = True,
        summary: bool = True,
        compile: bool = True,
        group: Group | None = None,
    ) -> None:
        if not callable(getattr(model, "step", None)):
            raise ArgumentError(f"{type(model).__name__} has no step(batch), which a Learner calls")
        self.directory = arguments.folder(Path(directory))
        self.model = model
        self.optimizer = arguments.optimizer(optimizer)
        self.schedule = _schedule(lr)
        self.num_epochs = _count("num_epochs", num_epochs)
        self.metrics = {
            "train": arguments.measures("metrics", metrics if metrics_train is None else metrics_train),
            "valid": arguments.measures("metrics", metrics if metrics_valid is None else metrics_valid),
        }
        self.grads_accumulation = _count("grads_accumulation", grads_accumulation)
        self.devices = arguments.backends(devices)
        if checkpoints is not None and checkpoints is not DEFAULT:
            arguments.check_strategies(checkpoints, self.metrics)
        self.checkpoints = None if checkpoints is None else Checkpoints(self.directory / "checkpoint", checkpoints)
        self.checkpoint = None if checkpoint is None else _count("checkpoint", checkpoint)
        self.resume = resume
        self.early_stopping = arguments.stopping(early_stopping, self.metrics)
        self.renderer, self.loggers, self.application_log = renderer, arguments.loggers(loggers), application_log
        (self.interrupter,) = arguments.all_of("interrupter", Interrupter, interrupter or Interrupter())
        self.show_summary = summary
        self.compile = compile
        self.group = group
        self.history = History()
        self.rate_factor = 1.0
        self.reason: str | None = None

    # -- what a program asks for -------------------------------------------------------------------------------------

    def fit(self, train: Iterable[Any], valid: Iterable[Any] | None = None) -> Any:
        """Train on the batches of `train`, validate on those of `valid`; returns the trained model, on the inner
        backend. `reason` says why it ended before the last epoch, or is None.

        Ctrl-C and SIGTERM end it after the step, a second one at once. Raises whatever steps and batches raise.
        """
        if isinstance(train, Dataset) or isinstance(valid, Dataset):
            raise ArgumentError("fit takes batches, found a data set: give DataLoader(data, batch_size=32, shuffle=1)")
        if valid is None and any(stop.split == "valid" for stop in self.early_stopping):
            raise ArgumentError("early stopping looks at the validation: give fit(train, valid), or split='train'")
        first = self._begin()
        main = self.group is None or self.group.rank == 0
        events = All(self._events() if main else [])
        stepping = steps(self.model, self.optimizer, self.devices, self.grads_accumulation, self.group, self.compile)
        try:
            with self.interrupter.signals():
                events.begin(self, first)
                for epoch in range(first, self.num_epochs + 1):
                    self.reason = self._agreed(self._stopped())
                    if self.reason is not None:
                        break
                    self._train(epoch, train, stepping, events)
                    if valid is not None and self.interrupter.stopped is None and main:
                        self._validate(epoch, valid, events)
                    if self.interrupter.stopped is None:
                        self._save(epoch, events, main)
                self.reason = self.reason or self.interrupter.stopped
                events.end(self.reason, Summary(self))
        finally:
            stepping.close()
            events.close()
        return self.model.valid()

    def facts(self) -> dict[str, Any]:
        """What the logs say about this training."""
        return {
            "model": type(self.model).__name__,
            "parameters": self.model.num_params(),
            "optimizer": type(getattr(self.optimizer, "config", self.optimizer)).__name__.removesuffix("Config"),
            "backend": ", ".join(repr(getattr(b, "inner", b)) for b in self._backends()),
            "num_epochs": self.num_epochs,
            "directions": {
                metric.name: "highest" if metric.higher_is_better else "lowest"
                for split in ("train", "valid")
                for metric in self.metrics[split]
                if getattr(metric, "higher_is_better", None) is not None
            },
        }

    def lower_rate(self, factor: float = 0.5) -> None:
        """Multiply the learning rate with `factor` from the next step on; checkpoints keep it. Raises ArgumentError for
        one that is negative or not finite."""
        self.rate_factor *= finite("factor", factor)

    def check_folder(self) -> None:
        """Raise ArgumentError if the folder holds a training, and neither `resume` nor `checkpoint` says to go on."""
        kept = self.checkpoints.epochs() if self.checkpoints is not None else []
        if kept and self.checkpoint is None and not self.resume:
            raise ArgumentError(
                f"{self.directory} holds a training with checkpoints of the epochs {kept}: go on with resume=True, or "
                f"give another folder"
            )

    # -- the parts of a training -------------------------------------------------------------------------------------

    def _backends(self) -> list[Any]:
        return [self.model.backends()[0] if d is None else d for d in self.devices]

    def _begin(self) -> int:
        """Load a checkpoint if one is asked for; returns the first epoch."""
        kept = self.checkpoints
        done = self.checkpoint
        if self.group is None:
            self.check_folder()
        if done is None and kept is not None and kept.epochs():
            done = kept.epochs()[-1]
        self.directory.mkdir(parents=True, exist_ok=True)
        self.devices = [None if device is None else get_backend(device) for device in self.devices]
        backend = self.devices[0]
        if backend is not None:
            self.model.to(getattr(backend, "inner", backend))
        if done:
            kept = kept or Checkpoints(self.directory / "checkpoint", DEFAULT)
            self.model = self.model.valid()
            state, self.history = kept.load(done, self.model, self.optimizer)
            self.schedule.load_record(state["schedule"])
            self.rate_factor = state["rate_factor"]
            with draws._lock:
                draws._state[:] = state["random"]
            if self.group is None or self.group.rank == 0:
                kept.delete_after(done)
        self.model = self.model.train()
        for param in self.model.params():
            param.val()  # lazy ones draw in the order of the model, not of its first step
        self.devices = [d if d is not None else self.model.backends()[0] for d in self.devices]
        if self.group is not None and not done:
            self._take_weights(self.group)
        return (done or 0) + 1

    def _take_weights(self, group: Group) -> None:
        """Begin with the weights of rank 0."""
        params = self.model.params()
        shared = group.share([param.val().to_data() for param in params])
        for param, data in zip(params, shared, strict=True):
            param.set(data.to_tensor(param.backend))

    def _agreed(self, reason: str | None) -> str | None:
        """In a group: rank 0's reason to end, and its random numbers, from which each rank draws others."""
        if self.group is None:
            return reason
        draws._taken(0)  # chooses the key of the random numbers, if nobody drew any
        reason, (key, counter) = self.group.share((reason, list(draws._state)))
        with draws._lock:
            draws._state[:] = [(key + self.group.rank) & 0xFFFFFFFFFFFFFFFF, counter]
        return reason

    def _events(self) -> list[Events]:
        found: list[Events] = [EventLog(self.directory, self.application_log)]
        found += [FileLogger(self.directory)] if self.loggers is None else self.loggers
        chosen = renderer_of(self.renderer)
        return found + ([chosen] if chosen is not None else [])

    def _stopped(self) -> str | None:
        if self.interrupter.stopped is not None:
            return self.interrupter.stopped
        return next((r for s in self.early_stopping if (r := s.reason(self.history)) is not None), None)

    def _train(self, epoch: int, train: Iterable[Any], stepping: Any, events: Events) -> None:
        run = Epoch(self, "train", epoch, train, events)
        lr = 0.0
        for batches in self._batches(train, epoch, stepping.width):
            lr = self.schedule.step() * self.rate_factor
            run.steps += 1
            for done in stepping.step(batches, lr):
                run.add(done.item, done.items, lr)
            run.told(lr)
            if self.interrupter.stopped is not None:
                break
        if not run.steps:
            empty = isinstance(train, Sized) and not len(train)
            why = "there are none" if empty else "give a list or a DataLoader, which every epoch can iterate"
            raise ArgumentError(f"no batches in epoch {epoch}: {why}")
        stepping.flush(lr)
        run.end()

    def _validate(self, epoch: int, valid: Iterable[Any], events: Events) -> None:
        run = Epoch(self, "valid", epoch, valid, events)
        model = self.model.valid()
        step = getattr(model, "valid_step", model.step)
        backend = model.backends()[0]
        for batch in batches_of(valid, epoch):
            run.steps += 1
            run.add(inside(step(moved(batch, backend))), rows(batch), None)
            run.told(None)
            if self.interrupter.stopped is not None:
                break
        run.end()

    def _batches(self, train: Iterable[Any], epoch: int, width: int) -> Iterator[list[Any]]:
        """The batches of each step: one for each device of this process; none where other processes got the last."""
        rank, size = (self.group.rank, self.group.size) if self.group is not None else (0, 1)
        source = iter(batches_of(train, epoch))
        while taken := list(islice(source, width * size)):
            yield taken[rank * width : (rank + 1) * width]

    def _save(self, epoch: int, events: Events, main: bool) -> None:
        if self.checkpoints is None or not main:
            return
        draws._taken(0)  # chooses the key of the random numbers, if nobody drew any
        state = {
            "schedule": self.schedule.to_record(),
            "random": list(draws._state),
            "rate_factor": self.rate_factor,
        }
        events.checkpoint(epoch, self.checkpoints.save(epoch, self.model, self.optimizer, state, self.history))


def _schedule(lr: Any) -> Any:
    found = lr.init() if not hasattr(lr, "step") and hasattr(lr, "init") else lr
    if isinstance(found, Real):
        return ConstantLr(float(found))
    if not hasattr(found, "step"):
        raise ArgumentError(f"lr is a number, a schedule or its config, found {lr!r}")
    return found


def _count(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or value < 1:
        raise ArgumentError(f"{name} is an integer of at least 1, found {value!r}")
    return int(value)
