"""The files of a build in a folder: all of the new ones replace all of the old ones, and no other file is touched."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from emberlet.errors import FormatError
from emberlet.host.files import read_regular
from emberlet.host.folders.folder import Folder
from emberlet.host.folders.journals import current, finish_in, is_inside
from emberlet.host.folders.outputs import ExistsError, is_same
from emberlet.host.together import synced, together

from .build import MANIFEST, BuildResult, Options

ABOUT = "build.json"
BYTECODE = "bytecode"
"""The folder of the files for any processor."""

GENERATOR = "emberlet micro build"


def write(
    built: BuildResult, options: Options, out: Path, *, inputs: Iterable[Path] = (), overwrite: bool = False
) -> list[Path]:
    """Write everything under `out` (made if missing): sources, and a folder for each instruction set. Returns the
    paths.

    The files of an earlier build are deleted, so that an old model is not mistaken for the new one. All files change
    together, even if the process is killed. inputs: files that are read, which are never replaced. overwrite: replace
    files that an earlier build did not write, or that were changed since.

    Raises ExistsError, which names the first such file, and OSError; `out` is then unchanged, for example if the disk
    is full.
    """
    files = _files(built, options)
    with _made(out):
        with Folder.opened(out) as folder:
            finish_in(folder)  # what an interrupted build began
        earlier = _written_before(out)
        for name in files:
            _check(out, name, earlier, inputs, overwrite)
        obsolete = [name for name in earlier if name not in files and _is_unchanged(out / name, earlier[name])]
        with together(out, obsolete) as draft:
            for name, data in files.items():
                (draft / name).parent.mkdir(exist_ok=True)
                with synced(draft / name) as file:
                    file.write(data)
        for parent in {(out / name).parent for name in obsolete} - {out}:
            with suppress(OSError):  # it holds something else
                parent.rmdir()
    return [out / name for name in files]


@contextmanager
def _made(out: Path) -> Iterator[None]:
    """Make a folder; if the block fails, remove it again."""
    fresh = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if fresh:
            with suppress(OSError):
                out.rmdir()
        raise


def _check(out: Path, name: str, earlier: Mapping[str, str], inputs: Iterable[Path], overwrite: bool) -> None:
    """Raise ExistsError if a file must not be replaced."""
    path = out / name
    if not os.path.lexists(path):
        return
    for each in inputs:
        if is_same(str(path), str(each)):
            raise ExistsError(f"the build would replace its input {each}; give another --out or --name")
    if overwrite or (name == ABOUT and earlier) or (name in earlier and _is_unchanged(path, earlier[name])):
        return
    how = "was changed since it was built" if name in earlier else "was not written by an earlier build"
    raise ExistsError(f"{path} exists and {how}; --overwrite replaces it")


def _is_unchanged(path: Path, digest: str) -> bool:
    try:
        return not path.is_symlink() and sha256(read_regular(path)).hexdigest() == digest
    except OSError:
        return False


def _files(built: BuildResult, options: Options) -> dict[str, bytes]:
    """The contents of a build, by name in its folder."""
    put = {name: text.encode() for name, text in built.sources.items()} | built.extra
    plans: dict[str, dict[str, list[str]]] = {}
    for arch, files in built.deployed.items():
        folder = arch or BYTECODE
        for file, data in files.items():
            put[f"{folder}/{file}"] = data
        if arch in built.listings:
            put[f"{folder}/{options.name}_kernels.s"] = built.listings[arch].encode()
        urls = [[file, file] for file in files]
        put[f"{folder}/package.json"] = (json.dumps({"urls": urls, "version": "1.0"}, indent=1) + "\n").encode()
        if arch in built.images:
            put[f"{folder}/{options.name}.romfs"] = built.images[arch]
        plans[folder] = {"files": list(files)}
    about = {
        "generator": GENERATOR,
        "name": options.name,
        "weights": options.weights,
        "targets": plans,
        "boards": {board.name: board.arch for board in options.boards},
        "partition": None if options.partition is None else vars(options.partition),
        "written": {name: sha256(data).hexdigest() for name, data in put.items()},
    }
    put[ABOUT] = (json.dumps(about, indent=1) + "\n").encode()
    return put


def including(out: Path, target: str) -> str:
    """The line for the manifest of one's own firmware that freezes a build. target: a folder of the build."""
    path = out / target / MANIFEST if target != BYTECODE else out / MANIFEST
    return f'include("{path.resolve().as_posix()}")'


def read_about(out: Path) -> dict[str, Any]:
    """The description that `micro build` wrote. Raises FormatError."""
    try:
        about = json.loads(read_regular(current(out / ABOUT)).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{out}: expected a folder that `emberlet micro build` wrote: {error}") from None
    if not isinstance(about, dict) or not _is_plain(about):
        raise FormatError(f"{out / ABOUT}: not written by `emberlet micro build`")
    return about


def _is_plain(about: Mapping[str, Any]) -> bool:
    """Whether a description holds what a build's does: its names become code on a board, and paths here."""
    name, targets, boards = about.get("name"), about.get("targets"), about.get("boards")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or "weights" not in about:
        return False
    if not isinstance(targets, dict) or not isinstance(boards, dict):
        return False
    files = [target.get("files") if isinstance(target, dict) else None for target in targets.values()]
    words = [*targets, *boards, *boards.values()]
    if not all(isinstance(each, list) for each in files):
        return False
    words += [word for each in files for word in each or ()]
    partition = about.get("partition") or {"chip": "", "start": 0, "label": ""}
    kinds = {"chip": str, "start": int, "label": str}
    if not isinstance(partition, dict) or any(type(partition.get(key)) is not kind for key, kind in kinds.items()):
        return False
    return set(partition) == set(kinds) and all(isinstance(w, str) and re.fullmatch(r"\w[\w.-]*", w) for w in words)


def _written_before(out: Path) -> dict[str, str]:
    """The files of an earlier build with their digests; none if the folder has no description of ours."""
    try:
        about = read_about(out)
        written = about["written"]
        if about["generator"] != GENERATOR or not all(map(is_inside, written)):
            return {}
        return {name: str(digest) for name, digest in written.items()}
    except (FormatError, AttributeError, KeyError, TypeError):
        return {}
