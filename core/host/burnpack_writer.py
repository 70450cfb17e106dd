"""Writing a burnpack (`.bpk`) on a desktop: atomically, one tensor after the other, so that a file of any size takes
the memory of its largest tensor. burnpack/writing.py computes the layout."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping

from ..burnpack.writing import Source, plan, write
from ..tensor import Tensor
from .files import atomic_write

Scalar = int | float | bool


def save(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor | Source],
    metadata: Mapping[str, str] | None = None,
    scalars: Mapping[str, Scalar] | None = None,
    param_ids: Mapping[str, int] | None = None,
) -> int:
    """Write a burnpack to `path`, atomically; a name without extension gets `.bpk`. Returns its size in bytes.

    tensors: name -> Tensor, or Source for one whose bytes come later. metadata: text -> text. scalars: name -> int,
    float or bool. param_ids: name -> 64-bit identity of a parameter, for Tensors that have one.
    Raises DTypeError for strings, FormatError past a limit of the format, OSError; the old file is then unchanged.
    """
    path = os.fspath(path)
    if not os.path.splitext(path)[1] and not os.path.isdir(path) and not path.endswith(("/", os.sep)):
        path += ".bpk"
    layout = plan(tensors, metadata, scalars, param_ids)
    with atomic_write(path) as file:
        return int(write(file, *layout))


def dumps(
    tensors: Mapping[str, Tensor | Source],
    metadata: Mapping[str, str] | None = None,
    scalars: Mapping[str, Scalar] | None = None,
    param_ids: Mapping[str, int] | None = None,
) -> bytes:
    """The bytes of the file that `save` would write."""
    file = io.BytesIO()
    write(file, *plan(tensors, metadata, scalars, param_ids))
    return file.getvalue()


__all__ = ["Source", "dumps", "save"]
