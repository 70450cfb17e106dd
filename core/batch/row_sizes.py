"""How large the rows of a Parquet file may be, from its footer, to which its pages are held (parquet_file.py).

The footer is read here, since pyarrow's own objects for columns end the process on some damaged ones. Source:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..errors import FormatError
from ..host import npy
from .arrow_types import DEPTH
from .parquet_file import BINARY, I32, I64, LIST, STRUCT, Chunk, Opened, Thrift

AT_ONCE = 256 << 20  # bytes that the rows read at once may come to
LISTS_AT_ONCE = 64 << 20  # bytes of their lists: Arrow holds them some four times while it joins the rows of batches
LEVELS = 4  # bytes that Arrow has beside each value of a list
COPIES = 3  # of the bytes of texts that Arrow has while it decodes them
_TEXTS, _BYTES = 6, 7  # BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY
_WIDTHS = {0: 1, 1: 4, 4: 4}  # bytes of a bool, an int32, a float; of other numbers 8
_DELTA_BYTE_ARRAY = 7  # an encoding: a value repeats the beginning of the one before it
_DICTIONARIES = frozenset((2, 8))
_DECODED = frozenset((0, 2, 3, 4, 8))  # encodings that Arrow reads as dictionaries: plain, of dictionaries, of runs


class Sizes(NamedTuple):
    """rows: how many to read at once. dictionaries: the paths of texts in lists that are read as dictionaries, since
    lists can repeat a text a million times in a few bytes. chunks: what the columns say, by where they begin. page,
    most: the bytes that a page may become, and all that are read at once."""

    rows: int
    dictionaries: list[str]
    chunks: dict[int, list[Chunk]]
    page: int
    most: int


class _Leaf(NamedTuple):
    """A column of the schema. kind: its physical type; width: the bytes of a value, for those of one size; levels: of
    how many kinds a value has levels (0; 1: of nulls; 2: also of lists)."""

    path: list[str]
    kind: int
    width: int
    levels: int

    @property
    def in_lists(self) -> bool:
        return self.levels > 1

    @property
    def is_shared_text(self) -> bool:
        return self.in_lists and self.kind == _TEXTS


class _Column(NamedTuple):
    """A column of a row group. begin: where its bytes are; values, size: how many, and in how many bytes; codec: how
    they are compressed."""

    begin: int
    encodings: frozenset[int]
    values: int
    size: int
    codec: int

    @property
    def has_dictionary(self) -> bool:
        return bool(self.encodings & _DICTIONARIES)


def sizes(opened: Opened, shown: str, groups: Collection[int], names: Collection[str], most: int) -> Sizes:
    """How to read columns of these row groups: fewer rows than `most` at once where a row may be large, since a value
    that a dictionary holds once can be that of every row. Raises FormatError, also for lists that may be larger than
    1 GB and 16 times the file."""
    leaves: list[_Leaf] = []
    found: list[tuple[int, list[_Column]]] = []
    t = Thrift(opened.footer)
    try:
        for number, kind in t.fields():
            if (number, kind) == (2, LIST):
                leaves = _leaves(t)
            elif (number, kind) == (4, LIST):
                found = [_group(t) for _ in range(t.items()[0])]
            else:
                t.skip(kind)
        if any(len(columns) != len(leaves) for _, columns in found):
            raise ValueError("a row group without all columns")
    except (IndexError, ValueError) as error:
        raise FormatError(f"{shown}: its footer is damaged ({str(error) or 'it ends early'})") from None
    chosen = [group for i, group in enumerate(found) if i in groups]
    used = [k for k, leaf in enumerate(leaves) if leaf.path[0] in names]
    as_dictionaries = {
        k for k in used if leaves[k].is_shared_text and all(c[k].encodings <= _DECODED for _, c in chosen)
        and any(c[k].has_dictionary for _, c in chosen)
    }  # fmt: skip
    largest, page = (max(limit, 16 * opened.size) for limit in (npy.EXPANDED, AT_ONCE))
    for rows, columns in chosen:
        row = lists = 0
        for k in used:
            leaf, c = leaves[k], columns[k]
            if leaf.in_lists:
                size = _size_of_lists(leaf, c, k in as_dictionaries)
                lists += size
                if lists > largest:
                    raise FormatError(_too_large(shown, leaf, c, lists, largest))
                row += size // rows
            else:
                row += _size_of_row(leaf, c, rows)
        most = max(1, min(most, AT_ONCE // max(1, row), LISTS_AT_ONCE * rows // max(1, lists)))
    chunks: dict[int, list[Chunk]] = {}
    for _, columns in chosen:
        for k in used:
            leaf, c = leaves[k], columns[k]
            texts = (c.size, c.encodings) if leaf.kind in (_TEXTS, _BYTES) else None
            one = Chunk(leaf.path[0], c.values, c.values if leaf.in_lists else most, texts, c.codec, leaf.levels)
            chunks.setdefault(c.begin, []).append(one)
    return Sizes(most, [".".join(leaves[k].path) for k in sorted(as_dictionaries)], chunks, page, largest)


def _too_large(shown: str, leaf: _Leaf, c: _Column, size: int, largest: int) -> str:
    advice = "with fewer rows in each row group"
    if leaf.kind in (_TEXTS, _BYTES) and _DELTA_BYTE_ARRAY in c.encodings:
        what = "texts" if leaf.kind == _TEXTS else "bytes"
        advice = f"without the encoding DELTA_BYTE_ARRAY for {what} in lists, which may repeat their beginnings"
    return (
        f"{shown}: the lists of the column {leaf.path[0]!r} come to {size} bytes, and one row may hold them all; at "
        f"most {largest} are read: write the file {advice}"
    )


def _size_of_lists(leaf: _Leaf, c: _Column, as_dictionary: bool) -> int:
    """The most bytes that the lists of a row group take, all of which one row may hold."""
    if leaf.kind == _BYTES and _DELTA_BYTE_ARRAY in c.encodings:  # Arrow joins them before it compares their width
        return c.size * COPIES * c.values + (8 + LEVELS) * c.values
    if leaf.kind != _TEXTS:
        return (_width(leaf) + LEVELS) * c.values
    repeated = not as_dictionary and (c.has_dictionary or _DELTA_BYTE_ARRAY in c.encodings)
    return c.size * (COPIES * c.values if repeated else 1) + (8 + LEVELS) * c.values


def _size_of_row(leaf: _Leaf, c: _Column, rows: int) -> int:
    """The bytes of a row: at most; of texts that are stored one by one on average, their pages are looked at later."""
    if leaf.kind == _BYTES and _DELTA_BYTE_ARRAY in c.encodings:
        return max(8, _width(leaf), c.size)
    if leaf.kind != _TEXTS:
        return max(8, _width(leaf))
    repeated = c.has_dictionary or _DELTA_BYTE_ARRAY in c.encodings
    return c.size if repeated else 8 + c.size // rows


def _width(leaf: _Leaf) -> int:
    return leaf.width if leaf.kind == _BYTES else _WIDTHS.get(leaf.kind, 8)


def _leaves(t: Thrift) -> list[_Leaf]:
    """The columns of the schema, which lists a tree: each node, then its children (SchemaElement: 1 type,
    2 type_length, 3 repetition_type, 4 name, 5 num_children)."""
    found: list[_Leaf] = []
    above: list[tuple[list[str], int]] = []
    left: list[int] = []  # children of those above that are still to come
    for i in range(t.items()[0]):
        said: dict[int, int] = {}
        name = b""
        for number, kind in t.fields():
            if kind == I32:
                said[number] = t.integer(32)
            elif (number, kind) == (4, BINARY):
                name = t.binary()
            else:
                t.skip(kind)
        while left and left[-1] <= 0:
            left.pop()
            above.pop()
        if (i and not left) or len(left) > DEPTH:
            raise ValueError("columns outside its tree" if not left else "too many nested columns")
        path, levels = above[-1] if above else ([], 0)
        if i:
            left[-1] -= 1
            path, levels = [*path, name.decode("utf-8", "replace")], max(levels, said.get(3, 0))
        if i and 1 in said and not said.get(5):
            found.append(_Leaf(path, said[1], max(0, said.get(2, 0)), levels))
        else:
            above.append((path, levels))
            left.append(said.get(5, 0))
    return found


def _group(t: Thrift) -> tuple[int, list[_Column]]:
    """(how many rows, the columns) of a row group (RowGroup: 1 columns, 3 num_rows)."""
    columns: list[_Column] = []
    rows = 1
    for number, kind in t.fields():
        if (number, kind) == (1, LIST):
            columns = [_column(t) for _ in range(t.items()[0])]
        elif (number, kind) == (3, I64):
            rows = max(1, t.integer(64))
        else:
            t.skip(kind)
    return rows, columns


def _column(t: Thrift) -> _Column:
    """ColumnChunk: 3 meta_data, of which 2 encodings, 4 codec, 5 num_values, 6 total_uncompressed_size,
    9 data_page_offset, 11 dictionary_page_offset."""
    said: dict[int, int] = {}
    encodings: list[int] = []
    for number, kind in t.fields():
        if (number, kind) != (3, STRUCT):
            t.skip(kind)
            continue
        for n, inner in t.fields():
            if (n, inner) == (4, I32):
                said[n] = t.integer(32)
            elif inner == I64 and n != 4:
                said[n] = t.integer(64)
            elif (n, inner) == (2, LIST):
                encodings = [t.integer(32) for _ in range(t.items()[0])]
            else:
                t.skip(inner)
    begin = said.get(9, 0)
    if 0 < said.get(11, 0) < begin:
        begin = said[11]
    return _Column(begin, frozenset(encodings), max(0, said.get(5, 0)), max(0, said.get(6, 0)), said.get(4, 0))
