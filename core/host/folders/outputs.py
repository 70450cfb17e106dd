"""What a command may write: no file that it reads, none that it did not create, and only endings that it knows."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from errno import EISDIR

from ...errors import EmberletError
from .folder import BINARY, NONBLOCK

HEAD, TAIL = 4 << 20, 1 << 16  # bytes at the ends of a file in which its mark is


class ExistsError(EmberletError, FileExistsError):
    """A file that must not be overwritten."""

    __str__ = Exception.__str__


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--overwrite", action="store_true", help="replace a file that this command did not write")


def check(
    path: str,
    *,
    inputs: Iterable[str] = (),
    endings: Sequence[str] = (),
    mark: bytes = b"",
    overwrite: bool = False,
    option: str = "--out",
) -> None:
    """Raise unless a command may write a file at `path`.

    inputs: the files that it reads; endings: those that it can write, all if there are none; mark: bytes that are in
    each file that it writes: only such a file is replaced, unless `overwrite` is set.

    Raises EmberletError, ExistsError, IsADirectoryError, OSError.
    """
    if endings and not path.lower().endswith(tuple(endings)):
        raise EmberletError(f"{option} {path}: expected a name that ends in {listed(endings)}")
    for each in inputs:
        if is_same(path, each):
            raise EmberletError(f"{option} {path} is an input ({each}); give another name")
    if not os.path.lexists(path):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(EISDIR, "is a folder; give the name of a file in it", path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise ExistsError(f"{path} is a pipe or a device, which is not replaced")
    if not overwrite and not (mark and os.path.isfile(path) and is_made(path, mark)):
        raise ExistsError(f"{path} exists and was not written by this command; --overwrite replaces it")


def is_same(a: str, b: str) -> bool:
    """Whether two paths lead to one file, through links or in another spelling."""
    try:
        return os.path.samefile(a, b)
    except OSError:
        return os.path.normcase(os.path.realpath(a)) == os.path.normcase(os.path.realpath(b))


def is_made(path: str, mark: bytes) -> bool:
    """Whether the mark is in the file. Raises OSError."""
    with os.fdopen(os.open(path, os.O_RDONLY | NONBLOCK | BINARY), "rb") as file:
        if mark in file.read(HEAD):
            return True
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        return mark in file.read(TAIL)


def listed(words: Sequence[str]) -> str:
    """The words as in: a, b or c."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def model_files(path: str) -> list[str]:
    """The files of a model: its own, and the weights beside a generated module."""
    stem, ending = os.path.splitext(path)
    return [path, stem + ".bpk"] if ending == ".py" else [path]


def given_files(words: Iterable[str]) -> list[str]:
    """The files of NAME=FILE and FILE, as --input takes them."""
    return [word.partition("=")[2] or word for word in words]
