"""Temporary names, and removing what killed processes left under them."""

from __future__ import annotations

import contextlib
import os
import time
import zlib

from .folder import Folder, is_ours

SCRATCH, SCRATCH_END = ".emberlet-", ".tmp"
STALE = 3600.0  # seconds after which a scratch file that cannot be locked counts as abandoned


def lock(descriptor: int, wait: bool) -> bool | None:
    """Lock a file until it is closed or the process ends.

    Returns False if another process has locked it, None if files cannot be locked.
    """
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, AttributeError, OSError):  # Windows, JupyterLite's empty fcntl, file systems without locks
        return None
    return True


def marked(begin: str, end: str = "") -> str:
    """A new name for something temporary: random digits, and a checksum of them, by which `is_marked` knows it."""
    digits = os.urandom(8).hex()
    return f"{begin}{digits}{_check(digits)}{end}"


def is_marked(name: str, begin: str, end: str = "") -> bool:
    """Whether `marked` made this name: the files of others may begin and end in the same way."""
    inner = name[len(begin) : len(name) - len(end)]
    return name == f"{begin}{inner}{end}" and len(inner) == 24 and inner[16:] == _check(inner[:16])


def _check(digits: str) -> str:
    return f"{zlib.crc32(b'emberlet' + digits.encode()):08x}"


def remove_stale(folder: Folder) -> None:
    """Remove the abandoned scratch files of this user in a folder."""
    with contextlib.suppress(OSError):
        for name in folder.names():
            if is_marked(name, SCRATCH, SCRATCH_END):
                with contextlib.suppress(OSError):
                    _remove_if_stale(folder, name)


def _remove_if_stale(folder: Folder, name: str) -> None:
    with os.fdopen(folder.open(name), "rb") as file:
        found = os.fstat(file.fileno())
        if not is_ours(found) or found.st_nlink != 1:
            return
        locked = lock(file.fileno(), wait=False)
        if locked:
            folder.unlink(name)
    if locked is None and is_old(found):
        folder.unlink(name)  # Windows refuses it while another process writes


def is_old(found: os.stat_result) -> bool:
    """Whether a file that cannot be locked counts as abandoned."""
    return time.time() - found.st_mtime > STALE
