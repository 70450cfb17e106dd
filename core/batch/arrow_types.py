"""The extension types of a file, found before Arrow opens it.

Arrow hands the bytes of an extension type to the class that is registered for its name; Ray and older versions of
pyarrow register classes that unpickle them. So the names are read here, from the schema that Arrow's files hold and its
writers store in Parquet's footer, and a file with any other than `KNOWN` is refused.

Sources: https://arrow.apache.org/docs/format/Columnar.html (Schema.fbs, Message.fbs),
https://flatbuffers.dev/internals.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

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

DEPTH = 64  # levels of nested columns, or of Thrift's structs

_NAME, _PARAMETERS = b"ARROW:extension:name", b"ARROW:extension:metadata"


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
