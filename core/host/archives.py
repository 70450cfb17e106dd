"""Weights of a model whose module was imported from an archive: a zipapp, or a program that cx_Freeze made."""

from __future__ import annotations

import os
import sys
from typing import Any

from ..burnpack import Burnpack


def weights(loader: Any, path: str) -> Burnpack:
    """The burnpack at `path` in the archive that `loader` reads; else the file of that name beside the frozen program,
    or beside the archive. Raises OSError, FormatError."""
    try:
        return Burnpack.from_bytes(loader.get_data(path), path)
    except OSError:
        beside = sys.executable if getattr(sys, "frozen", False) else loader.archive
        return Burnpack.from_file(os.path.join(os.path.dirname(beside), os.path.basename(path)))
