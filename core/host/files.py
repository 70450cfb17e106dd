"""Files on a desktop: mapping one for reading, and replacing one so that a failure leaves the old file."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import secrets
import stat
from collections.abc import Iterator


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of the file at `path`, mapped read-only: pages are read when first touched.

    The mapping lives as long as the memoryview or anything that shares its bytes. Raises OSError.
    """
    with open(path, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or os.fstat(file.fileno()).st_size == 0:
            return memoryview(file.read())  # pipes and empty files cannot be mapped
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[io.BufferedWriter]:
    """A file to write that takes the place of `path` when the block ends, whole or, after an exception, not at all.

    It is written beside `path`, synced to disk and renamed over it. A symbolic link keeps pointing where it did, an
    existing file keeps its permissions.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    try:
        descriptor, scratch = _scratch_file(folder, name)
    except OSError as error:
        error.filename = os.fspath(path)  # what was asked for, not the name that was to stand for it
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):  # a new file has the permissions that the system gave it
            os.chmod(scratch, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise
    _sync_folder(folder)


def _scratch_file(folder: str, name: str) -> tuple[int, str]:
    """(descriptor, path) of a new file in `folder`, with the permissions that the process gives to new files.

    `tempfile` would make it private, and what the umask is can be read only by changing it, for every thread.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        scratch = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
        with contextlib.suppress(FileExistsError):
            return os.open(scratch, flags, 0o666), scratch


def _sync_folder(folder: str) -> None:
    """Make the rename itself durable, where folders can be synced."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
