"""A target, its input and its answer."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tools import components

CLASSES = 10
CLASSIFY = Path(__file__).with_name("classify.py")


class TargetError(Exception):
    """A target was available and did not answer; the message holds its output."""


@dataclass(frozen=True)
class Kit:
    """The files and options that the demo gives to every target.

    Attributes:
        folder: Holds `digits.py` and `digits.bpk`.
        embedded: Holds `digits.py` with the weights inside.
        images: A file of images, 64 bytes each.
        count: How many of them to classify.
        scratch: For a target's own files.
        find_heap: Whether to find the smallest heap on MicroPython, in a dozen runs.
    """

    folder: Path
    embedded: Path
    images: Path
    count: int
    scratch: Path
    find_heap: bool = True

    def job(self, backend: str, *, embed: bool = False, **changes: Any) -> dict[str, Any]:
        """The job for `classify.py`."""
        folder = self.embedded if embed else self.folder
        job = {
            "path": [str(folder)],
            "module": "digits",
            "backend": backend,
            "weights": None if embed else str(folder / "digits.bpk"),
            "images": str(self.images),
            "count": self.count,
            "ships": ["emberlet", "digits"],
        }
        return {**job, **changes}

    def write(self, name: str, job: Mapping[str, Any]) -> Path:
        """Write the job to a file."""
        path = self.scratch / f"{name}.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        return path

    def of_one(self) -> Kit:
        """The same for one image: enough to see what fits."""
        return replace(self, count=1)


@dataclass(frozen=True)
class Answer:
    """A target's results for the images.

    Attributes:
        logits: (count, 10) float32.
        first: Milliseconds from importing the model to the first logits.
        steady: Median milliseconds of the images after it; None when there was one.
        memory: Bytes, or None if the platform does not report them.
        shipped: Bytes of the model, its weights and the files of emberlet that were loaded.
        python: The interpreter.
        adapter: The GPU, if one was used.
    """

    logits: np.ndarray
    first: float
    steady: float | None
    memory: int | None
    shipped: int
    python: str
    adapter: str | None

    @classmethod
    def from_json(cls, text: str, job: Mapping[str, Any]) -> Answer:
        """From the line that `classify.py` printed.

        Raises:
            TargetError: There is no such line.
        """
        lines = [line for line in text.splitlines() if line.startswith("{")]
        if not lines:
            raise TargetError(f"no answer, only: {text[-2000:]}")
        told = json.loads(lines[-1])
        weights = Path(job["weights"]).stat().st_size if job["weights"] else 0
        return cls(
            logits=np.frombuffer(bytes.fromhex(told["logits"]), dtype="<f4").reshape(-1, CLASSES),
            first=told["first"],
            steady=told["steady"],
            memory=told["memory"],
            shipped=told["shipped"]["bytes"] + weights,
            python=told["python"],
            adapter=told["adapter"],
        )


@dataclass(frozen=True)
class Target:
    """One way of running the model.

    Attributes:
        key: Its name for `--only`.
        name: Its name in the table.
        run: Classifies the images of a kit.
        needs: Components (tools/components.py) that it needs.
        modules: Python modules that it needs.
    """

    key: str
    name: str
    run: Callable[[Kit], Answer]
    needs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """What is missing and what to do about it; None if the target is available."""
        for module in self.modules:
            if importlib.util.find_spec(module) is None:
                return f"the Python package {module} is missing: `pip install {module}`"
        for name in self.needs:
            try:
                components.get(name).found()
            except components.Missing as missing:
                return str(missing)
        return None
