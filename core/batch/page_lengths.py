"""The lengths of texts in a page of Parquet, which are counted before Arrow makes room for as many as the page says.

DELTA_LENGTH_BYTE_ARRAY begins with the lengths, DELTA_BYTE_ARRAY with those of the beginnings that are repeated, then
those of the rest; each as DELTA_BINARY_PACKED, whose head says how many there are. Arrow believes it.

Source: https://github.com/apache/parquet-format/blob/master/Encodings.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from .parquet_file import Chunk, Thrift

TIMES = {6: 1, 7: 2}  # an encoding with lengths -> how many times a page has them
CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}  # CompressionCodec; 0 is none
_BLOCK = 1 << 16  # values of the largest block that is read; writers have 128 to 2048
_RUNS = 3  # an encoding of levels, the one in use
COMPRESSED = 7  # the number of is_compressed in the head of a page of the second version


def expanded(page: bytes, size: int, chunk: Chunk, head: dict[int, int], second: bool) -> Iterator[bytes]:
    """The values of a page that becomes `size` bytes, without the levels before them. head: the numbers in the head of
    the first version of pages (3, 4: the encodings of levels), or the second (5, 6: the bytes of the levels, which are
    not compressed). Raises ValueError, OSError."""
    if not second:
        if any(head.get(n, 0) != _RUNS for n in (3, 4)[: chunk.levels]):
            raise ValueError("levels in an encoding that is not read with these values")
        page = _expanded(page, size, chunk.codec)
        at = 0
        for _ in range(chunk.levels):
            at += 4 + int.from_bytes(page[at : at + 4], "little")
        yield page[at:]
        return
    begin = head.get(5, 0) + head.get(6, 0)
    if not 0 <= begin <= size or min(head.get(5, 0), head.get(6, 0)) < 0:
        raise ValueError("levels of a size that does not fit")
    if head.get(COMPRESSED, True):
        yield _expanded(page[begin:], size - begin, chunk.codec)
        return
    yield page[begin:]
    with contextlib.suppress(ValueError, OSError):  # Arrow expands these too, if the footer names an old writer
        yield _expanded(page[begin:], size - begin, chunk.codec)


def _expanded(data: bytes, size: int, codec: int) -> bytes:
    if not codec or not data:
        return data
    found: bytes = pa.decompress(data, size, CODECS[codec], asbytes=True)
    return found


def check(t: Thrift, times: int, count: int) -> None:
    """Raises ValueError, IndexError if lengths are more than `count`, the values of the page."""
    for _ in range(times if t.data else 0):
        block, minis, total = t.varint(), t.varint(), t.varint()
        t.varint()
        if total > count:
            raise ValueError("more lengths than values")
        if not 0 < minis <= block <= _BLOCK:
            raise ValueError(f"blocks of {block} lengths in {minis} parts")
        left = total - 1
        while left > 0:
            t.varint()
            for width in [t.byte() for _ in range(minis)]:
                if left > 0:
                    t.at += width * (block // minis) // 8
                    left -= block // minis
