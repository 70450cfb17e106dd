"""Puts several files into one folder together: all or none, even if the process is killed.

The files are written into a draft, a folder beside their destination. A journal, put in place by one link, then lists
the moves; the files are moved, and the journal is deleted. The first move decides: before it, every reader of emberlet
sees the old files; after it the new ones, which `journals.current` finds in the draft as long as they are there. So
readers change nothing. The next process of the same user that writes into the folder finishes the moves.

A journal counts only if it is a regular file, belongs to the user, and names the draft by its device and number, which
neither an archive nor a copy can bring along. Files of others with these names are left alone, and in nobody's way.
Only one process at a time works in a folder, if the system can lock folders (POSIX).
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from errno import EEXIST, EISDIR
from pathlib import Path
from typing import IO

from .folders.folder import Folder, identity, is_ours
from .folders.journals import DRAFT, JOURNALS, Journal, do, finish, identity_of, journals, locked, reached
from .folders.scratch import is_marked, is_old, marked, remove_stale

BEFORE = ".before"


@contextlib.contextmanager
def together(folder: Path, obsolete: Sequence[str] = ()) -> Iterator[Path]:
    """Context manager of a draft folder; when the block ends, its files, and those in the folders in it, are moved into
    `folder`, all or none. obsolete: names of files in `folder` that are deleted with the same move.

    After an exception, `folder` is unchanged. Raises OSError, which names the file: IsADirectoryError or
    FileExistsError if a folder, a link, a pipe or a device is where a file would go.
    """
    with Folder.opened(folder) as held, locked(held) as alone:
        finish(held)
        remove_drafts(held, alone)
        remove_stale(held)
        name = marked(DRAFT)
        held.mkdir(name)
        draft = folder / name
        try:
            yield draft
            _put(held, name, obsolete)
        except OSError as error:
            if isinstance(error.filename, str) and error.filename.startswith(f"{draft}{os.sep}"):
                error.filename = str(folder / error.filename[len(str(draft)) + 1 :])  # what was asked for
            raise
        finally:
            with contextlib.suppress(OSError):
                if all(journal.draft != name for journal in journals(held, None)):  # else the next writer needs it
                    held.remove(name)


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


def remove_drafts(folder: Folder, alone: bool) -> None:
    """Remove the drafts of this user's processes that were killed: nobody else holds the lock."""
    for name in folder.names():
        found = folder.stat(name) if is_marked(name, DRAFT) else None
        if found is not None and stat.S_ISDIR(found.st_mode) and is_ours(found) and (alone or is_old(found)):
            with contextlib.suppress(OSError):
                folder.remove(name)


def _put(folder: Folder, draft: str, obsolete: Sequence[str]) -> None:
    """Move the files of the draft into the folder; modules first, because they name the other files."""
    with folder.inside(draft) as inner:
        names = sorted(_files(inner), key=lambda name: (not name.endswith(".py"), name))
        moves = [(name, name, identity_of(inner, name)) for name in names]
        old, made = [], []
        for name in names:
            with reached(folder, name, make=True) as (target, base, fresh):
                made += fresh
                found = _free(target, base)
                if found is not None:
                    _kept(target, base, inner, name.replace("/", "-") + BEFORE)
                    old.append((name.replace("/", "-") + BEFORE, name, identity(found)))
        gone = [(name, identity_of(folder, name)) for name in obsolete]
        try:
            journal = _write_journal(folder, inner, Journal("", draft, moves, gone, False))
            do(folder, journal)
        except BaseException:
            new = [(name, number) for name, _, number in moves if name not in [target for _, target, _ in old]]
            undo = Journal("", draft, [(a, b, identity_of(inner, a)) for a, b, _ in old], new, True)
            _undo(folder, inner, undo, made)
            raise
    folder.unlink(journal.name)


def _undo(folder: Folder, inner: Folder, undo: Journal, made: list[str]) -> None:
    with contextlib.suppress(OSError):
        undo = _write_journal(folder, inner, undo)
    do(folder, undo)
    if undo.name:
        folder.unlink(undo.name)
    for name in reversed(made):
        with contextlib.suppress(OSError):
            folder.rmdir(name)


def _files(draft: Folder) -> Iterator[str]:
    for name in draft.names():
        found = draft.stat(name)
        if found is not None and stat.S_ISDIR(found.st_mode):
            with draft.inside(name) as inner:
                yield from (f"{name}/{each}" for each in inner.names())
        else:
            yield name


def _free(target: Folder, name: str) -> os.stat_result | None:
    """The file that will be replaced, None if there is none. Raises OSError if it is not a file."""
    found = target.stat(name)
    path = os.path.join(target.path, name)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise FileExistsError(EEXIST, "is a link, a pipe or a device, which is not replaced", path)
    return found


def _kept(target: Folder, name: str, draft: Folder, copy: str) -> None:
    """A second name for a file, or a copy where the file system has no links."""
    try:
        target.link(name, draft, copy)
    except OSError:
        import shutil

        with os.fdopen(target.open(name), "rb") as old, synced(Path(draft.path, copy)) as new:
            shutil.copyfileobj(old, new)


def _write_journal(folder: Folder, draft: Folder, journal: Journal) -> Journal:
    """Put a journal in place, and return it with its name. An undoing one replaces the one it undoes."""
    own = folder.stat(journal.draft)
    assert own is not None
    said = {"emberlet": "journal", "draft": journal.draft, "number": identity(own), "moves": journal.moves,
            "gone": journal.gone, "undo": journal.undo}  # fmt: skip
    text = JOURNALS[0] + (".undo" if journal.undo else "")
    with synced(Path(draft.path, text)) as file:
        file.write(json.dumps(said).encode())
    draft.sync()
    before = [old.name for old in journals(folder, None) if old.draft == journal.draft]
    for name in before or JOURNALS:
        if before:
            draft.move(text, folder, name)
        elif folder.stat(name) is not None or not _linked(draft, text, folder, name):
            continue
        folder.sync()
        journal.name = name
        return journal
    raise FileExistsError(EEXIST, "is taken by somebody else's file; remove it", os.path.join(folder.path, JOURNALS[0]))


def _linked(draft: Folder, name: str, folder: Folder, new: str) -> bool:
    """Give a file of the draft a name in the folder, unless that is taken."""
    try:
        draft.link(name, folder, new)
    except FileExistsError:
        return False
    except OSError:  # a file system without links; only this process writes here, by the lock
        draft.move(name, folder, new)
    return True
