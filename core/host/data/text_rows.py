"""Rows of CSV files and of lines of JSON, in memory."""

from __future__ import annotations

import csv
import json
import os
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import ArgumentError, FormatError
from .. import listing

COLUMNS = 1 << 14
LINE = 8 << 20  # characters of a line
_INT = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)  # what int64 holds


class Columns:
    """A data set of dicts from columns: name -> a sequence."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = dict(columns)

    def __len__(self) -> int:
        return min((len(c) for c in self.columns.values()), default=0)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {name: column[i] for name, column in self.columns.items()}


def _lines(path: str, encoding: str) -> Iterator[str]:
    """The lines of a text, with their ends. Raises FormatError, OSError."""
    count = 0
    try:
        with open(path, encoding=encoding, newline="") as file:
            while line := file.readline(LINE + 1):
                count += 1
                if len(line) > LINE:
                    raise FormatError(f"{path}: line {count} has more than {LINE} characters")
                yield line.removeprefix("\ufeff") if count == 1 else line
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not text in {encoding}, after line {count}: {error.reason}") from None


def csv_columns(
    path: str | os.PathLike[str], delimiter: str, types: Mapping[str, Any] | None, header: bool, encoding: str
) -> Columns:
    """InMemDataset.from_csv."""
    where = os.fspath(path)
    if len(delimiter) != 1:
        raise ArgumentError(f"the delimiter of a CSV file is one character, found {delimiter!r}")
    names, cells = _cells(where, delimiter, header, encoding)
    lacking = [name for name in types or () if name not in names]
    if lacking:
        raise ArgumentError(f"{where} has no column {lacking[0]!r}; it has {listing.names(names)}")
    kinds = types or {}
    return Columns({n: _typed(c, kinds.get(n), f"{where}: column {n!r}") for n, c in zip(names, cells, strict=True)})


def _cells(where: str, delimiter: str, header: bool, encoding: str) -> tuple[list[str], list[list[str]]]:
    """The names and the texts of the columns."""
    reader = csv.reader(_lines(where, encoding), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    cells: list[list[str]] = []
    try:
        for row in reader:
            line = f"{where}: line {reader.line_num}"
            if not row:
                continue  # an empty line
            if names is None:
                if len(row) > COLUMNS:
                    raise FormatError(f"{line} has {len(row)} columns; at most {COLUMNS} are read")
                names = row if header else [str(i) for i in range(len(row))]
                if len(set(names)) < len(names):
                    twice = next(n for i, n in enumerate(names) if n in names[:i])
                    raise FormatError(f"{where}: two columns are called {twice!r}; rename one, or pass header=False")
                cells = [[] for _ in names]
                if header:
                    continue
            if len(row) != len(cells):
                raise FormatError(f"{line} has {len(row)} cells where there are {len(cells)} columns")
            for column, cell in zip(cells, row, strict=True):
                column.append(cell)
    except csv.Error as error:
        raise FormatError(f"{where}: line {reader.line_num}: {error}") from None
    if names is None:
        raise FormatError(f"{where}: the file is empty")
    return names, cells


def _typed(cells: list[str], kind: Any, where: str) -> Sequence[Any]:
    if kind is None:
        kind = next((k for k in (int, float) if all(_fits(c, k) for c in cells if c) and any(cells)), str)
    if kind not in (int, float, str):
        raise ArgumentError(f"{where}: a type is int, float or str, found {kind!r}")
    if kind is str:
        return [c or None for c in cells]
    wrong = next((i for i, c in enumerate(cells) if c and not _fits(c, kind)), None)
    if wrong is not None:
        raise FormatError(f"{where}, row {wrong}: {cells[wrong][:40]!r} is no {kind.__name__}")
    if all(cells):
        return array("d" if kind is float else "q", map(kind, cells))
    return [kind(c) if c else None for c in cells]


def _fits(cell: str, kind: Any) -> bool:
    if kind is int:
        return _INT.fullmatch(cell) is not None
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # which Python takes


def json_rows(path: str | os.PathLike[str]) -> list[Any]:
    """InMemDataset.from_json_rows."""
    where = os.fspath(path)
    found = []
    for number, line in enumerate(_lines(where, "utf-8"), 1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise FormatError(f"{where}: line {number} is not JSON: {error or 'nested too deeply'}") from None
    return found
