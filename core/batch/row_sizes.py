"""How large the rows of a Parquet file may be, from its footer.

The footer is read here, since pyarrow's own objects for columns end the process on some damaged ones. Source:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ..errors import FormatError
from .arrow_types import Thrift, footer_of

AT_ONCE = 256 << 20  # bytes that the rows read at once may come to, as far as the footer tells
_BYTES = (6, 7)  # BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY
_DELTA_BYTE_ARRAY = 7  # an encoding: a value repeats the beginning of the one before it
_BINARY, _LIST, _STRUCT = 8, 9, 12


def rows_at_once(opened: Any, shown: str, groups: Collection[int], names: Collection[str], most: int) -> int:
    """How many rows to read at once: fewer where a row may be large. A value that a dictionary holds once can be that
    of every row, and lists can repeat a number a million times in a few bytes. Raises FormatError."""
    t = Thrift(footer_of(opened, shown))
    try:
        for number, kind in t.fields():
            if (number, kind) != (4, _LIST):
                t.skip(kind)
                continue
            for i in range(t.items()[0]):
                size = _row_size(t, names)
                if i in groups:
                    most = max(1, min(most, AT_ONCE // max(1, size)))
    except (IndexError, ValueError) as error:
        raise FormatError(f"{shown}: its footer is damaged ({str(error) or 'it ends early'})") from None
    return most


def _row_size(t: Thrift, names: Collection[str]) -> int:
    """The most bytes of a row in a row group, about."""
    columns: list[tuple[bool, int, int]] = []
    rows = 1
    for number, kind in t.fields():
        if (number, kind) == (1, _LIST):
            for _ in range(t.items()[0]):
                columns += _column(t, names)
        elif number == 3 and kind in (4, 5, 6):
            rows = max(1, _signed(t.varint()))
        else:
            t.skip(kind)
    return sum(size if shared else 8 * count // rows for shared, count, size in columns)


def _column(t: Thrift, names: Collection[str]) -> Iterator[tuple[bool, int, int]]:
    """(whether rows may share a text, how many values, how many bytes) of a column that is read."""
    for number, kind in t.fields():
        if (number, kind) != (3, _STRUCT):
            t.skip(kind)
            continue
        said: dict[int, int] = {}
        encodings: list[int] = []
        name = ""
        for n, inner in t.fields():
            if inner in (4, 5, 6):
                said[n] = max(0, _signed(t.varint()))
            elif (n, inner) == (3, _LIST):
                count, item = t.items()
                for k in range(count):
                    if item != _BINARY:
                        raise ValueError("a path that is no list of texts")
                    part = t.binary()
                    name = name if k else part.decode("utf-8", "replace")
            elif (n, inner) == (2, _LIST):
                encodings = [_signed(t.varint()) for _ in range(t.items()[0])]
            else:
                t.skip(inner)
        if name in names:
            shared = said.get(1) in _BYTES and (11 in said or _DELTA_BYTE_ARRAY in encodings)
            yield shared, said.get(5, 0), said.get(6, 0)


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
