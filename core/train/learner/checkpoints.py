"""Checkpoints of a training: model-N.bpk, optim-N.bpk and scheduler-N.json of each epoch N.

Each file replaces the old one at once, and scheduler-N.json is written last: a checkpoint without it was not finished.
It holds the schedule, the random numbers' state and the history of the metrics, so that a training which goes on from
there computes what it would have computed without a break.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...burnpack import Burnpack
from ...errors import FormatError, LoadError
from ...host.files import atomic_write
from .history import History
from .strategies import Composed, Keep

_NAME = re.compile(r"scheduler-(\d+)\.json")


class Checkpoints:
    """The checkpoints in a folder. strategy: which are kept, a Keep or several."""

    def __init__(self, folder: str | os.PathLike[str], strategy: Keep | Iterable[Keep]) -> None:
        self.folder = Path(folder)
        self.strategy = strategy if isinstance(strategy, Keep) else Composed(strategy)

    def paths(self, epoch: int) -> tuple[Path, Path, Path]:
        """The files of the model, the optimizer and the schedule."""
        return (
            self.folder / f"model-{epoch}.bpk",
            self.folder / f"optim-{epoch}.bpk",
            self.folder / f"scheduler-{epoch}.json",
        )

    def epochs(self) -> list[int]:
        """The epochs with a finished checkpoint, sorted."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(int(match[1]) for name in os.listdir(self.folder) if (match := _NAME.fullmatch(name)))
        return []

    def save(self, epoch: int, model: Any, optimizer: Any, state: dict[str, Any], history: History) -> list[int]:
        """Write the checkpoint of an epoch and delete those that the strategy does not keep; returns their epochs.
        Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        weights, moments, schedule = self.paths(epoch)
        self._forget(epoch)
        model.save_file(weights)
        optimizer.to_record().save(moments)
        with atomic_write(schedule) as file:
            file.write(json.dumps({**state, "epoch": epoch, "history": history.to_record()}, indent=1).encode() + b"\n")
        epochs = [e for e in self.epochs() if e <= epoch]
        gone = sorted(set(epochs) - self.strategy.keep(epochs, history) - {epoch})
        for old in gone:
            self.delete(old)
        return gone

    def load(self, epoch: int, model: Any, optimizer: Any) -> tuple[dict[str, Any], History]:
        """Load an epoch's weights, with the parameters' ids, and the optimizer's state; returns the rest.

        Raises LoadError if there is no such checkpoint, FormatError if its files are malformed.
        """
        weights, moments, schedule = self.paths(epoch)
        try:
            state = json.loads(schedule.read_text(encoding="utf-8"))
            history = History.from_record(state["history"])
        except FileNotFoundError:
            known = ", ".join(map(str, self.epochs())) or "none"
            raise LoadError(f"{self.folder} has no checkpoint of epoch {epoch}; there are: {known}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{schedule}: not the state of a training ({type(error).__name__}: {error})") from None
        model.load_file(weights)
        optimizer.load_record(Burnpack.from_file(str(moments)))
        return state, history

    def delete(self, epoch: int) -> None:
        """Delete the checkpoint of an epoch; what is missing already is no error."""
        self._forget(epoch)
        for path in self.paths(epoch):
            path.unlink(missing_ok=True)

    def delete_after(self, epoch: int) -> None:
        """Delete the checkpoints of later epochs: they belong to a training that went on differently."""
        for later in self.epochs():
            if later > epoch:
                self.delete(later)

    def _forget(self, epoch: int) -> None:
        """Make the checkpoint an unfinished one."""
        self.paths(epoch)[2].unlink(missing_ok=True)
