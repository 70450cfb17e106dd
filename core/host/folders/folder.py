"""A folder that is held open, so that what is found in it is what is changed, even if somebody moves things meanwhile.

No method follows a symbolic link, and none waits for a pipe or a device.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

AT = {os.open, os.stat, os.unlink, os.rename, os.mkdir, os.rmdir, os.chmod} <= os.supports_dir_fd  # not on Windows
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK = getattr(os, "O_NONBLOCK", 0)
BINARY = getattr(os, "O_BINARY", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)


def is_ours(found: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process; always where files have no owners."""
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def identity(found: os.stat_result) -> list[int]:
    """What tells a file from every other, and does not survive a copy: its device and its number there."""
    return [found.st_dev, found.st_ino]


class Folder:
    """The folder at `path`, as `opened` or `inside` made it. Methods raise OSError."""

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path = path
        self.descriptor = descriptor

    @classmethod
    @contextlib.contextmanager
    def opened(cls, path: str | os.PathLike[str]) -> Iterator[Folder]:
        """Context manager of the folder at a path that a user gave, which may lead through links."""
        with cls._held(os.fspath(path), os.fspath(path), None, 0) as folder:
            yield folder

    @contextlib.contextmanager
    def inside(self, name: str) -> Iterator[Folder]:
        """Context manager of a folder in this one. Raises NotADirectoryError or ELOOP for anything else."""
        if self.descriptor is None and not stat.S_ISDIR(os.lstat(self._path(name)).st_mode):
            raise NotADirectoryError(20, "is not a folder", self._path(name))
        with self._held(self._path(name), name, self.descriptor, NOFOLLOW) as folder:
            yield folder

    @classmethod
    @contextlib.contextmanager
    def _held(cls, path: str, name: str, at: int | None, flags: int) -> Iterator[Folder]:
        if not AT:
            yield cls(path, None)
            return
        descriptor = os.open(name, os.O_RDONLY | _DIRECTORY | flags, dir_fd=at)
        try:
            yield cls(path, descriptor)
        finally:
            os.close(descriptor)

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _at(self, name: str) -> str:
        return self._path(name) if self.descriptor is None else name

    def names(self) -> list[str]:
        return sorted(os.listdir(self.path if self.descriptor is None else self.descriptor))

    def stat(self, name: str) -> os.stat_result | None:
        """Of the entry itself, not of what a link points to; None if there is none."""
        try:
            return os.stat(self._at(name), dir_fd=self.descriptor, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """The descriptor of a regular file. Raises OSError for anything else."""
        found = self.stat(name)  # opening a device may already do something
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise OSError(22, "is not a regular file", self._path(name))
        descriptor = os.open(self._at(name), flags | NOFOLLOW | NONBLOCK | BINARY, 0o666, dir_fd=self.descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(22, "is not a regular file", self._path(name))
        return descriptor

    def read(self, name: str, most: int) -> bytes:
        """The bytes of a regular file of at most that many."""
        with os.fdopen(self.open(name), "rb") as file:
            return file.read(most)

    def unlink(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(name), dir_fd=self.descriptor)

    def chmod(self, name: str, mode: int) -> None:
        os.chmod(self._at(name), mode, dir_fd=self.descriptor)

    def rmdir(self, name: str) -> None:
        os.rmdir(self._at(name), dir_fd=self.descriptor)

    def mkdir(self, name: str) -> None:
        os.mkdir(self._at(name), dir_fd=self.descriptor)

    def move(self, name: str, target: Folder, new: str) -> None:
        """Rename a file of this folder into another one, over what is there."""
        os.replace(self._at(name), target._at(new), src_dir_fd=self.descriptor, dst_dir_fd=target.descriptor)

    def link(self, name: str, target: Folder, new: str) -> None:
        """A second name for a file. Raises FileExistsError, and OSError where the file system has no links."""
        if not hasattr(os, "link"):  # in a tab
            raise OSError(95, "links are not supported", self._path(name))
        if self.descriptor is None:
            os.link(self._at(name), target._at(new))
        else:
            os.link(name, new, src_dir_fd=self.descriptor, dst_dir_fd=target.descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Remove a folder in this one, with all that is in it; links are removed, not followed."""
        with self.inside(name) as inner:
            for each in inner.names():
                found = inner.stat(each)
                if found is not None and stat.S_ISDIR(found.st_mode):
                    inner.remove(each)
                else:
                    inner.unlink(each)
        self.rmdir(name)

    def sync(self) -> None:
        """Make renames in the folder durable, if folders can be synced."""
        with contextlib.suppress(OSError):
            if self.descriptor is not None:
                os.fsync(self.descriptor)
