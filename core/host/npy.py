"""NumPy's array files, .npy and .npz, without NumPy: what the command line reads inputs from and writes outputs to.

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Object arrays (pickles) are refused.
"""

from __future__ import annotations

import ast
import io
import os
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import IO

from .. import dtypes
from ..backend import Backend, get_backend
from ..errors import DTypeError, FormatError
from ..tensor import Tensor

_MAGIC = b"\x93NUMPY"
# Little-endian NumPy type strings of the dtypes that have one.
_DESCR = {
    "<f8": dtypes.float64, "<f4": dtypes.float32, "<f2": dtypes.float16,
    "<i8": dtypes.int64, "<i4": dtypes.int32, "<i2": dtypes.int16, "|i1": dtypes.int8,
    "<u8": dtypes.uint64, "<u4": dtypes.uint32, "<u2": dtypes.uint16, "|u1": dtypes.uint8, "|b1": dtypes.bool,
}  # fmt: skip
_OF = {dtype: descr for descr, dtype in _DESCR.items()}


def load(path: str | os.PathLike[str], backend: str | Backend | None = None) -> Tensor:
    """The array in the .npy file at `path` as a tensor. Raises OSError, FormatError."""
    with open(path, "rb") as file:
        return _read(file.read(), os.fspath(path), get_backend(backend))


def load_archive(path: str | os.PathLike[str], backend: str | Backend | None = None) -> dict[str, Tensor]:
    """name -> tensor of the .npz file at `path`. Raises OSError, FormatError."""
    found = {}
    where = os.fspath(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = {n.removesuffix(".npy"): archive.read(n) for n in archive.namelist() if n.endswith(".npy")}
        except Exception as error:  # zipfile's and the decompressors' own, which have no common base
            raise FormatError(f"{where}: not an .npz file: {error}") from None
    for name, data in members.items():
        found[name] = _read(data, f"{where}: {name}.npy", get_backend(backend))
    return found


def save_archive(path: str | os.PathLike[str], tensors: Mapping[str, Tensor]) -> None:
    """Write an .npz file, whole or not at all. What NumPy has no type for is stored wider: bfloat16 and 8-, 6- and
    4-bit floats as float32, 4- and 2-bit integers as 8-bit ones."""
    from .files import atomic_write

    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in tensors.items():
            archive.writestr(name + ".npy", dumps(tensor))


def dumps(tensor: Tensor) -> bytes:
    """The tensor as the bytes of an .npy file."""
    if tensor.dtype is dtypes.string:
        texts = tensor.backend.to_list(tensor)
        width = max([1, *map(len, texts)])
        data = b"".join(text.encode("utf-32-le").ljust(4 * width, b"\0") for text in texts)
        return _header(f"<U{width}", tensor.shape) + data
    dtype = stored_dtype(tensor.dtype)
    stored = tensor if tensor.dtype is dtype else tensor.backend.cast(tensor, dtype)
    return _header(_OF[stored.dtype], stored.shape) + bytes(stored.backend.to_bytes(stored))


def stored_dtype(dtype: dtypes.DType) -> dtypes.DType:
    """The dtype in which an .npy file holds elements of `dtype`: itself, or a wider one that NumPy has."""
    if dtype in _OF or dtype is dtypes.string:
        return dtype
    return dtypes.float32 if dtype.is_float else dtypes.int8 if dtype.kind == "int" else dtypes.uint8


def _header(descr: str, shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    # Data begins at a multiple of 64, as NumPy has it.
    text = text.ljust(-(len(_MAGIC) + 5 + len(text)) % 64 + len(text)) + "\n"
    return _MAGIC + b"\1\0" + struct.pack("<H", len(text)) + text.encode("latin-1")


def _read(data: bytes, where: str, backend: Backend) -> Tensor:
    file = io.BytesIO(data)
    descr, fortran, shape = _read_header(file, where)
    rest = memoryview(data)[file.tell() :]
    try:
        x = _elements(rest, descr, tuple(reversed(shape)) if fortran else shape, where, backend)
    except (ValueError, OverflowError, IndexError) as error:  # texts that are none; NumPy's limits of axes and sizes
        raise FormatError(f"{where}: {descr!r} of shape {shape}: {error}") from None
    return backend.permute(x, tuple(range(len(shape)))[::-1]) if fortran and len(shape) > 1 else x


def _elements(data: memoryview, descr: str, shape: tuple[int, ...], where: str, backend: Backend) -> Tensor:
    count = 1
    for n in shape:
        count *= n
    if texts := re.fullmatch(r"<U(\d+)", descr):
        width = 4 * int(texts[1])
        _check_size(len(data), count * width, where)
        words = [str(data[i * width : (i + 1) * width], "utf-32-le").rstrip("\0") for i in range(count)]
        return backend.from_list(words, dtypes.string, shape)
    if descr not in _DESCR:
        raise DTypeError(f"{where}: arrays of {descr!r} are not read; there are {', '.join(sorted(_DESCR))} and <U")
    dtype = _DESCR[descr]
    _check_size(len(data), dtype.nbytes(count), where)
    return backend.from_bytes(data, dtype, shape)


def _check_size(found: int, expected: int, where: str) -> None:
    if found != expected:
        raise FormatError(f"{where}: {found} bytes of data where its header says {expected}")


def _read_header(file: IO[bytes], where: str) -> tuple[str, bool, tuple[int, ...]]:
    if file.read(6) != _MAGIC:
        raise FormatError(f"{where}: not an .npy file")
    version = file.read(2)
    width = {b"\1\0": 2, b"\2\0": 4, b"\3\0": 4}.get(version)
    if width is None:
        raise FormatError(f"{where}: .npy version {version.hex('.')} is not known")
    length = int.from_bytes(file.read(width), "little")
    text = file.read(length)
    try:
        header = ast.literal_eval(text.decode("utf-8" if version == b"\3\0" else "latin-1").strip())
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise FormatError(f"{where}: its .npy header is malformed") from None
    whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not isinstance(descr, str) or not isinstance(fortran, bool) or not whole:
        raise FormatError(f"{where}: its .npy header is malformed")
    return descr, fortran, shape
