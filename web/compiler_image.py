"""compiler.bin, which the compiler's worker starts from: the files it needs and the memory of its Python."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from packages import Files, is_kept, is_quoted

DATA = 11  # the section of a WebAssembly module with what its memory begins with
PAGE = 1 << 16  # bytes of a page of a WebAssembly memory
INCOMPLETE = "these bytes are no complete WebAssembly module with data: run `npm ci` in web/ again"


def write_image(path: Path, files: Files, image: bytes, wasm: bytes) -> None:
    """Write what compiler/worker.mjs reads, gzipped: the length of a JSON object in 4 bytes, the object of the name and
    length of each file, the files, and Python's memory. What Python has imported needs no file, unless errors quote it.
    What the memory of the module `wasm` begins with is subtracted (exclusive or), as the worker has that anyway."""
    imported = {name for name in files if name.endswith(".pyc") or (is_kept(name) and not is_quoted(name))}
    found = {name: data for name, data in files.items() if name not in imported}
    index = json.dumps({name: len(data) for name, data in found.items()}).encode()
    content = [len(index).to_bytes(4, "little"), index, *found.values(), difference(image, wasm)]
    path.write_bytes(gzip.compress(b"".join(content), 9, mtime=0))


def difference(image: bytes, wasm: bytes) -> bytes:
    """`image`, exclusive or what the memory of a WebAssembly module begins with. Pyodide has a header before the
    memory's pages."""
    first = bytearray(len(image))
    header = len(image) % PAGE
    for at, start, end in segments(wasm):
        first[header + at : header + at + end - start] = wasm[start:end]
    differing = int.from_bytes(image, "little") ^ int.from_bytes(first, "little")
    return differing.to_bytes(len(image), "little")


def segments(wasm: bytes) -> list[tuple[int, int, int]]:
    """(address, start, end) of each part of a WebAssembly module that its memory begins with.

    Raises:
        ValueError: The module ends too early, or has no such part.
    """
    at = 8
    while at < len(wasm):
        number = wasm[at]
        length, at = _unsigned(wasm, at + 1)
        if number == DATA:
            break
        at += length
    else:
        raise ValueError(INCOMPLETE)
    found = []
    count, at = _unsigned(wasm, at)
    for _ in range(count):
        assert wasm[at : at + 2] == b"\0\x41", "an address that is not constant"
        address, at = _unsigned(wasm, at + 2)
        length, at = _unsigned(wasm, at + 1)
        found.append((address, at, at + length))
        at += length
    if at > len(wasm):
        raise ValueError(INCOMPLETE)
    return found


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """(the LEB128 number at a position, the position behind it)."""
    number = shift = 0
    while True:
        if at >= len(data):
            raise ValueError(INCOMPLETE)
        number |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return number, at
