"""The files that `emberlet score` reads: which there are, and how they are cut into parts that are read apart."""

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
LARGE = 64 << 20  # bytes; larger files are read in several parts, where their format lets one
ROW_BITS = 40  # of an id: the number of the row in its file; above them, the number of the file


@dataclass(frozen=True)
class File:
    """shown: the path as a person knows it; path: as the file system has it; index: its number among all files."""

    shown: str
    path: str
    index: int
    size: int
    changed: int


@dataclass(frozen=True)
class Part:
    """What one task reads: files of pictures, or row groups, rows or the whole of one file."""

    kind: str
    files: tuple[File, ...]
    start: int = 0
    stop: int | None = None

    @property
    def size(self) -> int:
        return sum(f.size for f in self.files)


@dataclass(frozen=True)
class Files:
    """All inputs: of one kind, on one file system."""

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
    """The kind of a file by the end of its name."""
    lower = path.lower()
    return next((kind for kind, ends in KINDS.items() if lower.endswith(ends)), None)


def _ends() -> str:
    return " ".join(end for ends in KINDS.values() for end in ends)


def find(inputs: Sequence[str]) -> Files:
    """The files of paths and folders, sorted; of folders, those of a known kind at any depth, but not what begins with
    "." or "_". Raises EmberletError where there is none or where kinds or file systems mix, FileNotFoundError."""
    systems: list[Any] = []
    found: list[tuple[str, str, Any]] = []
    for location in inputs:
        system, path = system_of(location)
        if not any(system.equals(other) for other in systems):
            systems.append(system)
        found += list(_under(system, path, location))
    if len(systems) != 1:
        raise EmberletError("the inputs are on different file systems; score those of each in a run of its own")
    if not found:
        raise EmberletError(f"{inputs[0]} holds no file that is read; there are {_ends()}")
    kinds = {kind for kind, _, _ in found}
    if len(kinds) > 1:
        raise EmberletError(
            f"the inputs are of several kinds, {' and '.join(sorted(kinds))}; score each in a run of its own"
        )
    unique = {info.path: (shown, info) for _, shown, info in found}
    files = [
        File(shown, info.path, i, info.size or 0, info.mtime_ns or 0)
        for i, (shown, info) in enumerate(unique[path] for path in sorted(unique))
    ]
    return Files(kinds.pop(), systems[0], tuple(files))


def _under(system: Any, path: str, location: str) -> Iterator[tuple[str, str, Any]]:
    """(kind, the path to show, what the file system says) of the file or of the files in the folder at `path`."""
    info = system.get_file_info(path)
    if info.type == arrow_fs.FileType.NotFound:
        raise FileNotFoundError(2, "No such file or directory", location)
    if info.type != arrow_fs.FileType.Directory:
        kind = kind_of(path)
        if kind is None:
            raise EmberletError(f"{location}: the end of its name is none of {_ends()}")
        yield kind, location, info
        return
    for inner in system.get_file_info(arrow_fs.FileSelector(path, recursive=True)):
        relative = os.path.relpath(inner.path, path)
        if inner.type == arrow_fs.FileType.File and not any(p[0] in "._" for p in relative.split("/")):
            kind = kind_of(inner.path)
            if kind is not None:
                yield kind, f"{location.rstrip('/')}/{relative}", inner


def parts(found: Files, pictures: int) -> list[Part]:
    """What is read apart: large Parquet and .npy files in several parts, so many pictures at once."""
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
    """Row groups of a Parquet file, rows of an .npy file; 1 for what is read as a whole, and for what is broken: who
    reads it says so."""
    try:
        if found.kind == "Parquet":
            from pyarrow import parquet

            with found.system.open_input_file(file.path) as opened:
                return int(parquet.ParquetFile(opened).num_row_groups)
        if found.kind == ".npy":
            with found.system.open_input_file(file.path) as opened:
                shape = npy.read_header(opened, file.shown)[2]
                return shape[0] if shape else 1
    except (OSError, ValueError, FormatError):
        pass
    return 1
