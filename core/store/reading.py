"""The bytes of a store: a file read in parts, a mapped file, or bytes in memory, with a common interface."""

from __future__ import annotations

import json
import os
from typing import Any, Protocol

from ..burnpack.limits import Limits
from ..errors import FormatError
from ..host.files import FileBytes, map_file

SHARED = 16  # tensors may hold this many times the bytes of their file: some share them
FREE = 1 << 28  # and this many at any rate

Origin = str | os.PathLike[str] | bytes | bytearray | memoryview


class Bytes(Protocol):
    """The interface that formats read from: `len`, and slices that are memoryviews."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> memoryview: ...


class CopiedBytes:
    """Bytes in memory whose slices are copies, so that a slice does not keep the whole alive."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(data).cast("B")

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, part: slice) -> memoryview:
        return memoryview(bytes(self._data[part]))

    def read(self, start: int, count: int) -> bytes:
        """`count` bytes from `start` on; fewer at the end."""
        return bytes(self._data[start : start + count])


def contents(source: Origin, zero_copy: bool, limits: Limits | None = None) -> tuple[Bytes, str]:
    """(the bytes, their name in messages).

    With zero_copy a file is mapped and bytes are shared; else each tensor has memory of its own. Raises OSError,
    FormatError for a file past the limit.
    """
    data: Bytes
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = memoryview(source).cast("B") if zero_copy else CopiedBytes(source)
        where = "bytes"
    else:
        data = map_file(source) if zero_copy else FileBytes(source)
        where = os.fspath(source)
    most = (limits or Limits()).file
    if len(data) > most:
        raise FormatError(f"{where}: {len(data)} bytes are more than the limit of {most}")
    return data, where


def json_of(text: str, **options: Any) -> Any:
    """The JSON in a text. Raises ValueError, also for half of a surrogate pair, which no name may have;
    RecursionError."""
    found = json.loads(text, **options)
    if "\\u" in text:
        json.dumps(found, ensure_ascii=False).encode()
    return found


def check_sharing(where: str, held: int, stored: int) -> None:
    """Raise FormatError if tensors of `held` bytes lie in `stored` ones: a file could name the same bytes any number of
    times, and what reads or converts all of them would exhaust the machine."""
    if held > max(SHARED * stored, FREE):
        raise FormatError(
            f"{where}: its tensors share their bytes: they hold {held} in {stored}; {SHARED} times as many are read"
        )
