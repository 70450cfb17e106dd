"""The files that `emberlet score` reads, and the parts into which they are split for reading."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyarrow import fs as arrow_fs

from ..errors import EmberletError, FormatError
from ..host import npy

KINDS = {
    "Parquet": (".parquet", ".pq"),
    "CSV": (".csv", ".csv.gz"),
    ".npy": (".npy",),
    "pictures": (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"),
}
LARGE = 64 << 20  # bytes; larger files are read in several parts, if their format allows it
ROW_BITS = 40  # the low bits of an id, which hold the row's number in its file; the bits above hold the file's number


@dataclass(frozen=True)
class File:
    """shown: the path for messages; path: the path for the file system; index: its number among all files."""

    shown: str
    path: str
    index: int
    size: int
    changed: int


@dataclass(frozen=True)
class Part:
    """The part that one task reads: image files, or row groups, rows or the whole of one file."""

    kind: str
    files: tuple[File, ...]
    start: int = 0
    stop: int | None = None

    @property
    def size(self) -> int:
        return sum(f.size for f in self.files)


@dataclass(frozen=True)
class Files:
    """All inputs, which have one kind and one file system."""

    kind: str
    system: Any
    files: tuple[File, ...]


def system_of(location: str) -> tuple[Any, str]:
    """(pyarrow file system, path) of a path or a URI such as s3://bucket/key. Raises EmberletError."""
    if "://" not in location:
        return arrow_fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(location))
    try:
        system, path = arrow_fs.FileSystem.from_uri(location)
    except (ValueError, OSError) as error:
        raise EmberletError(f"{location}: {error}") from None
    return system, path


def kind_of(path: str) -> str | None:
    """The kind of a file, by its extension."""
    lower = path.lower()
    return next((kind for kind, ends in KINDS.items() if lower.endswith(ends)), None)


def _ends() -> str:
    return " ".join(end for ends in KINDS.values() for end in ends)


def find(inputs: Sequence[str]) -> Files:
    """The files of paths and folders, sorted. Folders are searched at any depth for files of a known kind, except names
    that begin with "." or "_". Raises EmberletError if there is none, or if kinds or file systems differ;
    FileNotFoundError."""
    systems: list[Any] = []
    found: list[tuple[str, str, Any]] = []
    for location in inputs:
        system, path = system_of(location)
        if not any(system.equals(other) for other in systems):
            systems.append(system)
        found += list(_under(system, path, location))
    if len(systems) != 1:
        raise EmberletError("the inputs are on different file systems; run score once for each of them")
    if not found:
        raise EmberletError(f"{inputs[0]} holds no supported file; supported are {_ends()}")
    kinds = {kind for kind, _, _ in found}
    if len(kinds) > 1:
        raise EmberletError(
            f"the inputs are of several kinds, {' and '.join(sorted(kinds))}; run score once for each kind"
        )
    unique = {info.path: (shown, info) for _, shown, info in found}
    files = [
        File(shown, info.path, i, info.size or 0, info.mtime_ns or 0)
        for i, (shown, info) in enumerate(unique[path] for path in sorted(unique))
    ]
    return Files(kinds.pop(), systems[0], tuple(files))


def _under(system: Any, path: str, location: str) -> Iterator[tuple[str, str, Any]]:
    """(kind, path for messages, the file system's information) of the file, or of the files in the folder, at
    `path`."""
    info = system.get_file_info(path)
    if info.type == arrow_fs.FileType.NotFound:
        raise FileNotFoundError(2, "No such file or directory", location)
    if info.type != arrow_fs.FileType.Directory:
        if info.type != arrow_fs.FileType.File:
            raise EmberletError(f"{location} is neither a file nor a folder")
        kind = kind_of(path)
        if kind is None:
            raise EmberletError(f"{location}: its extension is not one of {_ends()}")
        yield kind, location, info
        return
    for inner in system.get_file_info(arrow_fs.FileSelector(path, recursive=True)):
        relative = os.path.relpath(inner.path, path)
        if inner.type == arrow_fs.FileType.File and not any(p[0] in "._" for p in relative.split("/")):
            kind = kind_of(inner.path)
            if kind is not None:
                yield kind, f"{location.rstrip('/')}/{relative}", inner


def parts(found: Files, pictures: int) -> list[Part]:
    """The parts to read: large Parquet and .npy files in several parts, and groups of images."""
    if found.kind == "pictures":
        files = found.files
        return [Part("pictures", files[i : i + pictures]) for i in range(0, len(files), pictures)]
    out: list[Part] = []
    for file in found.files:
        count = _units(found, file) if file.size > LARGE else 1
        if count <= 1:
            out.append(Part(found.kind, (file,)))
            continue
        pieces = min(count, -(-file.size // LARGE))
        edges = [count * i // pieces for i in range(pieces + 1)]
        out += [Part(found.kind, (file,), a, b) for a, b in zip(edges, edges[1:], strict=False)]
    return out


def _units(found: Files, file: File) -> int:
    """The number of row groups of a Parquet file, or rows of an .npy file; 1 for files that are read as a whole, and
    for damaged ones, which raise when they are read."""
    try:
        if found.kind == "Parquet":
            from .parquet_file import open_parquet

            with open_parquet(found.system, file.path, file.shown) as held:
                return int(held.metadata.num_row_groups)
        if found.kind == ".npy":
            with found.system.open_input_file(file.path) as opened:
                shape = npy.read_header(opened, file.shown)[2]
                return shape[0] if shape else 1
    except (OSError, ValueError, FormatError):
        pass
    return 1
