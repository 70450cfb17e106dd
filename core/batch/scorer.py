"""A worker of `emberlet score`: predicts for a table of rows, and isolates the rows that fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import BackendError, EmberletError, FormatError
from . import columns as cols
from .pieces import MOST_ROWS, rows_at_once
from .predictor import Predictor
from .rows import FILE, PLACE, ROW

Bad = tuple[str, int, str]
"""The file, the row in it, and what is wrong."""

NOT_ROW_ERRORS = (BackendError, MemoryError, AssertionError)
"""Errors that no row causes."""


def one_line(error: Exception) -> str:
    """An error as one line."""
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        said = str(error) if isinstance(error, EmberletError | OSError) else f"{type(error).__name__}: {error}"
    return (said.splitlines() or [type(error).__name__])[0]


class Scorer:
    """predictor: the model. keep: columns to write beside the results. system: the file system of paths in columns.
    skip: pass failing rows to `report` and continue. batch_size: rows that are decoded and predicted together.
    pictures: whether each row is a file of its own."""

    def __init__(
        self,
        predictor: Predictor,
        keep: Sequence[str],
        system: Any,
        skip: bool,
        report: Callable[[int, list[Bad]], None],
        batch_size: int | None = None,
        pictures: bool = False,
    ) -> None:
        self._predictor, self._keep, self._system = predictor, tuple(keep), system
        self._skip, self._report, self._batch_size, self._pictures = skip, report, batch_size, pictures

    def __call__(self, table: pa.Table) -> pa.Table:
        """The results of all rows except skipped ones. Raises FormatError, which names the row's file."""
        found, start = [], 0
        while start < len(table):
            piece = table.slice(start, self._rows(table.slice(start)))
            bad: list[Bad] = []
            found += list(self._piece(piece, bad))
            self._report(len(piece) - len(bad), bad)
            start += len(piece)
        return pa.concat_tables(found) if found else pa.table({name: table.column(name) for name in PLACE}).slice(0, 0)

    def _rows(self, table: pa.Table) -> int:
        """How many rows are read from files and predicted together: as many as the model computes at once."""
        if self._batch_size:
            return self._batch_size
        first = self._columns(table.slice(0, 1), decode=False)
        arrays = [x for x in first.values() if isinstance(x, np.ndarray) and x.dtype.kind != "O"]
        if len(arrays) < len(first):
            return self._decoded()
        return rows_at_once(arrays) if arrays else MOST_ROWS

    def _decoded(self) -> int:
        """How many pictures are decoded and predicted together."""
        sizes = [i.shape[1:] for i in self._predictor.opened.inputs if i.shape and len(i.shape) == 4]
        known = [np.broadcast_to(np.float32(0), (1, *(d if isinstance(d, int) else 224 for d in s))) for s in sizes]
        return rows_at_once(known) if known else 16

    def _piece(self, piece: pa.Table, bad: list[Bad]) -> Iterator[pa.Table]:
        """The results of some rows; if they fail, of each half in turn."""
        try:
            yield self._predicted(piece)
        except NOT_ROW_ERRORS:
            raise
        except Exception as error:  # errors of the file, the user's function or the model
            place = piece.select(list(PLACE)).slice(0, 1).to_pylist()[0]
            said = one_line(error).removeprefix(f"{place[FILE]}: ")
            if len(piece) > 1:
                half, before = len(piece) // 2, len(bad)
                yield from self._piece(piece.slice(0, half), bad)
                yield from self._piece(piece.slice(half), bad)
                if not self._skip and len(bad) == before:  # rows that fail only together
                    raise FormatError(f"{place[FILE]}, {len(piece)} rows from row {place[ROW]} on: {said}") from None
            elif self._skip:
                bad.append((place[FILE], place[ROW], said))
            else:
                row = "" if self._pictures else f" row {place[ROW]}"
                raise FormatError(f"{place[FILE]}{row}: {said}") from None

    def _predicted(self, piece: pa.Table) -> pa.Table:
        found = self._predictor.results(self._columns(piece, decode=True))
        kept = {name: piece.column(name) for name in (*PLACE, *self._keep)}
        clash = [name for name in found if name in kept]
        if clash:
            raise EmberletError(
                f"the output {clash[0]!r} has the name of another column; rename it: --output OUTPUT=NAME"
            )
        return cols.table({**kept, **found})

    def _columns(self, piece: pa.Table, decode: bool) -> cols.Columns:
        found = cols.of_batch(piece.drop_columns(list(PLACE)))
        if not decode:
            return found
        for i in self._predictor.opened.inputs:
            for name in self._predictor.columns_of(i, list(found)):
                column = found[name]
                if cols.is_picture(column, i) and isinstance(column[0], str):
                    files = piece.column(FILE).to_pylist()
                    found[name] = [self._read(path, file) for path, file in zip(column, files, strict=True)]
        return found

    def _read(self, path: str, beside: str) -> bytes:
        """The bytes of the file at a path: absolute, or relative to the file that names it."""
        if not os.path.isabs(path) and "://" not in path and path != beside:
            path = os.path.join(os.path.dirname(beside), path)
        from pyarrow.fs import FileType, LocalFileSystem

        from .files import system_of

        system, inner = system_of(path) if "://" in path else (self._system, path)
        if "://" not in path and not os.path.isabs(inner):
            inner = system_of(path)[1]
        if isinstance(system, LocalFileSystem) and system.get_file_info(inner).type == FileType.Unknown:
            raise FormatError(f"{path} is neither a file nor a folder")  # a pipe would be waited for
        with system.open_input_stream(inner) as opened:
            data: bytes = opened.read()
        return data
