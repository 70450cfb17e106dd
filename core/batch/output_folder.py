"""The folder that `emberlet score` writes, and the folder of Ray's checkpoint beside it: which of them are score's."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from pyarrow import fs as arrow_fs

from ..errors import EmberletError
from ..host.folders.folder import Folder, is_ours
from ..host.folders.journals import DRAFT, finish, locked
from ..host.folders.scratch import SCRATCH, SCRATCH_END, is_marked, marked
from ..host.together import remove_drafts
from .files import Files
from .parquet_file import open_parquet

RECORD = "_emberlet.json"  # Parquet readers ignore names that begin with "_"
CHECKPOINT = ".checkpoint"  # beside the folder, because Ray searches the folder itself at every depth for data files
ROWS = "rows"  # Ray's own folder in that of the checkpoint
KEY = "emberlet score"  # in every record of ours
MINE = "checkpoint"
MOST = 1 << 20  # bytes of a record


def checkpoint(folder: str) -> str:
    """The folder that Ray writes its checkpoint into."""
    return f"{folder.rstrip('/')}{CHECKPOINT}/{ROWS}"


def check(system: Any, folder: str, out: str, found: Files, record: dict[str, Any], resume: bool) -> bool:
    """Whether an earlier run finished. Raises EmberletError if the folder, or the one of the checkpoint, holds anything
    that score did not write, or is an input."""
    for file in found.files:
        if found.system.equals(system) and file.path.startswith(folder.rstrip("/") + "/"):
            raise EmberletError(f"{file.shown} is an input and lies in {out}; choose another folder")
    stored = folder + CHECKPOINT
    if not _is_free(system, stored) and not _is_ours(system, stored):
        name = out.rstrip("/") + CHECKPOINT
        raise EmberletError(f"{name} was not made by score, which needs that name; move it, or choose another folder")
    info = system.get_file_info(folder)
    if info.type == arrow_fs.FileType.NotFound:
        return False
    if info.type != arrow_fs.FileType.Directory:
        raise EmberletError(f"{out} is a file; --out names a folder")
    found_there = system.get_file_info(arrow_fs.FileSelector(folder))
    if all(is_marked(info.base_name, SCRATCH, SCRATCH_END) for info in found_there):  # a run that was killed at once
        return False
    before = read_record(system, folder)
    if before is None:
        raise EmberletError(f"{out} is not empty and not an output of score; choose another folder")
    if not resume:
        raise EmberletError(
            f"{out} holds the output of an earlier run; --resume continues it, or choose another folder"
        )
    for key, value in record.items():
        if before.get(key) != value:
            what = {"weights": "the model", "listing": "the input files", "inputs": "the input files"}.get(key, key)
            raise EmberletError(f"{out} was begun with other arguments: {what} changed; choose another folder")
    return bool(before.get("done"))


def _is_free(system: Any, path: str) -> bool:
    if isinstance(system, arrow_fs.LocalFileSystem):
        return not os.path.lexists(path)
    return bool(system.get_file_info(path).type == arrow_fs.FileType.NotFound)


def _is_ours(system: Any, stored: str) -> bool:
    """Whether `begin` made the folder."""
    if isinstance(system, arrow_fs.LocalFileSystem):
        found = os.lstat(stored)
        if os.path.islink(stored) or not is_ours(found):
            return False
    return (read_record(system, stored) or {}).get(KEY) == MINE


def begin(system: Any, folder: str) -> None:
    """Make the folder of the checkpoint, with a record that says whose it is: both at once, or a run that is killed
    between would leave a folder that no later run takes for its own."""
    stored = folder + CHECKPOINT
    if not isinstance(system, arrow_fs.LocalFileSystem):
        write_record(system, stored, {KEY: MINE})
    elif _is_free(system, stored):
        parent, name = os.path.split(stored)
        with Folder.opened(parent) as held, locked(held) as alone:
            _clean(held, alone)
            draft = marked(DRAFT)
            held.mkdir(draft)
            write_record(system, f"{parent}/{draft}", {KEY: MINE})
            held.move(draft, held, name)


def forget(system: Any, folder: str) -> None:
    """Delete the checkpoint, if it is score's; anything else in its folder stays. A call that is killed can be
    repeated."""
    stored = folder + CHECKPOINT
    if _is_free(system, stored) or not _is_ours(system, stored):
        return
    with suppress(FileNotFoundError):
        system.delete_dir(checkpoint(folder))
    if not isinstance(system, arrow_fs.LocalFileSystem):
        system.delete_file(f"{stored}/{RECORD}")
        return
    parent, name = os.path.split(stored)
    with Folder.opened(parent) as held, locked(held) as alone:
        with held.inside(name) as inner:
            if inner.names() != [RECORD]:  # somebody put a file there
                inner.unlink(RECORD)
                return
        _clean(held, alone)
        draft = marked(DRAFT)
        held.move(name, held, draft)
        with held.inside(draft) as inner:
            inner.unlink(RECORD)
        with suppress(OSError):  # somebody put a file there meanwhile
            held.rmdir(draft)


def _clean(folder: Folder, alone: bool) -> None:
    """Finish what killed processes began to put into the folder, whose drafts hold the only copies, then remove what
    others of them left."""
    finish(folder)
    remove_drafts(folder, alone)


def read_record(system: Any, folder: str) -> dict[str, Any] | None:
    """The record of a folder; None if it has none of ours."""
    path = f"{folder}/{RECORD}"
    try:
        if system.get_file_info(path).type != arrow_fs.FileType.File:
            return None
        with system.open_input_stream(path) as file:
            found = json.loads(file.read(MOST))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and KEY in found else None


def write_record(system: Any, folder: str, record: dict[str, Any]) -> None:
    system.create_dir(folder, recursive=True)
    data = json.dumps(record, indent=1).encode()
    path = f"{folder}/{RECORD}"
    if isinstance(system, arrow_fs.LocalFileSystem):
        from ..host.files import atomic_write

        with atomic_write(path) as file:
            file.write(data)
        return
    with system.open_output_stream(path) as stream:
        stream.write(data)


def held(system: Any, folder: str) -> tuple[int, int]:
    """The (rows, files) in the output."""
    rows = files = 0
    for info in system.get_file_info(arrow_fs.FileSelector(folder)):
        if info.path.endswith(".parquet"):
            rows += rows_of(system, info.path)
            files += 1
    return rows, files


def rows_of(system: Any, path: str) -> int:
    """The number of rows of a Parquet file."""
    with open_parquet(system, path, path) as opened:
        return int(opened.metadata.num_rows)
