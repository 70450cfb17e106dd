"""Tables in Arrow's memory as data sets: Parquet and Arrow files, and data frames. Needs pyarrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ...data.base import Dataset
from ...errors import ArgumentError, FormatError
from .. import listing
from ..extras import require

EXPANDED = 1 << 30  # bytes of memory that a small file may become, or 16 times its size


class TableDataset(Dataset):
    """The rows of an Arrow table as dicts of Python's values."""

    def __init__(self, table: Any, columns: Sequence[str] | None = None) -> None:
        names = table.schema.names
        if len(set(names)) < len(names):
            raise ArgumentError(f"two columns of the table have one name, of {listing.names(names)}; rename one")
        lacking = [name for name in columns or () if name not in names]
        if lacking:
            raise ArgumentError(f"there is no column {lacking[0]!r}; the columns are {listing.names(names)}")
        self.table = table if columns is None else table.select(list(columns))
        self._getters = {name: _getter(name, self.table.column(name)) for name in self.table.schema.names}

    def __reduce__(self) -> Any:
        return TableDataset, (self.table,)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def item(self, i: int) -> dict[str, Any]:
        return {name: get(i) for name, get in self._getters.items()}


def _getter(name: str, column: Any) -> Callable[[int], Any]:
    """A function from the number of a row to its value: of numbers through NumPy, which is ten times as fast.

    The function raises FormatError for a value that Python has no object for, such as a date after the year 9999.
    """
    import pyarrow as pa

    kind = column.type
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return column.to_numpy().item

    def value(i: int) -> Any:
        try:
            return column[i].as_py()
        except (ValueError, OverflowError) as error:
            raise FormatError(f"column {name!r}, row {i}: Python has no object for this {kind}: {error}") from None

    return value


class ParquetDataset(TableDataset):
    """The rows of a Parquet file, read into memory now, as dicts. columns: which; all by default.

    Raises FormatError: for a damaged file, one that takes more memory than 1 GB and 16 times its size, or has a row
    that would, and one with an extension type that is not known (docs/security.md); ArgumentError, OSError,
    MissingLibraryError without pyarrow.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> None:
        require("ParquetDataset", "pyarrow", "numpy")
        import pyarrow as pa

        from ...batch.files import File, Part, system_of
        from ...batch.rows import Reading, read

        shown = os.fspath(path)
        system, where = system_of(shown)
        info = system.get_file_info(where)
        if info.type == info.type.NotFound:
            raise FileNotFoundError(2, "No such file or directory", shown)
        if info.type != info.type.File:
            raise ArgumentError(f"{shown} is no file; compose the files of a folder with ComposedDataset")
        size = info.size or 0
        part = Part("Parquet", (File(shown, where, 0, size, 0),))
        chosen = None if columns is None else tuple(columns)
        tables, total = [], 0
        for _, table in read(part, Reading(system, chosen, (), 1 << 16)):
            total += _bounded(table.nbytes + 8 * len(table), total, size, shown)
            tables.append(table)
        if tables:
            whole = pa.concat_tables(tables)
            _rows_bounded(whole, size, shown)
            super().__init__(whole)
        else:
            super().__init__(_empty(system, where, shown), columns)


def _empty(system: Any, where: str, shown: str) -> Any:
    from ...batch.parquet_file import open_parquet

    with open_parquet(system, where, shown) as held:
        return held.schema.empty_table()


def _bounded(count: int, total: int, size: int, shown: str) -> int:
    if total + count > max(EXPANDED, 16 * size):
        raise FormatError(
            f"{shown}: its {size} bytes become more than {max(EXPANDED, 16 * size)} in memory; divide the file, or "
            "write its rows with SqliteDataset.write"
        )
    return count


def _rows_bounded(table: Any, size: int, shown: str) -> None:
    from .row_costs import largest_row

    if largest_row(table) > max(EXPANDED, 16 * size):
        raise FormatError(
            f"{shown}: a row would become more than {max(EXPANDED, 16 * size)} bytes in memory: its lists repeat "
            "values that are stored once; store them without dictionaries, views and runs"
        )


class ArrowDataset(TableDataset):
    """The rows of an Arrow file or stream (.arrow, .feather of version 2), read into memory now, as dicts. columns:
    which; all by default.

    Raises FormatError: for a damaged file, one that takes more memory than 1 GB and 16 times its size, or has a row
    that would, and one with an extension type that is not known; ArgumentError, OSError, MissingLibraryError without
    pyarrow.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> None:
        require("ArrowDataset", "pyarrow", "numpy")
        from .arrow_files import read_arrow

        table = read_arrow(path, _bounded)
        size = os.stat(path).st_size
        _bounded(8 * len(table), 0, size, os.fspath(path))  # columns of nulls take no bytes
        _rows_bounded(table, size, os.fspath(path))
        super().__init__(table, columns)


class DataframeDataset(TableDataset):
    """The rows of a data frame, or anything else that has Arrow's C stream or the data frame interchange protocol, as
    dicts: polars, pandas, pyarrow, DuckDB. columns: which; all by default.

    Raises ArgumentError for another object, FormatError for a column of an extension type that is not known,
    MissingLibraryError without pyarrow.
    """

    def __init__(self, frame: Any, columns: Sequence[str] | None = None) -> None:
        require("DataframeDataset", "pyarrow", "numpy")
        import pyarrow as pa

        from ...batch.arrow_types import check_type

        if hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        elif hasattr(frame, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(frame)
        else:
            raise ArgumentError(
                f"{type(frame).__name__} is no data frame: it has neither __arrow_c_stream__ nor __dataframe__"
            )
        for field in table.schema:
            check_type(field.type, f"column {field.name!r}")
        super().__init__(table, columns)
