"""Reading parts of files as Arrow tables of a few rows; each row has an id that is the same in every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from ..errors import DTypeError, FormatError
from ..host import listing, npy
from . import columns as cols
from .files import ROW_BITS, File, Part
from .parquet_file import open_parquet
from .row_sizes import sizes

FILE, ROW, ID = "source_file", "source_row", "row_id"
PLACE = (FILE, ROW, ID)
"""The columns that say where a row comes from. The id is the number of the file, times 2**40, plus the row."""

BLOCK = 8 << 20  # bytes of a CSV file parsed at once
COLUMNS = 1 << 14  # Arrow takes 8 KB for each column of a CSV file, though it be empty


@dataclass(frozen=True)
class Reading:
    """How files are read. columns: the names, None for all; floats: CSV columns to read as floats even if their first
    values look like integers; rows: the maximum per table."""

    system: Any
    columns: tuple[str, ...] | None
    floats: tuple[str, ...]
    rows: int
    most_bytes: int = 32 << 20


def tables(part: Part, how: Reading) -> Iterator[pa.Table]:
    """Yields the rows of a part as tables. Raises FormatError, which names the file, if it cannot be read; OSError."""
    if part.kind == "pictures":
        for start in range(0, len(part.files), how.rows):
            files = part.files[start : start + how.rows]
            numbers = np.array([f.index for f in files], np.int64)
            paths, shown = ([f.path for f in files], pa.array([f.shown for f in files]))
            yield _placed(pa.table({"path": paths}), shown, numbers, np.zeros(len(files), np.int64))
        return
    file = part.files[0]
    for first, found in read(part, how):
        clash = [name for name in PLACE if name in found.schema.names]
        if clash:
            raise FormatError(
                f"{file.shown}: the column {clash[0]!r} has the name of a column that score writes; rename it"
            )
        shown = pa.repeat(file.shown, len(found))
        yield _placed(found, shown, np.int64(file.index), np.arange(first, first + len(found)))


def read(part: Part, how: Reading) -> Iterator[tuple[int, pa.Table]]:
    """Yields (number of the first row, table) of a part that is no picture, without the columns of `PLACE`. Raises
    FormatError, which names the file, if it cannot be read; OSError."""
    file = part.files[0]
    reader = {"Parquet": _parquet, "CSV": _csv, ".npy": _npy}[part.kind]
    try:
        yield from _sized(reader(part, file, how), how)
    except (pa.ArrowException, ValueError, KeyError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{file.shown}: {_line(error)}") from None
    except OSError as error:  # Arrow raises it for damaged data too
        if error.errno is not None:
            raise
        raise FormatError(f"{file.shown}: {_line(error)}") from None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _placed(found: pa.Table, shown: pa.Array, numbers: Any, rows: NDArray[np.int64]) -> pa.Table:
    """With the columns of `PLACE`. shown, numbers: the files' names and indices."""
    for name, column in zip(PLACE, (shown, pa.array(rows), pa.array(numbers << ROW_BITS | rows)), strict=True):
        found = found.append_column(name, column)
    return found


def _sized(found: Iterator[tuple[int, pa.Table]], how: Reading) -> Iterator[tuple[int, pa.Table]]:
    """Tables of `how.rows` rows, or fewer if these take `how.most_bytes`; the last may be smaller."""
    kept: list[pa.Table] = []
    first = count = size = 0
    for start, each in found:
        if not kept:
            first = start
        kept.append(each)
        count, size = count + len(each), size + each.nbytes
        while count >= how.rows or (count > 1 and size >= how.most_bytes):
            whole = pa.concat_tables(kept)
            rows = min(how.rows, max(1, count * how.most_bytes // max(1, size)), count)
            yield first, whole.slice(0, rows)
            kept = [whole.slice(rows)] if rows < count else []
            size -= size * rows // count
            first, count = first + rows, count - rows
    if count:
        yield first, pa.concat_tables(kept)


def _wanted(names: Sequence[str], how: Reading, file: File) -> list[str]:
    if len(names) > COLUMNS:
        raise FormatError(f"{file.shown} has {len(names)} columns; at most {COLUMNS} are read")
    if how.columns is None:
        return list(names)
    for name in how.columns:
        if name not in names:
            raise FormatError(f"{file.shown} has no column {name!r}; it has {listing.names(names)}")
    return list(how.columns)


def _parquet(part: Part, file: File, how: Reading) -> Iterator[tuple[int, pa.Table]]:
    with open_parquet(how.system, file.path, file.shown) as held:
        names = _wanted(held.schema.names, how, file)
        groups = range(part.start, held.metadata.num_row_groups if part.stop is None else part.stop)
        first = sum(held.metadata.row_group(i).num_rows for i in range(part.start))
        found = sizes(held, file.shown, groups, set(names), how.rows)
        reader = held.reader(found.chunks, found.page, found.most, found.dictionaries)
        # Arrow cannot join dictionaries in lists: each row group has its own
        for some in [[group] for group in groups] if found.dictionaries else [list(groups)]:
            for batch in reader.iter_batches(found.rows, some, names, use_threads=False):
                yield first, pa.Table.from_batches([batch])
                first += len(batch)


def _csv(part: Part, file: File, how: Reading) -> Iterator[tuple[int, pa.Table]]:
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(how.floats, pa.float64()), include_columns=list(how.columns or ())
    )
    compression = "gzip" if file.path.lower().endswith(".gz") else None
    _count_columns(file, how, compression)
    with how.system.open_input_stream(file.path, compression=compression) as opened:
        options = csv.ReadOptions(block_size=BLOCK, use_threads=False)
        first = 0
        with csv.open_csv(opened, read_options=options, convert_options=convert) as reader:
            for batch in reader:
                yield first, pa.Table.from_batches([batch])
                first += len(batch)


def _count_columns(file: File, how: Reading, compression: str | None) -> None:
    """Raise FormatError if the first line has too many."""
    count = 0
    with how.system.open_input_stream(file.path, compression=compression) as opened:
        while piece := opened.read(1 << 16):
            line, end, _ = piece.partition(b"\n")
            count += line.count(b",")
            if count >= COLUMNS:
                raise FormatError(f"{file.shown} has more than {COLUMNS} columns, which are not read")
            if end:
                return


def _npy(part: Part, file: File, how: Reading) -> Iterator[tuple[int, pa.Table]]:
    with how.system.open_input_file(file.path) as opened:
        descr, fortran, shape, begin = npy.read_header(opened, file.shown)
        dtype = npy.dtype_of(descr)
        if dtype is None:
            raise DTypeError(f"{file.shown}: arrays of {descr[:40]!r} are not read")
        if not shape or (fortran and len(shape) > 1):
            raise FormatError(f"{file.shown}: {'no axis of rows' if not shape else 'its first axis runs fastest'}")
        width = dtype.itemsize * prod(shape[1:])
        if opened.size() - begin != width * shape[0]:
            raise FormatError(
                f"{file.shown}: {opened.size() - begin} bytes of data where its header says {width * shape[0]}"
            )
        stop = shape[0] if part.stop is None else part.stop
        rows = max(1, min(how.rows, how.most_bytes // max(1, width)))
        for start in range(part.start, stop, rows):
            count = min(rows, stop - start)
            opened.seek(begin + start * width)
            data = opened.read(count * width)
            if len(data) != count * width:
                raise FormatError(f"{file.shown}: was truncated after it was opened")
            yield start, pa.table({"data": cols.arrow(np.frombuffer(data, descr).reshape(count, *shape[1:]))})


def schema(part: Part, how: Reading) -> list[str]:
    """The names of a part's columns, without those in `PLACE`. Raises FormatError, OSError."""
    if part.kind in ("pictures", ".npy"):
        return ["path" if part.kind == "pictures" else "data"]
    everything = Reading(how.system, None, (), 1)
    for found in tables(part, everything):
        return [name for name in found.schema.names if name not in PLACE]
    return _names_without_rows(part, how)


def _names_without_rows(part: Part, how: Reading) -> list[str]:
    """The column names of a file without rows."""
    file = part.files[0]
    if part.kind == "Parquet":
        with open_parquet(how.system, file.path, file.shown) as held:
            return list(held.schema.names)
    compression = "gzip" if file.path.lower().endswith(".gz") else None
    with how.system.open_input_stream(file.path, compression=compression) as stream:
        return list(csv.open_csv(stream).schema.names)
