"""Keeps the kernels of large plans in the cache folder: writing their text takes longer than compiling it.

A file holds the kernels of one plan, found by a digest of their keys (kernels/alike.py) and of the code that writes
kernels. A missing, damaged or foreign file is ignored, and so is a folder that cannot be written. The most recently
used files are kept, up to `LIMIT` bytes in total.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

PREFIX = "kernels-"
LIMIT = 32 << 20  # bytes of all files
_MOST = 64 << 20  # bytes of one file, unpacked
_CODE = ("fuse", "kernels", "lower", "record", "render", "render/shaders", "run")

Known = tuple[str, Any, list[Any], Any]  # a kernel's name, source, bindings and workgroups, as in kernels/alike.py
_code: list[bytes] = []


class KernelFile:
    """The kernels of a plan, from an earlier process or for later ones. kernels: {key: kernel}, empty if the plan is
    new; what is added is written by `save`."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys
        self.path = _path(keys)
        found = None if self.path is None else _read(self.path, keys)
        self._new = found is None
        self.kernels: dict[str, Known] = found or {}

    def save(self) -> None:
        """Write the kernels of a new plan, if all of them have been added."""
        if self.path is None or not self._new or any(key not in self.kernels for key in self._keys):
            return
        self._new = False
        sources: list[str] = []
        number: dict[str, int] = {}
        kernels = []
        for key in self._keys:
            name, source, bindings, groups = self.kernels[key]
            if source not in number:
                number[source] = len(sources)
                sources.append(source)
            kernels.append([name, number[source], bindings, groups])
        text = json.dumps([sources, kernels]).encode("utf-8")
        _write(self.path, zlib.crc32(text).to_bytes(4, "little") + zlib.compress(text, 1))


def _path(keys: list[str]) -> Path | None:
    """The file for these keys; None if nothing can be kept."""
    from emberlet.host.digests import blake2b

    from .tuning import cache_path

    beside = cache_path()
    if beside is None:
        return None
    if not _code:
        _code.append(digest_of_code())
    if not _code[0]:
        return None
    digest = blake2b("\n".join(keys).encode("utf-8"), digest_size=12, key=_code[0]).hexdigest()
    return beside.with_name(PREFIX + digest)


def digest_of_code(more: tuple[str, ...] = ()) -> bytes:
    """A digest of the code that plans and writes kernels, that of other folders included; empty if it lies in an
    archive."""
    from emberlet.host.digests import blake2b

    found = blake2b(digest_size=32)
    try:
        for path in _files(more):
            found.update(path.name.encode() + b"\0" + path.read_bytes())
    except OSError:
        return b""
    return found.digest()


def _files(more: tuple[str, ...]) -> Iterator[Path]:
    from emberlet import dtypes, shapes, sizes
    from emberlet.backend import protocol

    for module in (dtypes, shapes, protocol):
        yield Path(module.__file__ or "")  # none in a frozen program: a folder, which cannot be read
    here = Path(__file__).parent
    for folder in (Path(sizes.__file__).parent, *[here / name for name in (*_CODE, *more)]):
        for name in sorted(os.listdir(folder)):
            if name.endswith((".py", ".wgsl")):
                yield folder / name
    yield here / "plan" / "make.py"


def _read(path: Path, keys: list[str]) -> dict[str, Known] | None:
    from emberlet.host.files import read_regular

    try:
        data = read_regular(path)
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(data[4:], _MOST)
        if not unpacker.eof or zlib.crc32(text).to_bytes(4, "little") != data[:4]:
            return None
        sources, kernels = json.loads(text)
        if len(kernels) != len(keys):
            return None
        found: dict[str, Known] = {}
        for key, (name, source, bindings, groups) in zip(keys, kernels):
            found[key] = (name, sources[source], bindings, tuple(groups))
    except (OSError, ValueError, TypeError, IndexError, RecursionError, zlib.error):
        return None
    with suppress(OSError):
        os.utime(path)
    return found


def _write(path: Path, data: bytes) -> None:
    from emberlet.host.files import atomic_write

    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _make_room(path.parent, LIMIT - len(data))
        with atomic_write(path) as file:
            file.write(data)


def _make_room(folder: Path, limit: int) -> None:
    """Delete the files that were used longest ago until at most `limit` bytes are left."""
    found = []
    for path in folder.glob(PREFIX + "[0-9a-f]" * 24):
        with suppress(OSError):  # another process deleted it
            about = path.stat()
            found.append((about.st_mtime, about.st_size, path))
    left = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if left <= limit:
            break
        with suppress(OSError):
            path.unlink()
        left -= size
