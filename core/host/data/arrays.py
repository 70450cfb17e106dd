"""Arrays of NumPy as data: stacking them, .npy and .npz files, and IDX files, the format of MNIST."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.base import Dataset
from ...data.memory import ArrayDataset
from ...errors import DTypeError, FormatError, ShapeError
from .. import npy
from ..files import FileBytes, read_regular

# https://www.fon.hum.uva.nl/praat/manual/IDX_file_format.html: the third byte of a file -> big-endian elements
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def stacked(rows: Sequence[Any]) -> NDArray[Any]:
    """Arrays of one shape as one array. Raises ValueError."""
    return np.stack(rows)


class NpyDataset(Dataset):
    """The rows of the array in an .npy file, which stays on disk: an item is read when it is asked for. An array of
    several axes in Fortran order is read into memory now.

    Raises FormatError, also for an item if the file was truncated since; DTypeError, OSError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            descr, fortran, shape, begin = npy.read_header(file, self.path)
            size = os.fstat(file.fileno()).st_size
        if npy.dtype_of(descr) is None:
            raise DTypeError(f"{self.path}: arrays of {descr[:40]!r} are not read")
        if not shape:
            raise FormatError(f"{self.path}: an array without axes has no rows")
        self._dtype, self._shape, self._begin = np.dtype(descr), shape, begin
        expected = self._dtype.itemsize * prod(shape)
        if size - begin != expected:
            raise FormatError(f"{self.path}: {size - begin} bytes of data where its header says {expected}")
        # Not a map: reading the map of a file that was truncated since would end the process.
        self._file = FileBytes(self.path)
        self._whole: NDArray[Any] | None = None
        try:
            np.empty((0, *shape[1:]), descr)
            if not expected or (fortran and len(shape) > 1):
                data = np.frombuffer(self._file.read(begin, expected), descr)
                self._whole = data.reshape(shape, order="F" if fortran else "C")
        except (ValueError, OverflowError) as error:  # NumPy's limits on axes and sizes
            raise FormatError(f"{self.path}: an array of shape {shape}: {error}") from None

    def __reduce__(self) -> Any:  # another process opens the file itself
        return type(self), (self.path,)

    def __len__(self) -> int:
        return self._shape[0]

    def item(self, i: int) -> Any:
        return np.asarray(self.stacked([i])[0])

    def stacked(self, indices: Any) -> NDArray[Any]:
        """The rows at these indices as one array."""
        if self._whole is not None:
            return np.asarray(self._whole[indices])
        places = self._places(indices)
        out = np.empty((len(places), *self._shape[1:]), self._dtype)
        width, at = self._dtype.itemsize * prod(self._shape[1:]), 0
        for run in np.split(places, np.flatnonzero(np.diff(places) != 1) + 1):  # rows that follow each other
            if len(run):
                data = self._file.read(self._begin + int(run[0]) * width, len(run) * width)
                out[at : at + len(run)] = np.frombuffer(data, self._dtype).reshape(len(run), *self._shape[1:])
                at += len(run)
        return out

    def _places(self, indices: Any) -> NDArray[Any]:
        """The numbers of the rows at these indices, which cost what they are, not what the array is."""
        n = len(self)
        if isinstance(indices, slice):
            return np.arange(*indices.indices(n))
        places = np.asarray(indices)
        if places.dtype.kind not in "iu":
            return np.arange(n)[indices]
        if places.size and (places.min() < -n or places.max() >= n):
            raise IndexError(f"the indices reach from {places.min()} to {places.max()}, of {n} rows")
        places = places.astype(np.int64)
        return np.where(places < 0, places + n, places)


class NpzDataset(ArrayDataset):
    """The rows of the arrays in an .npz file, as dicts by their names. names: which arrays; all by default.

    Raises FormatError (also if the lengths differ), DTypeError, OSError.
    """

    def __init__(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        where = os.fspath(path)
        found = {name: np.asarray(x) for name, x in npy.load_archive(path, "numpy").items()}
        lacking = [name for name in names or () if name not in found]
        if lacking or not found:
            there = ", ".join(found) or "none"
            raise FormatError(f"{where} has no array{f' {lacking[0]!r}' if lacking else ''}; its arrays: {there}")
        chosen = {name: found[name] for name in names or found}
        flat = [name for name, x in chosen.items() if not x.ndim]
        if flat:
            raise FormatError(f"{where}: {flat[0]!r} has no axis of rows; name the arrays that have: names=[...]")
        try:
            super().__init__(*chosen.values())
        except ShapeError as error:
            raise FormatError(f"{where}: {error}; name those of one length: names=[...]") from None
        self.names = tuple(chosen)  # any text, which arguments could not be called


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array in an IDX file, which may be compressed with gzip.

    Raises FormatError if it is no such file, does not have the size that its header says, or would expand to more than
    1 GB and 16 times its size; OSError.
    """
    where = os.fspath(path)
    data = read_regular(path)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) if data[:2] == b"\x1f\x8b" else io.BytesIO(data) as file:
            return _idx(file, len(data), where)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{where}: damaged gzip data: {error}") from None


def _idx(file: gzip.GzipFile | io.BytesIO, stored: int, where: str) -> NDArray[Any]:
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in IDX_TYPES:
        raise FormatError(f"{where}: not an IDX file")
    sizes = file.read(4 * head[3])
    shape = [int.from_bytes(sizes[i : i + 4], "big") for i in range(0, len(sizes), 4)]
    if len(sizes) != 4 * head[3] or len(shape) > npy.MAX_RANK:
        raise FormatError(f"{where}: its header of {len(shape)} axes ends early, or has too many")
    dtype = np.dtype(IDX_TYPES[head[2]])
    size, most = (dtype.itemsize * prod(n) for n in (shape, [max(1, n) for n in shape]))
    if most > max(npy.EXPANDED, 16 * stored):  # NumPy limits the axes beside an empty one too
        raise FormatError(f"{where}: its {stored} bytes would become {most}; expand it with gunzip first")
    pieces, left = [], size + 1
    while left and (piece := file.read(min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    if left != 1:
        found = size + 1 - left if left else f"more than {size}"
        raise FormatError(f"{where}: {found} bytes of data where its header says {size}")
    return np.frombuffer(b"".join(pieces), dtype).astype(dtype.newbyteorder("=")).reshape(shape)


_PARTS = {"test": "t10k"}  # how MNIST's files call it


class MnistItem(NamedTuple):
    """image: float32 (28, 28) from 0 to 255. label: 0 to 9."""

    image: Any
    label: Any


class MnistDataset(Dataset):
    """The handwritten digits of MNIST, or another data set in files of the same names and formats.

    `train(folder)` reads `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, `test(folder)` those that begin with
    `t10k-`, each also with `.gz`. Nothing is downloaded. Items are MnistItems.
    """

    def __init__(self, images: NDArray[Any], labels: NDArray[Any]) -> None:
        self.images, self.labels = images, labels

    @classmethod
    def train(cls, folder: str | os.PathLike[str]) -> MnistDataset:
        """The 60,000 digits of training. Raises FormatError, FileNotFoundError, OSError."""
        return cls._read(os.fspath(folder), "train")

    @classmethod
    def test(cls, folder: str | os.PathLike[str]) -> MnistDataset:
        """The 10,000 digits of the test. Raises FormatError, FileNotFoundError, OSError."""
        return cls._read(os.fspath(folder), "t10k")

    @staticmethod
    def read_images(root: str | os.PathLike[str], split: str) -> NDArray[Any]:
        """The images (n, height, width) of "train" or "test". Raises FormatError, FileNotFoundError, OSError."""
        return _part(root, split, "images-idx3-ubyte")

    @staticmethod
    def read_labels(root: str | os.PathLike[str], split: str) -> NDArray[Any]:
        """The labels (n,) of "train" or "test". Raises FormatError, FileNotFoundError, OSError."""
        return _part(root, split, "labels-idx1-ubyte")

    @classmethod
    def _read(cls, folder: str, part: str) -> MnistDataset:
        x, y = cls.read_images(folder, part), cls.read_labels(folder, part)
        if x.ndim != 3 or y.ndim != 1 or len(x) != len(y) or x.dtype != np.uint8 or y.dtype != np.uint8:
            raise FormatError(
                f"{folder}: the files {part}-… hold {x.dtype} {x.shape} and {y.dtype} {y.shape}, not images (n, "
                "height, width) and labels (n,) in bytes"
            )
        return cls(x, y)

    def __len__(self) -> int:
        return len(self.labels)

    def item(self, i: int) -> MnistItem:
        return MnistItem(self.images[i].astype(np.float32), int(self.labels[i]))

    def stacked(self, indices: Any) -> MnistItem:
        """The items at these indices as one MnistItem: images float32 (n, 28, 28), labels int64 (n,)."""
        return MnistItem(self.images[indices].astype(np.float32), self.labels[indices].astype(np.int64))


def _part(root: str | os.PathLike[str], split: str, kind: str) -> NDArray[Any]:
    return read_idx(_found(os.fspath(root), f"{_PARTS.get(split, split)}-{kind}"))


def _found(folder: str, name: str) -> str:
    for path in (os.path.join(folder, name), os.path.join(folder, name + ".gz")):
        if os.path.exists(path):
            return path
    raise FileNotFoundError(2, "No such file, nor with .gz, and nothing is downloaded", os.path.join(folder, name))
