"""Reading Arrow's files and streams with bounds: extension types before Arrow opens them, sizes before it expands them.

The format: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc. A file
is a stream between two marks, with a footer that repeats its schema; it is read as the stream that it holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from ...batch.arrow_types import Table, check, extensions
from ...errors import FormatError
from ..files import read_regular
from ..memory import error_text

_MARK = b"ARROW1\0\0"
_DICTIONARY, _BATCH = 2, 3  # Message.header_type
_CONTINUES = b"\xff\xff\xff\xff"


def read_arrow(path: str | os.PathLike[str], bounded: Callable[[int, int, int, str], int]) -> Any:
    """The table of a file. bounded(count, total, size, shown): called with the bytes of each batch before it is read,
    those before it and those of the file; raises what is too much. Raises FormatError, OSError."""
    shown = os.fspath(path)
    data = read_regular(path)
    stream = memoryview(data)[8:] if data[:8] == _MARK else memoryview(data)
    total = 0
    try:
        for place, (metadata, body) in enumerate(_messages(stream)):
            message = Table(bytes(metadata), None, [16 * len(metadata) + 4096])
            kind = message.number(1, 1)
            if place == 0:
                for column, name, parameters in extensions([bytes(_CONTINUES + b"\0\0\0\0" + metadata)], shown):
                    check(name, parameters, f"{shown}: column {column!r}")
            elif kind in (_DICTIONARY, _BATCH):
                total += bounded(_expanded(message, kind, body), total, len(data), shown)
        with pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except FormatError:
        raise
    except (IndexError, ValueError, OSError, pa.ArrowException) as error:
        text = error_text(error) or "it ends early"
        raise FormatError(f"{shown}: not an Arrow file, or a damaged one: {text}") from None
    return table


def _messages(stream: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """(metadata, body) of every message. Raises IndexError, ValueError."""
    at = 0
    while at + 4 <= len(stream):
        if stream[at : at + 4] == _CONTINUES:
            at += 4
        length = int.from_bytes(stream[at : at + 4], "little")
        at += 4
        if length == 0:
            return
        metadata = stream[at : at + length]
        at += length
        if len(metadata) < length:
            raise IndexError
        size = Table(bytes(metadata), None, [64 * len(metadata) + 4096]).number(3, 8)
        body = stream[at : at + size]
        if len(body) < size:
            raise IndexError
        yield metadata, body
        at += size


def _expanded(message: Table, kind: int, body: memoryview) -> int:
    """The bytes that a batch takes in memory: of a compressed buffer those that its first eight bytes say."""
    batch = message.table(2)
    if kind == _DICTIONARY and batch is not None:
        batch = batch.table(1)
    if batch is None:
        raise ValueError("a batch without a header")
    if batch.table(3) is None:
        return len(body)
    total = 0
    for offset, length in batch.pairs(2):
        if length >= 8:
            size = int.from_bytes(body[offset : offset + 8], "little", signed=True)
            total += length if size < 0 else size  # -1: not compressed
    return total
