"""Keeps machine code in the folder `native` of the cache folder, so that a later process need not compile it.

The folder and its files are read only if they are the user's own and nobody else may change them. A file begins with a
digest of the rest; one that is damaged, or that another release wrote, is ignored, and so is a folder that cannot be
written. The most recently used files are kept, up to `MOST` of them and `LIMIT` bytes in total.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from emberlet.host.digests import blake2b
from emberlet.host.folders.folder import Folder, is_ours
from emberlet.host.folders.scratch import SCRATCH, SCRATCH_END, is_marked, marked

FOLDER = "native"
KINDS = ("code-", "kernels-", "processor-")  # what the names of files begin with
LIMIT = 64 << 20  # bytes of all files
MOST = 2048  # files: each is looked at before one is written
_DIGEST = 32


def read(name: str) -> bytes | None:
    """What `write` kept under a name, None if there is nothing that may be used."""
    try:
        with _folder() as folder, os.fdopen(folder.open(name), "rb") as file:
            _check(os.fstat(file.fileno()))
            data = file.read(LIMIT)
            with suppress(OSError):  # the folder may be read-only
                os.utime(file.fileno())
    except OSError:
        return None
    kept = data[_DIGEST:]
    return kept if _digest(name, kept) == data[:_DIGEST] else None


def write(name: str, data: bytes) -> None:
    """Keep data under a name of up to 64 letters and digits, which begins with one of KINDS, if that is possible."""
    room = LIMIT - _DIGEST - len(data)
    if room < 0:
        return
    with suppress(OSError), _folder(make=True) as folder:
        _make_room(folder, room)
        scratch = marked(SCRATCH, SCRATCH_END)
        try:
            with os.fdopen(folder.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(_digest(name, data) + data)
            folder.chmod(scratch, 0o600)
            folder.move(scratch, folder, name)
        except BaseException:
            folder.unlink(scratch)
            raise


def _digest(name: str, data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST, key=name.encode()).digest()


@contextmanager
def _folder(make: bool = False) -> Iterator[Folder]:
    """The folder, if only its owner may use it. Raises OSError."""
    from ..tuning import cache_path

    beside = cache_path()
    if beside is None:
        raise FileNotFoundError
    if make:
        beside.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(beside.with_name(FOLDER), 0o700)
    with Folder.opened(beside.parent) as outer, outer.inside(FOLDER) as folder:
        _check(os.fstat(folder.descriptor) if folder.descriptor is not None else os.stat(folder.path))
        yield folder


def _check(found: os.stat_result) -> None:
    """Raise PermissionError if another user owns a file or folder, or may change or list it."""
    if not is_ours(found) or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError


def _make_room(folder: Folder, limit: int) -> None:
    """Delete the files that were used longest ago until at most `limit` bytes and fewer than MOST files are left.
    Others than those of `write` are left alone and do not count."""
    found = []
    for name in folder.names():
        about = folder.stat(name) if name.startswith(KINDS) or is_marked(name, SCRATCH, SCRATCH_END) else None
        if about is not None and stat.S_ISREG(about.st_mode):
            found.append((about.st_mtime, about.st_size, name))
    left = sum(size for _, size, _ in found)
    for count, (_, size, name) in zip(range(len(found), 0, -1), sorted(found), strict=True):
        if left <= limit and count < MOST:
            break
        folder.unlink(name)
        left -= size
