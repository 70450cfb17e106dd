"""The extension types of a Parquet file, found before Arrow opens it.

Arrow hands the bytes of an extension type to the class that is registered for its name; Ray and older versions of
pyarrow register classes that unpickle them. So the names are read here, from the schema that Arrow's writers store in
the footer, and a file with any other than `KNOWN` is refused.

Sources: https://github.com/apache/parquet-format (the footer, in Thrift's compact protocol),
https://arrow.apache.org/docs/format/Columnar.html (Schema.fbs, Message.fbs), https://flatbuffers.dev/internals.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from ..errors import FormatError
from ..host import npy

KNOWN = frozenset(
    ["arrow.bool8", "arrow.fixed_shape_tensor", "arrow.json", "arrow.uuid", "pandas.interval", "pandas.period",
     *(f"datasets.features.features.Array{n}DExtensionType" for n in range(2, 6))]
)  # fmt: skip
"""Extension types whose classes decode their parameters as numbers or JSON."""

TENSOR = "arrow.fixed_shape_tensor"
RAY = frozenset(["ray.data.arrow_tensor", "ray.data.arrow_tensor_v2", "ray.data.arrow_variable_shaped_tensor"])
"""Ray's tensors: known too, if their parameters are JSON. Some versions of Ray write and read pickles instead."""

FOOTER = 256 << 20  # bytes of the largest footer that is read
DEPTH = 64  # levels of nested columns, or of Thrift's structs

_SCHEMA_KEY = b"ARROW:schema"
_NAME, _PARAMETERS = b"ARROW:extension:name", b"ARROW:extension:metadata"
_STOP, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 8, 9, 10, 11, 12
_WIDTHS = {1: 0, 2: 0, 3: 1, 7: 8}  # bytes of true, false, a byte, a double; other numbers are varints


@contextmanager
def open_parquet(system: Any, path: str, shown: str, dictionaries: Sequence[str] = ()) -> Iterator[parquet.ParquetFile]:
    """Context manager of the Parquet file at `path`, whose columns were all checked first. dictionaries: the paths of
    texts that are read as dictionaries.

    Raises FormatError, which names the file, the column and its type, if any column has an unknown extension type;
    OSError, and pyarrow's errors for a damaged file.
    """
    with system.open_input_file(path) as opened:
        for column, name, parameters in extensions(_stored_schemas(footer_of(opened, shown), shown), shown):
            check(name, parameters, f"{shown}: column {column!r}")
        opened.seek(0)
        yield parquet.ParquetFile(opened, pre_buffer=False, read_dictionary=list(dictionaries))


def check(name: str, parameters: bytes, where: str) -> None:
    """Raise FormatError, unless the extension type of this name is known and its parameters are data."""
    if name not in KNOWN and name not in RAY:
        raise FormatError(
            f"{where} has the extension type {name!r}, which is not read, because such a type may run code; store the "
            "column as numbers, lists, text or bytes"
        )
    try:  # Arrow reads JSON by recursion: one that is nested deeply would end the process
        found = json.loads(parameters) if parameters or name in RAY else {}
    except (ValueError, RecursionError):
        advice = "; write it with Ray 2.55 or later" if name in RAY else ""
        raise FormatError(
            f"{where} has the extension type {name!r} with parameters that are not JSON{advice}"
        ) from None
    axes = found.get("shape") if name == TENSOR and isinstance(found, dict) else None
    if isinstance(axes, list) and len(axes) > npy.MAX_RANK:
        raise FormatError(f"{where} holds tensors of {len(axes)} axes; at most {npy.MAX_RANK} are read")


def check_type(kind: Any, where: str) -> None:
    """Raise FormatError if an Arrow type is, or contains, an extension type that is not known."""
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name not in RAY:  # its parameters were decoded when the type was made
            check(kind.extension_name, b"", where)
        check_type(kind.storage_type, where)
    elif pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        check_type(kind.value_type, where)
    else:
        for i in range(kind.num_fields):
            check_type(kind.field(i).type, where)


# -- the footer -------------------------------------------------------------------------------------------------------


def footer_of(opened: Any, shown: str) -> bytes:
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


class Thrift:
    """A reader of Thrift's compact protocol that skips what it is not asked for. Raises IndexError, ValueError."""

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
            if head >> 4:
                number += head >> 4
            else:
                raw = self.varint()
                number = (raw >> 1) ^ -(raw & 1)
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
        elif kind in (4, 5, 6):
            self.varint()
        elif kind == _BINARY:
            self.binary()
        elif kind in (_LIST, _SET):
            count, inner = self.items()
            for _ in range(count):
                self.skip(inner, depth + 1, in_list=True)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        else:
            raise ValueError(f"a value of type {kind}")
        if self.at > len(self.data):
            raise IndexError


def _stored_schemas(footer: bytes, shown: str) -> list[bytes]:
    """Every Arrow schema in the footer's metadata, decoded from base64 (FileMetaData, field 5: key_value_metadata)."""
    found = []
    t = Thrift(footer)
    try:
        for number, kind in t.fields():
            if (number, kind) != (5, _LIST):
                t.skip(kind)
                continue
            count, inner = t.items()
            if inner != _STRUCT:
                raise ValueError("metadata that is not a list of pairs")
            for _ in range(count):
                pair = {1: b"", 2: b""}
                for n, inner_kind in t.fields():
                    if inner_kind == _BINARY:
                        pair[n] = t.binary()
                    else:
                        t.skip(inner_kind)
                if pair[1] == _SCHEMA_KEY:
                    found.append(base64.b64decode(pair[2], validate=True))
    except (IndexError, ValueError, binascii.Error) as error:
        raise FormatError(f"{shown}: its footer is damaged ({str(error) or 'it ends early'})") from None
    return found


# -- the schema -------------------------------------------------------------------------------------------------------


def extensions(schemas: list[bytes], shown: str) -> Iterator[tuple[str, str, bytes]]:
    """(column, name of the extension type, its parameters) of every column of the schemas, at any depth."""
    for data in schemas:
        try:
            skipped = 8 if data[:4] == b"\xff\xff\xff\xff" else 4  # the length of the message, in old files alone
            message = Table(data[skipped:], None, [16 * len(data) + 4096])
            schema = message.table(2)  # Message: 0 version, 1 header_type, 2 header
            if schema is None:
                raise ValueError("no schema")
            for field in schema.tables(1):
                yield from _of_field(field, field.text(0).decode("utf-8", "replace"), 0)
        except (IndexError, ValueError) as error:
            raise FormatError(f"{shown}: its Arrow schema is damaged ({str(error) or 'it ends early'})") from None


def _of_field(field: Table, column: str, depth: int) -> Iterator[tuple[str, str, bytes]]:
    """Field: 0 name, 1 nullable, 2 type_type, 3 type, 4 dictionary, 5 children, 6 custom_metadata."""
    if depth > DEPTH:
        raise ValueError("too many nested columns")
    pairs = [(pair.text(0), pair.text(1)) for pair in field.tables(6)]
    parameters = b"".join(value for key, value in pairs if key == _PARAMETERS)
    for key, value in pairs:
        if key == _NAME:
            yield column, value.decode("utf-8", "replace"), parameters
    for child in field.tables(5):
        yield from _of_field(child, column, depth + 1)


class Table:
    """A table of a flatbuffer. left: how many bytes may still be read, since many offsets may point at one place.
    Raises IndexError for offsets outside the buffer, ValueError when nothing is left."""

    def __init__(self, data: bytes, at: int | None, left: list[int]) -> None:
        self._data, self._left = data, left
        self._at = self._number(0, 4) if at is None else at
        self._entries = self._at - self._number(self._at, 4, signed=True)
        self._size = self._number(self._entries, 2)

    def _number(self, at: int, width: int, signed: bool = False) -> int:
        if at < 0 or at + width > len(self._data):
            raise IndexError
        self._spend(width)
        return int.from_bytes(self._data[at : at + width], "little", signed=signed)

    def _spend(self, count: int) -> None:
        self._left[0] -= count
        if self._left[0] < 0:
            raise ValueError("its parts overlap")

    def _place(self, field: int) -> int | None:
        """Where the offset of a field is, or None if the field is left out."""
        entry = 4 + 2 * field
        offset = self._number(self._entries + entry, 2) if entry + 2 <= self._size else 0
        return self._at + offset if offset else None

    def _target(self, place: int) -> int:
        return place + self._number(place, 4)

    def table(self, field: int) -> Table | None:
        place = self._place(field)
        return None if place is None else Table(self._data, self._target(place), self._left)

    def tables(self, field: int) -> Iterator[Table]:
        place = self._place(field)
        if place is None:
            return
        start = self._target(place)
        for i in range(self._number(start, 4)):
            yield Table(self._data, self._target(start + 4 + 4 * i), self._left)

    def number(self, field: int, width: int) -> int:
        """An unsigned number of `width` bytes; 0 if it is left out."""
        place = self._place(field)
        return 0 if place is None else self._number(place, width)

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """The pairs of 64-bit numbers in a vector of structs of two."""
        place = self._place(field)
        if place is None:
            return
        start = self._target(place)
        for i in range(self._number(start, 4)):
            yield self._number(start + 4 + 16 * i, 8), self._number(start + 12 + 16 * i, 8)

    def text(self, field: int) -> bytes:
        place = self._place(field)
        if place is None:
            return b""
        start = self._target(place)
        count = self._number(start, 4)
        if start + 4 + count > len(self._data):
            raise IndexError
        self._spend(count)
        return self._data[start + 4 : start + 4 + count]
