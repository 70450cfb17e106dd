"""Small classes with states, for tests of sessions."""

from __future__ import annotations

from typing import Any

import emberlet
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.model import Model
from emberlet.session import Session

PYTHON = get_backend("python")


def tensor(values: Any, backend: Any = PYTHON) -> Any:
    """A float32 tensor."""
    return emberlet.asarray(values, dtype="float32", device=backend)


class Here(Model):
    backend = PYTHON


class Joins(Here):
    """A growing state, a replaced one, and outputs before, between and after them."""

    INPUTS: Any = (
        ("x", "float32", ("new", 2)), ("past", "float32", ("past", 2)), ("count", "int64", ("b",)),
        ("y", "float32", None),
    )  # fmt: skip
    OUTPUTS: Any = (("a", "float32", None), ("now", "float32", None), ("count_out", "int64", None))
    STATE: Any = (("past", "now", "append", 0), ("count", "count_out", "replace"))

    def forward(self, x: Any, past: Any, count: Any, y: Any) -> Any:
        return y, F.concat([past, x], axis=0), count + 1


class Free(Here):
    """The same without INPUTS."""

    STATE: Any = ((2, 0, "append", 1), (0, 2, "replace"))

    def forward(self, count: Any, x: Any, past: Any, y: Any = 0) -> Any:
        return F.concat([past, x], axis=1), y, count + 1


def session(**options: Any) -> Session:
    """A session of Joins."""
    made: Session = Joins().session(**{"dims": {"b": 1}, **options})
    return made


ROW = tensor([[1.0, 2.0]])


def of(forward: Any, state: Any, **initial: Any) -> Session:
    """A session of a class with this forward and STATE; s0: the first value of input 0."""
    made = type("Made", (Here,), {"forward": lambda self, *args: forward(*args), "STATE": state})()
    found: Session = made.session(initial={int(k[1:]): v for k, v in initial.items()})
    return found
