"""SqliteDataset: the rows of a table in an SQLite data base."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...data.base import Dataset
from ...errors import ArgumentError, FormatError
from .. import listing

VALUE = 64 << 20  # bytes of a text or blob, or the size of the file
STEPS = 1_000_000  # of SQLite's virtual machine for reading a row


class SqliteDataset(Dataset):
    """The rows of a table in an SQLite file as dicts, in the order of their rowids.

    Each thread and process has a connection of its own, which only reads. A table that somebody else may have made runs
    nothing: views, virtual tables and functions of its schema are refused or cut off.

    Raises FormatError for another kind of file, a view or a table without rowids; ArgumentError for a table that does
    not exist; FileNotFoundError.
    """

    def __init__(self, path: str | os.PathLike[str], table: str = "data") -> None:
        self.path, self.table = os.path.abspath(path), table
        self._local = threading.local()
        size = os.stat(self.path).st_size
        rows = self._all("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')", (), STEPS + size)
        kinds = {name: kind == "table" and _creates(sql, table) for kind, name, sql in rows}
        if table not in kinds:
            there = listing.names(sorted(map(str, kinds))) or "none"
            raise ArgumentError(f"{path} has no table {table!r}; its tables: {there}")
        if not kinds[table]:
            raise FormatError(f"{path}: {table!r} is a view or a virtual table; copy its rows with SqliteDataset.write")
        self.columns = [row[1] for row in self._all(f"PRAGMA table_info({_quoted(table)})", (), STEPS)]
        self._rowids = array(
            "q", (row[0] for row in self._all(f"SELECT rowid FROM {_quoted(table)} ORDER BY rowid", (), STEPS + size))
        )
        names = ", ".join(_quoted(c) for c in self.columns)
        self._query = f"SELECT {names} FROM {_quoted(table)} WHERE rowid = ?"

    def __reduce__(self) -> Any:
        return SqliteDataset, (self.path, self.table)

    def __len__(self) -> int:
        return len(self._rowids)

    def item(self, i: int) -> dict[str, Any]:
        rows = self._all(self._query, (self._rowids[i],), STEPS)
        if not rows:
            raise FormatError(f"{self.path}: row {i} of {self.table!r} was deleted after the data set was opened")
        return dict(zip(self.columns, rows[0], strict=True))

    def _all(self, query: str, values: tuple[Any, ...], steps: int) -> list[Any]:
        try:
            connection = self._connection()
            connection.set_progress_handler(lambda: 1, steps)
            return connection.execute(query, values).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:  # a message may not be UTF-8
            raise FormatError(f"{self.path}: {self.table!r}: {error}") from None

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection, in this process: none may be carried through a fork. Raises sqlite3.Error."""
        held = getattr(self._local, "held", None)
        if held is None or held[0] != os.getpid():
            connection = sqlite3.connect(f"{Path(self.path).as_uri()}?mode=ro", uri=True)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(VALUE, os.stat(self.path).st_size))
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            self._local.held = held = os.getpid(), connection
        return held[1]

    @classmethod
    def write(
        cls, path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]], table: str = "data"
    ) -> SqliteDataset:
        """A new table of rows: dicts with the same keys, or named tuples, of numbers, texts, bytes and None; returns
        its data set. They may be an iterator, and are written in one transaction. SQLite has no NaN: it becomes None.

        Raises ArgumentError if the table exists, if there are no rows, for one that does not fit, and if the file
        cannot be written.
        """
        new = not os.path.exists(path)
        try:
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("BEGIN")
                _write(connection, rows, table)
                connection.execute("COMMIT")
        except BaseException as error:  # closing the connection undid the transaction
            if new and os.path.exists(path):
                os.unlink(path)
            if isinstance(error, sqlite3.Error):
                raise ArgumentError(f"{os.fspath(path)}: {table!r} cannot be written: {error}") from None
            raise
        return cls(path, table)


def _write(connection: sqlite3.Connection, rows: Iterable[Any], table: str) -> None:
    names: list[str] = []
    insert = ""
    for number, row in enumerate(rows):
        values = row._asdict() if hasattr(row, "_asdict") else row
        if not isinstance(values, Mapping):
            raise ArgumentError(f"row {number} is a {type(row).__name__}; pass dicts or named tuples")
        if not names:
            names = list(values)
            connection.execute(f"CREATE TABLE {_quoted(table)} ({', '.join(_quoted(str(n)) for n in names)})")
            insert = f"INSERT INTO {_quoted(table)} VALUES ({', '.join('?' * len(names))})"
        if list(values) != names:
            raise ArgumentError(f"row {number} has the keys {list(values)}, the first one {names}")
        connection.execute(insert, [_stored(values[n], n, number) for n in names])
    if not names:
        raise ArgumentError("there are no rows to write, so that the columns are not known")


def _stored(value: Any, name: str, row: int) -> Any:
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:  # a number of NumPy
        value = value.item()
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ArgumentError(f"row {row}: {name!r} is {value}, beyond 64 bits; store it as text")
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    raise ArgumentError(
        f"row {row}: {name!r} is a {type(value).__name__}; store numbers, text, bytes (an array's tobytes()) or None"
    )


def _creates(sql: Any, table: str) -> bool:
    """Whether a statement of the schema makes an ordinary table of this name. SQLite stores it as CREATE TABLE and what
    was written from the name on; a file of somebody else may hold anything that its parser takes."""
    head = "CREATE TABLE "
    if not isinstance(sql, str) or sql[: len(head)].upper() != head:
        return False
    named = sql[len(head) :]
    if named.startswith((_quoted(table), _quoted(table).replace('"', "'"), f"`{table}`", f"[{table}]")):
        return True
    after = named[len(table) : len(table) + 1]
    return named.startswith(table) and after.isascii() and not (after.isalnum() or after in ("_", "$"))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
