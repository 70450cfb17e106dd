"""Journals of files that are put into a folder together: finding those that count, reading through them, and
finishing what a killed process began. together.py says how they are used."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from typing import Any

from ...errors import LoadError
from .folder import Folder, identity, is_ours
from .scratch import is_marked

JOURNALS = (".emberlet-journal", *(f".emberlet-journal-{n}" for n in range(1, 4)))  # one that somebody took is skipped
DRAFT = ".emberlet-draft-"
MOST = 16 << 20  # bytes of a journal
Move = tuple[str, str, list[int]]


class Journal:
    """moves: (name in the draft, name in the folder, number of the file); gone: (name in the folder, number of the
    file) to delete; undo: whether the moves put the old files back. Names may lead into one folder: "arm/model.mpy"."""

    def __init__(self, name: str, draft: str, moves: list[Move], gone: list[tuple[str, list[int]]], undo: bool) -> None:
        self.name, self.draft, self.moves, self.gone, self.undo = name, draft, moves, gone, undo


# -- readers ----------------------------------------------------------------------------------------------------------


def current(path: str | os.PathLike[str]) -> str:
    """Where the contents of the file at `path` are: there, or in a draft whose moves were interrupted. Changes nothing.

    Raises LoadError if the files are being put back, which only the next write can finish.
    """
    path = os.fspath(path)
    real = os.path.realpath(path) if os.path.islink(path) else path
    where = os.path.dirname(real)
    for up in (where, os.path.dirname(where)):  # a draft may hold folders
        if not any(os.path.lexists(os.path.join(up, name)) for name in JOURNALS):
            continue
        target = os.path.relpath(real, up or ".").replace(os.sep, "/")
        with contextlib.suppress(OSError), Folder.opened(up or ".") as folder:
            found = _in_draft(folder, target)
            if found:
                return os.path.join(up, found)
    return path


def _in_draft(folder: Folder, target: str) -> str | None:
    """The place of a file in a draft of the folder, if the draft counts and the file is still there."""
    owner = None if folder.descriptor is None else os.fstat(folder.descriptor).st_uid
    for journal in journals(folder, owner):
        at = next((n for n, move in enumerate(journal.moves) if move[1] == target), None)
        if at is None:
            continue
        if journal.undo:
            raise LoadError(
                f"{os.path.join(folder.path, target)}: writing it failed and was interrupted while its old contents "
                "were put back; run the command that writes it again"
            )
        begun = _held(folder, journal, *journal.moves[0]) is None
        if begun and _held(folder, journal, *journal.moves[at]) is not None:
            return f"{journal.draft}/{journal.moves[at][0]}"
    return None


# -- writers ----------------------------------------------------------------------------------------------------------


def is_pending(folder: Folder) -> bool:
    """Whether there may be a journal."""
    return any(folder.stat(name) is not None for name in JOURNALS)


def finish_in(folder: Folder) -> None:
    """Finish what this user's killed processes began to put into a folder."""
    with locked(folder):
        finish(folder)


def finish(folder: Folder) -> None:
    for journal in journals(folder, None):
        do(folder, journal)
        folder.unlink(journal.name)
        with contextlib.suppress(OSError):
            folder.remove(journal.draft)


def _held(folder: Folder, journal: Journal, name: str, target: str, number: list[int]) -> os.stat_result | None:
    """A file of the draft, None if an earlier process moved it."""
    with contextlib.suppress(OSError), folder.inside(journal.draft) as draft, reached(draft, name) as (place, base, _):
        found = place.stat(base)
        if found is not None and stat.S_ISREG(found.st_mode) and identity(found) == number:
            return found
    return None


def do(folder: Folder, journal: Journal) -> None:
    for name, target, number in journal.moves:
        if _held(folder, journal, name, target, number) is not None:
            with folder.inside(journal.draft) as draft, reached(draft, name) as (place, base, _):
                with reached(folder, target, make=True) as (into, new, _):
                    place.move(base, into, new)
    for name, number in journal.gone:
        if number and identity_of(folder, name) == number:
            with reached(folder, name) as (place, base, _):
                place.unlink(base)
    folder.sync()


@contextlib.contextmanager
def reached(folder: Folder, name: str, make: bool = False) -> Iterator[tuple[Folder, str, list[str]]]:
    """Context manager of (the folder that a name leads to, its last part, the folder that was made for it)."""
    inner, slash, base = name.rpartition("/")
    if not slash:
        yield folder, base, []
        return
    fresh = []
    if make and folder.stat(inner) is None:
        folder.mkdir(inner)
        fresh = [inner]
    with folder.inside(inner) as reached:
        yield reached, base, fresh


def identity_of(folder: Folder, name: str) -> list[int]:
    """The device and number of an entry; [] if there is none."""
    with contextlib.suppress(OSError), reached(folder, name) as (place, base, _):
        found = place.stat(base)
        if found is not None:
            return identity(found)
    return []


@contextlib.contextmanager
def locked(folder: Folder) -> Iterator[bool]:
    """Context manager: an exclusive lock on the folder, if the system can lock folders; yields whether it can."""
    try:
        import fcntl

        handle = os.open(folder.path, os.O_RDONLY)  # a lock belongs to an open file, and this one is closed in time
    except (ImportError, OSError):
        yield False
        return
    try:
        locked = False
        with contextlib.suppress(AttributeError, OSError):  # JupyterLite's empty fcntl, a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
            locked = True
        yield locked
    finally:
        os.close(handle)


# -- the file -------------------------------------------------------------------------------------------------------


def journals(folder: Folder, owner: int | None) -> Iterator[Journal]:
    """The journals of a folder that count. owner: of the folder, whose journals count too."""
    for name in JOURNALS:
        if folder.stat(name) is not None:
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
                yield _journal(folder, name, owner)


def _journal(folder: Folder, name: str, owner: int | None) -> Journal:
    """Raises OSError, ValueError, TypeError, KeyError if there is no journal that counts."""
    with os.fdopen(folder.open(name), "rb") as file:
        found = os.fstat(file.fileno())
        if not is_ours(found) and found.st_uid != owner:
            raise ValueError("somebody else's")
        said = json.loads(file.read(MOST))
    draft = folder.stat(str(said["draft"]))
    if said["emberlet"] != "journal" or not is_marked(str(said["draft"]), DRAFT):
        raise ValueError("no journal")
    if draft is None or not stat.S_ISDIR(draft.st_mode) or draft.st_uid != found.st_uid:
        raise ValueError("its draft is not there")
    if identity(draft) != said["number"]:
        raise ValueError("its draft is another one")
    moves = [(_checked(a), _checked(b), _number(n)) for a, b, n in said["moves"]]
    return Journal(
        name, said["draft"], moves, [(_checked(a), _number(n)) for a, n in said["gone"]], said["undo"] is True
    )


def is_inside(name: Any) -> bool:
    """Whether this is a name in a folder, or in a folder in it."""
    parts = name.split("/") if isinstance(name, str) else []
    plain = all(p not in ("", ".", "..") and os.path.basename(p) == p and "\0" not in p for p in parts)
    return plain and 1 <= len(parts) <= 2


def _checked(name: Any) -> str:
    if not is_inside(name):
        raise ValueError("a name that leads elsewhere")
    return str(name)


def _number(number: Any) -> list[int]:
    if not isinstance(number, list) or not all(type(n) is int for n in number):
        raise ValueError("not the number of a file")
    return number
