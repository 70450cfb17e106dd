"""What a training leaves in its folder: a file for each metric and epoch, a log for people, events as JSON lines."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...host.extras import MissingLibraryError
from .events import Events, Step

if TYPE_CHECKING:
    from .learner import Learner

LOG = logging.getLogger("emberlet.train")
_EPOCH = re.compile(r"epoch-(\d+)")


def file_name(metric: str) -> str:
    """The name of a metric as that of a file."""
    return re.sub(r'[/\\:*?"<>|\x00-\x1f]', "_", metric).lstrip(".") or "metric"


class FileLogger(Events):
    """Writes train/epoch-N/NAME.log and valid/epoch-N/NAME.log below a folder: a line for each step, "value,items" for
    numbers, as Burn does."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)
        self._files: dict[str, IO[str]] = {}
        self._where = self._directory

    def begin(self, learner: Learner, epoch: int) -> None:
        for split in ("train", "valid"):  # later epochs are of a training that went on differently
            folder = self._directory / split
            for name in os.listdir(folder) if folder.is_dir() else ():
                match = _EPOCH.fullmatch(name)
                if match and int(match[1]) >= epoch:
                    shutil.rmtree(folder / name)

    def epoch(self, split: str, epoch: int) -> None:
        self.close()
        self._where = self._directory / split / f"epoch-{epoch}"
        self._where.mkdir(parents=True, exist_ok=True)

    def step(self, step: Step) -> None:
        for entry in step.entries:
            file = self._files.get(entry.name)
            if file is None:
                path = self._where / f"{file_name(entry.name)}.log"
                file = self._files[entry.name] = open(path, "w", encoding="utf-8")
            file.write(f"{entry.serialize}\n")

    def epoch_end(self, split: str, epoch: int, values: dict[str, float], seconds: float, items: int) -> None:
        self.close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()


class EventLog(Events):
    """Appends to events.jsonl, and writes experiment.log through the logger "emberlet.train" of `logging`."""

    def __init__(self, directory: str | os.PathLike[str], application_log: bool = True) -> None:
        self._directory = Path(directory)
        self._log: logging.Handler | None = None
        self._wants_log = application_log
        self._level = LOG.level

    def _write(self, event: str, **more: Any) -> None:
        line = json.dumps({"event": event, "time": round(time.time(), 3), **more})
        with open(self._directory / "events.jsonl", "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def begin(self, learner: Learner, epoch: int) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        if self._wants_log:
            self._log = logging.FileHandler(self._directory / "experiment.log", encoding="utf-8", delay=True)
            self._log.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
            LOG.addHandler(self._log)
            self._level = LOG.level
            LOG.setLevel(min(LOG.level or logging.INFO, logging.INFO))
        facts = learner.facts()
        self._write("begin", epoch=epoch, **facts)
        about = f"{facts['model']}, {facts['optimizer']} on {facts['backend']}"
        LOG.info("training begins with epoch %d of %d: %s", epoch, learner.num_epochs, about)

    def epoch(self, split: str, epoch: int) -> None:
        self._write("epoch", split=split, epoch=epoch)

    def epoch_end(self, split: str, epoch: int, values: dict[str, float], seconds: float, items: int) -> None:
        self._write("epoch_end", split=split, epoch=epoch, values=values, seconds=round(seconds, 3), items=items)
        told = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
        LOG.info("epoch %d, %s: %s (%d items in %.1f s)", epoch, split, told or "done", items, seconds)

    def checkpoint(self, epoch: int, deleted: list[int]) -> None:
        self._write("checkpoint", epoch=epoch, deleted=deleted)
        LOG.info("checkpoint of epoch %d written%s", epoch, f"; deleted: {deleted}" if deleted else "")

    def end(self, reason: str | None, summary: Any) -> None:
        self._write("end", reason=reason)
        LOG.info("training ended%s", f": {reason}" if reason else "")

    def close(self) -> None:
        if self._log is not None:
            LOG.removeHandler(self._log)
            LOG.setLevel(self._level)
            self._log.close()
            self._log = None


class TensorBoardLogger(Events):
    """Writes event files for TensorBoard, with tensorboardX or PyTorch's writer.

    directory: where, such as the folder "tensorboard" in the training's. Raises MissingLibraryError if neither library
    is installed.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise MissingLibraryError(
                    "event files for TensorBoard need tensorboardX: pip install tensorboardX"
                ) from None
        self._writer = SummaryWriter(os.fspath(directory))
        self._steps = 0

    def begin(self, learner: Learner, epoch: int) -> None:
        self._steps = getattr(learner.schedule, "iteration", 0)  # of a training that goes on, more than none

    def step(self, step: Step) -> None:
        if step.split == "train":
            for name, value in step.values.items():
                self._writer.add_scalar(f"{name}/train_step", value, self._steps)
            self._steps += 1

    def epoch_end(self, split: str, epoch: int, values: dict[str, float], seconds: float, items: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"{name}/{split}", value, epoch)

    def close(self) -> None:
        self._writer.close()
