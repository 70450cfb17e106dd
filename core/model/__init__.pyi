"""Types of emberlet.model (written by emberlet.host.interface.module_stubs)."""
# fmt: off
# ruff: noqa

from os import PathLike
from typing import Any, Self

from ..backend import Backend
from ..module import Module

class Model(Module):
    """`M(backend)` has no weights yet, and initializes random ones when it is run; `M.from_file`, `M.from_bytes`,
    `M.from_embedded` and `M.default` load them. Each takes a backend's name, a Backend, or None for the default."""
    @classmethod
    def from_file(cls, path: str | PathLike[str], backend: Backend | str | None = ..., zero_copy: bool = ...) -> Self:
        """The model with the weights of the burnpack at `path` (`.bpk` is tried if the path has no extension).

        zero_copy: see Burnpack.from_file. Raises OSError, FormatError if it is not a burnpack, LoadError if its tensors
        do not match."""
    @classmethod
    def from_bytes(cls, data: Any, backend: Backend | str | None = ...) -> Self:
        """The model with the weights of a burnpack in memory, which must stay unchanged. Raises FormatError,
        LoadError."""
    @classmethod
    def from_embedded(cls, backend: Backend | str | None = ...) -> Self:
        """The model with the weights embedded in its module. Raises LoadError if there are none."""
    @classmethod
    def default(cls, backend: Backend | str | None = ...) -> Self:
        """The model with its own weights: those embedded in its module, else the file WEIGHTS beside it."""
    WEIGHTS: str | None
    EMBEDDED: bytes | None
    INPUTS: tuple[tuple[str, str, tuple[int | str | None, ...] | None], ...] | None
    OUTPUTS: tuple[tuple[str, str, tuple[int | str | None, ...] | None], ...] | None
