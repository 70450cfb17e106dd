"""Parquet files, opened so that Arrow reads only what was checked.

The footer is read once. From it the extension types are known before Arrow sees the file (arrow_types.py), and what a
column says of itself: how many values it has, in how many bytes. Its pages say it again, and Arrow believes those. So
Arrow reads a column's bytes through `Checked`, which compares the pages' heads with the footer first.

Sources: https://github.com/apache/parquet-format (parquet.thrift, in Thrift's compact protocol).
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from ..errors import FormatError
from . import page_lengths
from .arrow_types import DEPTH, check, extensions

FOOTER = 256 << 20  # bytes of the largest footer that is read

_SCHEMA_KEY = b"ARROW:schema"
_STOP, _TRUE, _FALSE, I32, I64, BINARY, LIST, _SET, STRUCT = 0, 1, 2, 5, 6, 8, 9, 10, 12
_WIDTHS = {1: 0, 2: 0, 3: 1, 7: 8}  # bytes of true, false, a byte, a double; other numbers are varints
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3  # PageType
_HEADS = {_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}  # the field of PageHeader that a type of page has


class Chunk(NamedTuple):
    """What the footer says of a column in a row group.

    values: how many there are. rows: how many of them are read at once. texts: of bytes of any length: (the bytes that
    all pages become, the encodings that values may have), None for others. codec: how pages are compressed, as a
    CompressionCodec; levels: of how many kinds they have levels (0; 1: of nulls; 2: also of lists).
    """

    column: str
    values: int
    rows: int
    texts: tuple[int, frozenset[int]] | None
    codec: int
    levels: int


class Opened:
    """An open Parquet file whose columns were all checked. footer: its bytes; size: those of the file."""

    def __init__(self, opened: Any, shown: str) -> None:
        self._opened, self._shown = opened, shown
        self.size: int = opened.size()
        self.footer = _footer(opened, shown)
        for column, name, parameters in extensions(_stored_schemas(self.footer, shown), shown):
            check(name, parameters, f"{shown}: column {column!r}")
        whole = b"".join([b"PAR1", self.footer, len(self.footer).to_bytes(4, "little"), b"PAR1"])
        self.metadata = parquet.read_metadata(pa.BufferReader(whole))

    @property
    def schema(self) -> Any:
        return self.reader({}).schema_arrow

    def reader(
        self, chunks: Mapping[int, Sequence[Chunk]], page: int = 0, most: int = 0, dictionaries: Sequence[str] = ()
    ) -> parquet.ParquetFile:
        """Arrow's reader of these columns alone. chunks: by where their bytes begin; page, most: the bytes that a page
        may become, and all pages of the rows that are read at once; dictionaries: the paths of texts that are read as
        dictionaries."""
        source = pa.PythonFile(Checked(self._opened, self._shown, chunks, page, most), "r")
        return parquet.ParquetFile(source, metadata=self.metadata, pre_buffer=False, read_dictionary=list(dictionaries))


@contextmanager
def open_parquet(system: Any, path: str, shown: str) -> Iterator[Opened]:
    """Context manager of the Parquet file at `path`.

    Raises FormatError, which names the file, the column and its type, if any column has an unknown extension type;
    OSError, and pyarrow's errors for a damaged file.
    """
    with system.open_input_file(path) as opened:
        yield Opened(opened, shown)


class Checked:
    """A file for Arrow, which reads the bytes of a column in a row group as a whole. They are as the footer says, or
    are refused: FormatError, which names the file."""

    closed = False

    def __init__(self, opened: Any, shown: str, chunks: Mapping[int, Sequence[Chunk]], page: int, most: int) -> None:
        self._opened, self._shown, self._chunks, self._page, self._most = opened, shown, chunks, page, most

    def read(self, count: int = -1) -> bytes:
        begin = self._opened.tell()
        data: bytes = self._opened.read(count)
        if begin not in self._chunks:
            raise FormatError(f"{self._shown}: its footer is damaged (a column begins at no known place)")
        for chunk in self._chunks[begin]:
            where = f"{self._shown}: the column {chunk.column!r}"
            try:
                self._check(chunk, Thrift(data), where)
            except (IndexError, ValueError, OSError) as error:
                if isinstance(error, FormatError):
                    raise
                raise FormatError(f"{where} has damaged pages ({str(error) or 'they end early'})") from None
        return data

    def _check(self, chunk: Chunk, t: Thrift, where: str) -> None:
        values = whole = 0
        window = Window(chunk.rows)
        size_of_texts, encodings = chunk.texts or (None, None)
        while values < chunk.values and t.at < len(t.data):
            kind, size, stored, count, encoding, head = _page(t)
            t.at += stored
            if kind not in _HEADS:
                continue
            whole += size
            if size > self._page:
                raise FormatError(f"{where} has a page that becomes {size} bytes; at most {self._page} are read: write "
                                  "the file with smaller pages (pyarrow's write_batch_size)")  # fmt: skip
            if size_of_texts is not None and whole > size_of_texts:
                raise FormatError(f"{where} becomes more bytes than the file's footer says; write the file again")
            if kind == _DICTIONARY:
                if count > size:
                    raise ValueError("a dictionary with more values than bytes")
                continue
            values += count
            if values > chunk.values:
                raise FormatError(f"{where} has more values than the file's footer says; write the file again")
            if encodings is not None and encoding not in encodings:
                raise FormatError(f"{where} has an encoding that the file's footer does not name; write the file again")
            if encoding in page_lengths.TIMES:
                pages = page_lengths.expanded(t.data[t.at - stored : t.at], size, chunk, head, kind == _DATA_2)
                _check_lengths(pages, encoding, count, chunk, where)
            window.add(count, size)
            if window.bytes > self._most:
                raise FormatError(
                    f"{where}: {chunk.rows} of its rows may become {window.bytes} bytes; at most {self._most} are read "
                    "at once: write the file with smaller row groups"
                )

    def seek(self, at: int, whence: int = 0) -> int:
        return int(self._opened.seek(at, whence))

    def tell(self) -> int:
        return int(self._opened.tell())

    def close(self) -> None:
        """The file is closed by who opened it."""


class Window:
    """The pages that may be read at once for some rows. bytes: those that they become."""

    def __init__(self, rows: int) -> None:
        self._most, self._rows, self.bytes = rows, 0, 0
        self._pages: deque[tuple[int, int]] = deque()  # (values, bytes)

    def add(self, count: int, size: int) -> None:
        """Another page; those that come too long before it leave."""
        if count or not self._pages:
            self._pages.append((count, size))
        else:
            self._pages[-1] = (self._pages[-1][0], self._pages[-1][1] + size)
        self.bytes, self._rows = self.bytes + size, self._rows + count
        while len(self._pages) > 1 and self._rows - self._pages[0][0] - self._pages[-1][0] >= self._most:
            first, gone = self._pages.popleft()
            self.bytes, self._rows = self.bytes - gone, self._rows - first


def _check_lengths(pages: Iterator[bytes], encoding: int, count: int, chunk: Chunk, where: str) -> None:
    """The lengths of texts in a page, which Arrow believes."""
    if chunk.codec and chunk.codec not in page_lengths.CODECS:
        raise FormatError(
            f"{where} has lengths that cannot be checked in its compression; write the file again with zstd"
        )
    for found in pages:
        page_lengths.check(Thrift(found), page_lengths.TIMES[encoding], count)


# -- Thrift -----------------------------------------------------------------------------------------------------------


class Thrift:
    """A reader of Thrift's compact protocol that skips what it is not asked for. Numbers that are too large wrap, as in
    the reader that Arrow has. Raises IndexError, ValueError."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def integer(self, bits: int) -> int:
        """A signed number."""
        value = self.varint() & ((1 << bits) - 1)
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        count = self.varint()
        self.at += count
        if self.at > len(self.data):
            raise IndexError
        return self.data[self.at - count : self.at]

    def fields(self) -> Iterator[tuple[int, int]]:
        """(number, type) of each field of a struct; the caller reads or skips its value."""
        number = 0
        while (head := self.byte()) & 15 != _STOP:
            number = (number + (head >> 4) if head >> 4 else self.integer(32)) & 0xFFFF
            yield number, head & 15

    def items(self) -> tuple[int, int]:
        """(count, type) of a list."""
        head = self.byte()
        return (self.varint() if head >> 4 == 15 else head >> 4), head & 15

    def skip(self, kind: int, depth: int = 0, in_list: bool = False) -> None:
        if depth > DEPTH:
            raise ValueError("too deeply nested")
        if kind in _WIDTHS:
            self.at += 1 if in_list and kind < 3 else _WIDTHS[kind]
        elif kind in (4, I32, I64):
            self.varint()
        elif kind == BINARY:
            self.binary()
        elif kind in (LIST, _SET):
            count, inner = self.items()
            for _ in range(count):
                self.skip(inner, depth + 1, in_list=True)
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        else:
            raise ValueError(f"a value of type {kind}")
        if self.at > len(self.data):
            raise IndexError


def _footer(opened: Any, shown: str) -> bytes:
    size = opened.size()
    opened.seek(max(0, size - 8))
    tail = opened.read(8)
    if len(tail) < 8 or tail[4:] != b"PAR1":
        what = "is encrypted, which is not supported" if tail[4:] == b"PARE" else "not a Parquet file, or a part of one"
        raise FormatError(f"{shown}: {what}")
    count = int.from_bytes(tail[:4], "little")
    if count > min(size - 8, FOOTER):
        raise FormatError(f"{shown}: a footer of {count} bytes in a file of {size}")
    opened.seek(size - 8 - count)
    footer: bytes = opened.read(count)
    return footer


def _stored_schemas(footer: bytes, shown: str) -> list[bytes]:
    """Every Arrow schema in the footer's metadata, decoded from base64 (FileMetaData, field 5: key_value_metadata)."""
    found = []
    t = Thrift(footer)
    try:
        for number, kind in t.fields():
            if (number, kind) != (5, LIST):
                t.skip(kind)
                continue
            count, inner = t.items()
            if inner != STRUCT:
                raise ValueError("metadata that is not a list of pairs")
            for _ in range(count):
                pair = {1: b"", 2: b""}
                for n, inner_kind in t.fields():
                    if inner_kind == BINARY:
                        pair[n] = t.binary()
                    else:
                        t.skip(inner_kind)
                if pair[1] == _SCHEMA_KEY:
                    found.append(base64.b64decode(pair[2], validate=True))
    except (IndexError, ValueError, binascii.Error) as error:
        raise FormatError(f"{shown}: its footer is damaged ({str(error) or 'it ends early'})") from None
    return found


def _page(t: Thrift) -> tuple[int, int, int, int, int, dict[int, int]]:
    """(type, bytes once expanded, bytes in the file, values, their encoding, numbers of the head for its type) of the
    page whose head is next.

    PageHeader: 1 type, 2 uncompressed_page_size, 3 compressed_page_size, then a struct for its type: 1 num_values, and
    the encoding, which is 2, and 4 in the second version.
    """
    said: dict[int, int] = {}
    heads: dict[int, dict[int, int]] = {}
    for number, kind in t.fields():
        if kind == I32:
            said[number] = t.integer(32)
        elif kind == STRUCT and number in _HEADS.values():
            head = heads.setdefault(number, {})
            for n, inner in t.fields():
                if inner == I32 and n != page_lengths.COMPRESSED:
                    head[n] = t.integer(32)
                elif inner in (_TRUE, _FALSE) and n == page_lengths.COMPRESSED:
                    head[n] = inner == _TRUE
                else:
                    t.skip(inner)
        else:
            t.skip(kind)
    kind, size, stored = said.get(1, -1), said.get(2, 0), said.get(3, 0)
    head = heads.get(_HEADS.get(kind, 0), {})
    count, encoding = head.get(1, 0), head.get(4 if kind == _DATA_2 else 2, 0)
    if min(size, stored, count) < 0:
        raise ValueError("a size below zero")
    return kind, size, stored, count, encoding, head
