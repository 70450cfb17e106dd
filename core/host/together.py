"""Puts several files into one folder together: all or none, even if the process is killed.

The files are written into a scratch folder beside their destination. A journal, put in place by one rename, then lists
the moves; the files are moved, and the journal is deleted. A process that finds a journal completes its moves. Only one
process at a time works in a folder, if the system can lock folders (POSIX).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from errno import EISDIR
from pathlib import Path
from typing import IO

from ..errors import LoadError
from .files import remove_stale, sync_folder

JOURNAL = ".emberlet-journal"
SCRATCH = ".emberlet-draft-"


@contextlib.contextmanager
def together(folder: Path) -> Iterator[Path]:
    """Context manager of a scratch folder; when the block ends, its files are moved into `folder`, all or none.

    After an exception, `folder` is unchanged. Raises OSError, which names the file.
    """
    with _locked(folder):
        finish(folder)
        for stale in folder.glob(SCRATCH + "*"):  # of processes that were killed: nobody else holds the lock
            import shutil

            shutil.rmtree(stale, ignore_errors=True)
        remove_stale(folder)
        import tempfile

        with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH, ignore_cleanup_errors=True) as name:
            scratch = Path(name)
            try:
                yield scratch
                _put(scratch, sorted(p.name for p in scratch.iterdir()), folder)
            except OSError as error:
                if isinstance(error.filename, str) and Path(error.filename).parent == scratch:
                    error.filename = str(folder / Path(error.filename).name)  # what was asked for
                raise


@contextlib.contextmanager
def synced(path: Path) -> Iterator[IO[bytes]]:
    """Context manager of a new file, which is synced to disk when the block ends. Raises OSError, which always names
    the file, even for a full disk."""
    try:
        with open(path, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def finish_interrupted(path: str | os.PathLike[str]) -> None:
    """Finish an interrupted generation in the folder of the file at `path`.

    Raises LoadError if that replaced a module, because the one in memory may be the old one.
    """
    folder = Path(path).parent
    if not (folder / JOURNAL).exists():
        return
    with _locked(folder):
        modules = [name for name in finish(folder) if name.endswith(".py")]
    if modules:
        raise LoadError(
            f"{folder / modules[0]} was replaced just now, because its generation had been interrupted; import it again"
        )


def finish(folder: Path) -> list[str]:
    """Complete the moves of a journal in the folder; returns the names of the files that were put in place."""
    try:
        said = json.loads((folder / JOURNAL).read_text(encoding="utf-8"))
        moves = [(str(a), str(b)) for a, b in said["moves"]]
        gone, scratch = [str(n) for n in said["gone"]], str(said["scratch"])
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, OSError):
        moves, gone, scratch = [], [], SCRATCH
    names = [scratch, *gone, *(n for move in moves for n in move)]
    if any(os.path.basename(n) != n or n in ("", ".", "..") for n in names) or not scratch.startswith(SCRATCH):
        moves, gone = [], []  # not our journal
    done = _do(folder / scratch, moves, gone, folder)
    (folder / JOURNAL).unlink(missing_ok=True)
    return done


def _put(scratch: Path, names: Sequence[str], folder: Path) -> None:
    """Move the files of the scratch folder into the folder; modules first, because they name the other files."""
    names = sorted(names, key=lambda name: not name.endswith(".py"))
    old = []
    for name in names:
        if (folder / name).is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(folder / name))
        if (folder / name).exists():
            _kept(folder / name, scratch / (name + ".before"))
            old.append(name)
    try:
        _write_journal(folder, scratch, [(name, name) for name in names], [])
        _do(scratch, [(name, name) for name in names], [], folder)
    except BaseException:
        moves, gone = [(name + ".before", name) for name in old], [name for name in names if name not in old]
        with contextlib.suppress(OSError):
            _write_journal(folder, scratch, moves, gone)
        _do(scratch, moves, gone, folder)
        (folder / JOURNAL).unlink(missing_ok=True)
        raise
    (folder / JOURNAL).unlink(missing_ok=True)


def _kept(path: Path, copy: Path) -> None:
    """A second name for a file, or a copy where the file system has no links."""
    try:
        os.link(path, copy)
    except OSError:
        import shutil

        shutil.copy2(path, copy)


def _write_journal(folder: Path, scratch: Path, moves: Sequence[tuple[str, str]], gone: Sequence[str]) -> None:
    draft = scratch / JOURNAL
    with synced(draft) as file:
        file.write(json.dumps({"scratch": scratch.name, "moves": moves, "gone": gone}).encode())
    sync_folder(str(scratch))
    os.replace(draft, folder / JOURNAL)
    sync_folder(str(folder))


def _do(scratch: Path, moves: Sequence[tuple[str, str]], gone: Sequence[str], folder: Path) -> list[str]:
    done = []
    for name, target in moves:
        if (scratch / name).exists():  # otherwise an earlier process moved it
            os.replace(scratch / name, folder / target)
            done.append(target)
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    sync_folder(str(folder))
    return done


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Context manager: an exclusive lock on the folder, if the system can lock folders."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(AttributeError, OSError):  # JupyterLite's empty fcntl, a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
