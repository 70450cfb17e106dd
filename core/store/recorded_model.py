"""The base of generated models whose weights are a file of one of Burn's recorders."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Self

from .. import model
from ..backend import Backend
from ..errors import refuse
from .opening import open


class Model(model.Model):
    """As emberlet.model.Model, with weights in any format that `store.open` reads. WEIGHTS: the name of the file beside
    the module."""

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], backend: Backend | str | None = None, zero_copy: bool = False
    ) -> Self:
        """The model with the weights of a file. Raises OSError, FormatError, LoadError if they do not match."""
        return cls._loaded(open(path, zero_copy=zero_copy), backend)

    @classmethod
    def from_bytes(cls, data: bytes, backend: Backend | str | None = None) -> Self:
        """The model with the weights of a file in memory. Raises FormatError, LoadError."""
        return cls._loaded(open(data, format="record"), backend)

    @classmethod
    def default(cls, backend: Backend | str | None = None) -> Self:
        """The model with the weights beside its module. Raises OSError, FormatError, LoadError."""
        name: str | None = cls.WEIGHTS
        if name is None:
            refuse("no weights", cls.__name__)
            raise AssertionError
        home = next(kind for kind in cls.__mro__ if "WEIGHTS" in vars(kind))
        beside = getattr(sys.modules.get(home.__module__), "__file__", None) or ""
        return cls.from_file(Path(beside).with_name(name) if beside else name, backend)

    @classmethod
    def _loaded(cls, weights: Any, backend: Backend | str | None) -> Self:
        kind: Any = cls
        made: Self = kind(backend)
        made.load_from(weights)
        return made
