"""Files on a desktop: mapping one for reading, and replacing one so that a failure leaves the old file."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import stat
import tempfile
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
        descriptor, scratch = tempfile.mkstemp(prefix="." + name + ".", suffix=".tmp", dir=folder)
    except OSError as error:
        error.filename = os.fspath(path)  # what was asked for, not the name that was to stand for it
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(scratch, _mode(target))
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise
    _sync_folder(folder)


def _mode(target: str) -> int:
    """The permissions a file at `target` has, or those a new one would get."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


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
