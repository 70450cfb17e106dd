"""Files on a desktop: mapping one for reading, and replacing one so that a failure leaves the old file."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import stat
import sys
import threading
import weakref
from collections.abc import Iterator
from errno import EINVAL, EISDIR

from ..errors import FormatError
from .folders.folder import BINARY, NONBLOCK, Folder
from .folders.scratch import SCRATCH, SCRATCH_END, lock, marked, remove_stale

LARGE = 1 << 18  # bytes of a tensor that gets pages of its own

# Device names on Windows, with any extension: con.py cannot be created there.
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file#naming-conventions
RESERVED_BY_WINDOWS = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in range(10))]
)


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of the file at `path`, mapped read-only: pages are read when first touched.

    The mapping lives as long as the memoryview or anything that shares its bytes. Raises OSError.
    """
    with _opened(path) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or os.fstat(file.fileno()).st_size == 0:
            return memoryview(file.read())  # pipes and empty files cannot be mapped
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _opened(path: str | os.PathLike[str]) -> io.FileIO:
    """The file at `path`, or where it is while an interrupted write waits to be finished (folders/journals.py)."""
    from .folders.journals import current

    while True:
        place = current(path)
        try:
            return open(place, "rb", buffering=0)
        except FileNotFoundError:
            if place == os.fspath(path):
                raise  # otherwise another process has just finished the write


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file whose name nobody gave: it may be a link, but a pipe or device is an error, not waited for.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | NONBLOCK | BINARY)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(EINVAL, "is not a regular file", os.fspath(path))
        return file.read()


class FileBytes:
    """The bytes of an open file: each slice is read on access into memory of its own.

    If the file is truncated or overwritten meanwhile, reading raises an error or returns other bytes, but never causes
    a signal. Raises OSError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._lock = threading.Lock()
        self._file = _opened(path)
        weakref.finalize(self, self._file.close)
        self._whole = None
        if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self._size = os.fstat(self._file.fileno()).st_size
        else:  # a pipe is read once
            self._whole = self._file.readall()
            self._size = len(self._whole)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> memoryview:
        start, stop, _ = part.indices(self._size)
        stop = max(start, stop)
        if self._whole is not None:
            return memoryview(self._whole[start:stop])
        if stop - start >= LARGE and sys.platform == "linux":
            return self._read_large(start, stop - start)
        return memoryview(self.read(start, stop - start))

    def _read_large(self, start: int, count: int) -> memoryview:
        """As `read`, into huge pages, where native plans use it without a copy: 28 page faults instead of 4,042 for
        8 MB, and a third of the time."""
        from .sharing.address_ranges import memory_for_tensor

        view, done = memory_for_tensor(count), 0
        if view is None:
            view = self._pages(count)
        # as in `_piece`, from no place that processes share
        while done < count and (got := os.preadv(self._file.fileno(), [view[done:]], start + done)):
            done += got
        if done < count:
            raise self._truncated(count - done)
        return view.toreadonly()

    def _pages(self, count: int) -> memoryview:
        try:
            memory = mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:  # like a failed allocation, not like a failed read
            raise MemoryError(f"{self._path}: no memory for {count} bytes") from error
        with contextlib.suppress(OSError):  # a kernel built without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        return memoryview(memory)

    def _truncated(self, missing: int) -> FormatError:
        return FormatError(f"{self._path}: was truncated after it was opened; {missing} bytes are missing")

    def read(self, start: int, count: int) -> bytes:
        """`count` bytes from `start` on. Raises FormatError if the file has become shorter."""
        pieces = []
        while count > 0 and (piece := self._piece(start, count)):
            pieces.append(piece)
            start, count = start + len(piece), count - len(piece)
        if count:
            raise self._truncated(count)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _piece(self, start: int, count: int) -> bytes | None:
        if hasattr(os, "pread"):  # which leaves alone the place that processes share after a fork
            return os.pread(self._file.fileno(), count, start)
        with self._lock:
            self._file.seek(start)
            return self._file.read(count)


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[io.BufferedWriter]:
    """Context manager: a file that replaces `path` when the block ends, or is discarded after an exception.

    It is written beside `path`, synced to disk and renamed over it. A symbolic link keeps its target, and an existing
    file its permissions. Half-written files of this user's killed processes in the folder are removed. Raises OSError,
    which names the file; IsADirectoryError if `path` is a folder.
    """
    target = os.path.realpath(path)
    if os.path.isdir(target) or os.fspath(path).endswith(("/", os.sep)):
        raise IsADirectoryError(EISDIR, "is a folder; give the name of a file in it", os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(EINVAL, "is a pipe or a device; give the name of a file", os.fspath(path))
    where, name = os.path.split(target)
    with contextlib.ExitStack() as held:
        try:
            folder = held.enter_context(Folder.opened(where))
            _tidy(folder)
            descriptor, scratch = _scratch_file(folder)
        except OSError as error:
            error.filename, error.filename2 = os.fspath(path), None  # the requested path, not the scratch file's
            raise
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if os.name == "posix":  # while it is locked, no process takes it for stale
                    _take_place(folder, scratch, name)
            if os.name != "posix":  # Windows renames closed files only
                _take_place(folder, scratch, name)
        except BaseException as error:
            with contextlib.suppress(OSError):
                folder.unlink(scratch)
            if isinstance(error, OSError) and error.errno is not None and _names(error, scratch):
                raise OSError(error.errno, error.strerror, os.fspath(path)) from error  # a full disk names no file
            raise
        folder.sync()


def _names(error: OSError, scratch: str) -> bool:
    return error.filename is None or os.path.basename(str(error.filename)) == scratch


def _tidy(folder: Folder) -> None:
    """Finish or remove what killed processes left in a folder, before something is written there."""
    from .folders import journals

    if journals.is_pending(folder):
        journals.finish_in(folder)
    remove_stale(folder)


def _take_place(folder: Folder, scratch: str, target: str) -> None:
    old = folder.stat(target)
    if old is not None:  # a new file keeps the permissions from the system
        folder.chmod(scratch, stat.S_IMODE(old.st_mode))
    folder.move(scratch, folder, target)


def _scratch_file(folder: Folder) -> tuple[int, str]:
    """(descriptor, name) of a new locked file in `folder`, with the process's default permissions.

    `tempfile` would make it private, and the umask can be read only by changing it, for every thread.
    """
    while True:
        scratch = marked(SCRATCH, SCRATCH_END)
        with contextlib.suppress(FileExistsError):
            descriptor = folder.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            if not lock(descriptor, wait=True) or os.fstat(descriptor).st_nlink:
                return descriptor, scratch
            os.close(descriptor)  # another process took it for stale before it was locked
