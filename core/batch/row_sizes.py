"""How large the rows of a Parquet file may be, from its footer.

The footer is read here, since pyarrow's own objects for columns end the process on some damaged ones. Source:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from ..errors import FormatError
from ..host import npy
from .arrow_types import Thrift, footer_of

AT_ONCE = 256 << 20  # bytes that the rows read at once may come to, as far as the footer tells
LISTS_AT_ONCE = 64 << 20  # bytes of their lists: Arrow holds them some four times while it joins the rows of batches
_TEXTS, _BYTES = 6, 7  # BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY
_WIDTHS = {0: 1, 1: 4, 4: 4}  # bytes of a bool, an int32, a float; of other numbers 8
_DELTA_BYTE_ARRAY = 7  # an encoding: a value repeats the beginning of the one before it
_DECODED = frozenset((0, 2, 3, 4, 8))  # encodings that Arrow reads as dictionaries: plain, of dictionaries, of runs
_BINARY, _LIST, _STRUCT = 8, 9, 12


class Sizes(NamedTuple):
    """rows: how many to read at once. dictionaries: the paths of texts in lists that are read as dictionaries, since
    lists can repeat a text a million times in a few bytes."""

    rows: int
    dictionaries: list[str]


class _Column(NamedTuple):
    """A column of a row group. kind: its physical type; dictionary: whether it has one; values, size: how many, and in
    how many bytes."""

    path: list[str]
    kind: int
    dictionary: bool
    encodings: frozenset[int]
    values: int
    size: int


def sizes(opened: Any, shown: str, groups: Collection[int], names: Collection[str], most: int) -> Sizes:
    """How to read columns of these row groups: fewer rows than `most` at once where a row may be large, since a value
    that a dictionary holds once can be that of every row. Raises FormatError, also for lists that may be larger than
    1 GB and 16 times the file."""
    t = Thrift(footer_of(opened, shown))
    widths: list[int] = []
    found: dict[str, bool] = {}  # path -> whether all its parts can be read as dictionaries
    largest = max(npy.EXPANDED, 16 * opened.size())
    try:
        for number, kind in t.fields():
            if (number, kind) == (2, _LIST):
                widths = [width for _ in range(t.items()[0]) for width in _leaf(t)]
            elif (number, kind) == (4, _LIST):
                for i in range(t.items()[0]):
                    rows, columns = _group(t)
                    row = lists = 0
                    for width, c in zip(widths, columns, strict=False):
                        if i not in groups or not c.path or c.path[0] not in names:
                            continue
                        size = _row_size(c, rows, width, largest, shown)
                        row, lists = row + size, lists + size * (c.values > rows)
                        if c.kind == _TEXTS and c.values > rows:
                            path = ".".join(c.path)
                            found[path] = found.get(path, True) and c.dictionary and c.encodings <= _DECODED
                    most = max(1, min(most, AT_ONCE // max(1, row), LISTS_AT_ONCE // max(1, lists)))
            else:
                t.skip(kind)
    except (IndexError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{shown}: its footer is damaged ({str(error) or 'it ends early'})") from None
    return Sizes(most, [path for path, read in found.items() if read])


def _row_size(c: _Column, rows: int, width: int, largest: int, shown: str) -> int:
    """The bytes of a row, about: on average if it holds lists, else at most. width: of values that are bytes."""
    shared = c.dictionary or _DELTA_BYTE_ARRAY in c.encodings
    if c.values <= rows:
        return c.size if c.kind in (_TEXTS, _BYTES) and shared else 8 * c.values // rows
    each = width if c.kind == _BYTES else _WIDTHS.get(c.kind, 8)
    if each * c.values > largest:
        raise FormatError(
            f"{shown}: the lists of the column {c.path[0]!r} come to {each * c.values} bytes, and one row may hold "
            f"them all; at most {largest} are read: write the file with fewer rows in each row group"
        )
    return max(8, each) * c.values // rows + (c.size if c.kind == _TEXTS and shared else 0)


def _leaf(t: Thrift) -> list[int]:
    """The length of the values of a column that holds bytes of one size, 0 for others; nothing for a column of columns
    (SchemaElement: 2 type_length, 5 num_children)."""
    width = children = 0
    for number, kind in t.fields():
        if kind in (4, 5, 6):
            value = max(0, _signed(t.varint()))
            width, children = value if number == 2 else width, value if number == 5 else children
        else:
            t.skip(kind)
    return [] if children else [width]


def _group(t: Thrift) -> tuple[int, list[_Column]]:
    """(how many rows, the columns) of a row group."""
    columns: list[_Column] = []
    rows = 1
    for number, kind in t.fields():
        if (number, kind) == (1, _LIST):
            columns = [_column(t) for _ in range(t.items()[0])]
        elif number == 3 and kind in (4, 5, 6):
            rows = max(1, _signed(t.varint()))
        else:
            t.skip(kind)
    return rows, columns


def _column(t: Thrift) -> _Column:
    said: dict[int, int] = {}
    encodings: list[int] = []
    path: list[str] = []
    for number, kind in t.fields():
        if (number, kind) != (3, _STRUCT):
            t.skip(kind)
            continue
        for n, inner in t.fields():
            if inner in (4, 5, 6):
                said[n] = max(0, _signed(t.varint()))
            elif (n, inner) == (3, _LIST):
                count, item = t.items()
                if item != _BINARY:
                    raise ValueError("a path that is no list of texts")
                path = [t.binary().decode("utf-8", "replace") for _ in range(count)]
            elif (n, inner) == (2, _LIST):
                encodings = [_signed(t.varint()) for _ in range(t.items()[0])]
            else:
                t.skip(inner)
    return _Column(path, said.get(1, 0), 11 in said, frozenset(encodings), said.get(5, 0), said.get(6, 0))


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
