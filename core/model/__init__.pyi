"""Types of emberlet.model (written by emberlet.host.interface.module_stubs)."""
# fmt: off
# ruff: noqa

from os import PathLike
from typing import Any, Self

from ..backend import Backend
from ..module import Module

class Model(Module):
    """`M(backend)` has no weights yet, and makes random ones if it is run; `M.from_file`, `M.from_bytes`,
    `M.from_embedded` and `M.default` load them. Each takes a backend's name, a Backend, or None for the default."""
    @classmethod
    def from_file(cls, path: str | PathLike[str], backend: Backend | str | None = ..., zero_copy: bool = ...) -> Self:
        """The model with the weights of the burnpack at `path` (a path without extension is tried with `.bpk`).

        zero_copy: see Burnpack.from_file.

        Raises OSError, FormatError where it is no burnpack, LoadError where its tensors do not fit."""
    @classmethod
    def from_bytes(cls, data: Any, backend: Backend | str | None = ...) -> Self:
        """The model with the weights of a burnpack in memory, which stays in use. Raises FormatError, LoadError."""
    @classmethod
    def from_embedded(cls, backend: Backend | str | None = ...) -> Self:
        """The model with the weights that its own module carries. Raises LoadError where it carries none."""
    @classmethod
    def default(cls, backend: Backend | str | None = ...) -> Self:
        """The model with its own weights: those in its module, else the file WEIGHTS beside it."""
    WEIGHTS: str | None
    EMBEDDED: bytes | None
    INPUTS: tuple[tuple[str, str, tuple[int | str | None, ...] | None], ...] | None
    OUTPUTS: tuple[tuple[str, str, tuple[int | str | None, ...] | None], ...] | None
