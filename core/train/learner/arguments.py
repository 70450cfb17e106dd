"""What a Learner takes: refusals that name what is wrong before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...errors import ArgumentError
from .events import Events
from .strategies import EarlyStopping, Keep, KeepBest


def folder(path: Path) -> Path:
    """The path. Raises ArgumentError if it, or one above it, is a file."""
    found = next((p for p in (path, *path.parents) if p.exists()), path)
    if found.exists() and not found.is_dir():
        raise ArgumentError(f"directory is a folder, and {found} is a file: give another path")
    return path


def measures(name: str, metrics: Sequence[Any]) -> list[Any]:
    """The metrics, whose names differ. Raises ArgumentError."""
    if not isinstance(metrics, Iterable) or isinstance(metrics, str):
        raise ArgumentError(f"{name} is a list of metrics, such as [LossMetric()], found {metrics!r}")
    found, names = list(metrics), []
    for metric in found:
        if isinstance(metric, type):
            raise ArgumentError(f"{name} holds the class {metric.__name__}: make a metric, {metric.__name__}()")
        if not callable(getattr(metric, "update", None)) or not callable(getattr(metric, "clear", None)):
            raise ArgumentError(f"{name} holds {metric!r}, which is no metric: see emberlet.train.metric")
        if metric.name in names:
            raise ArgumentError(f"{name} holds two metrics named {metric.name!r}: set the `name` of one of them")
        names.append(metric.name)
    return found


def optimizer(given: Any) -> Any:
    """The optimizer. Raises ArgumentError for what has no step, such as its config."""
    if not callable(getattr(given, "step", None)):
        made = f"{type(given).__name__}(…).init()" if hasattr(given, "init") else "one such as AdamConfig().init()"
        raise ArgumentError(f"an optimizer has step(lr, model, grads), found {type(given).__name__}: give {made}")
    return given


def backends(devices: Sequence[Any] | None) -> list[Any]:
    """The devices, or one that stands for the model's own. Raises ArgumentError for a name alone."""
    if isinstance(devices, str):
        raise ArgumentError(f"devices is a list of backends, such as [{devices!r}], found {devices!r}")
    return list(devices) if devices else [None]


def all_of(name: str, kind: type, given: Any) -> list[Any]:
    """One object of a class, or several, as a list. Raises ArgumentError for anything else."""
    found = [given] if isinstance(given, kind) or not isinstance(given, (list, tuple)) else list(given)
    for one in found:
        if not isinstance(one, kind):
            raise ArgumentError(f"{name} takes objects that derive from {kind.__name__}, found {one!r}")
    return found


def check_strategies(given: Keep | Sequence[Keep], metrics: dict[str, list[Any]]) -> None:
    """Raises ArgumentError for the best by a metric that is not measured."""
    found = all_of("checkpoints", Keep, given)
    for best in found:
        if isinstance(best, KeepBest):
            _measured(best, metrics)


def stopping(given: Any, metrics: dict[str, list[Any]]) -> list[EarlyStopping]:
    """The EarlyStoppings. Raises ArgumentError for one by a metric that is not measured."""
    found = all_of("early_stopping", EarlyStopping, given or ())
    for one in found:
        _measured(one, metrics)
    return found


def loggers(given: Sequence[Events] | None) -> list[Events] | None:
    """The loggers. Raises ArgumentError for other objects."""
    return None if given is None else all_of("loggers", Events, given)


def _measured(one: KeepBest | EarlyStopping, metrics: dict[str, list[Any]]) -> None:
    names = [metric.name for metric in metrics[one.split] if hasattr(metric, "value")]
    if one.metric not in names:
        raise ArgumentError(
            f"{type(one).__name__} looks at the metric {one.metric!r} of {one.split!r}, which is not measured there; "
            f"measured are {', '.join(map(repr, names)) or 'none'}"
        )
