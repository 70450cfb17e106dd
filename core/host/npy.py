"""Reading and writing NumPy's .npy and .npz files without NumPy, for the command line's inputs and outputs.

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Object arrays (pickles) are refused.
"""

from __future__ import annotations

import ast
import io
import os
import re
import stat
import struct
from collections.abc import Callable, Mapping
from math import prod
from typing import IO

from .. import dtypes
from ..backend import Backend, get_backend
from ..errors import DTypeError, EmberletError, FormatError
from ..tensor import Tensor
from .memory import error_text

COMMENT = b"written by emberlet"  # of the archives that are written
_MAGIC = b"\x93NUMPY"
# Little-endian NumPy type strings of the dtypes that have one.
_DESCR = {
    "<f8": dtypes.float64, "<f4": dtypes.float32, "<f2": dtypes.float16,
    "<i8": dtypes.int64, "<i4": dtypes.int32, "<i2": dtypes.int16, "|i1": dtypes.int8,
    "<u8": dtypes.uint64, "<u4": dtypes.uint32, "<u2": dtypes.uint16, "|u1": dtypes.uint8, "|b1": dtypes.bool,
}  # fmt: skip
HEADER = 10_000  # bytes, NumPy's own limit
MAX_RANK = 64
EMPTY_TEXTS = 1 << 16  # strings of no characters, which take no bytes of a file
EXPANDED = 1 << 30  # bytes to which a small archive may expand
_OF = {dtype: descr for descr, dtype in _DESCR.items()}


Check = Callable[[str, dtypes.DType, tuple[int, ...]], None]
"""(name, dtype, shape) of an array, before its elements are read; raises what is to be raised."""


def load(
    path: str | os.PathLike[str], backend: str | Backend | None = None, check: Check | None = None, name: str = ""
) -> Tensor:
    """The array in the .npy file at `path` as a tensor.

    Raises OSError, FormatError, DTypeError, and whatever `check` raises; `name` is passed to it.
    """
    where = os.fspath(path)
    with open(path, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a pipe does not say how long it is
            data = file.read()
            return read(io.BytesIO(data), len(data), where, get_backend(backend), check, name)
        return read(file, os.fstat(file.fileno()).st_size, where, get_backend(backend), check, name)


def load_archive(
    path: str | os.PathLike[str], backend: str | Backend | None = None, check: Check | None = None
) -> dict[str, Tensor]:
    """name -> tensor of the .npz file at `path`.

    Raises OSError, FormatError (also for a decompression bomb), DTypeError, and whatever `check` raises.
    """
    with open(path, "rb") as file:
        return read_archive(file, os.fstat(file.fileno()).st_size, os.fspath(path), get_backend(backend), check)


def read_archive(
    file: IO[bytes], stored: int, where: str, backend: Backend, check: Check | None = None
) -> dict[str, Tensor]:
    """`load_archive` of an open file that is `stored` bytes long."""
    import zipfile

    found = {}
    try:
        with zipfile.ZipFile(file) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            for m in members:
                check_method(m.compress_type, f"{where}: {m.filename[:80]}")
            total = sum(m.file_size for m in members)
            if total > max(EXPANDED, 16 * stored):
                raise FormatError(
                    f"{where}: its {stored} bytes would become {total}; save it without compression to have it read"
                )
            for m in members:
                name = m.filename.removesuffix(".npy")
                with archive.open(m) as member:
                    found[name] = read(member, m.file_size, f"{where}: {m.filename}", backend, check, name)
    except EmberletError:
        raise
    except Exception as error:  # zipfile's and the decompressors' own, which have no common base
        raise FormatError(f"{where}: not an .npz file: {error_text(error)}") from None
    return found


def check_method(method: int, label: str) -> None:
    """Raise FormatError unless zip's compression method `method` is one of NumPy's: none (0) or deflate (8). Of the
    others, zipfile unpacks all that it has read, however few bytes were asked for."""
    if method not in (0, 8):
        raise FormatError(f"{label} is compressed by zip's method {method}, not by deflate; write it with NumPy")


def save_archive(path: str | os.PathLike[str], tensors: Mapping[str, Tensor]) -> None:
    """Write an .npz file, atomically. Dtypes that NumPy does not have are stored as wider ones: bfloat16 and 8-, 6- and
    4-bit floats as float32, 4- and 2-bit integers as 8-bit ones."""
    import zipfile

    from .files import atomic_write

    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = COMMENT
        for name, tensor in tensors.items():
            archive.writestr(name + ".npy", dumps(tensor))


def dumps(tensor: Tensor) -> bytes:
    """The tensor as the bytes of an .npy file."""
    if tensor.dtype is dtypes.string:
        texts = tensor.backend.to_list(tensor)
        if any(text.endswith("\0") for text in texts):
            raise DTypeError("a string ends in a zero character, which an .npy file cannot hold")
        width = max([1, *map(len, texts)])
        data = b"".join(text.encode("utf-32-le").ljust(4 * width, b"\0") for text in texts)
        return _header(f"<U{width}", tensor.shape) + data
    dtype = stored_dtype(tensor.dtype)
    stored = tensor if tensor.dtype is dtype else tensor.backend.cast(tensor, dtype)
    return _header(_OF[stored.dtype], stored.shape) + bytes(stored.backend.to_bytes(stored))


def stored_dtype(dtype: dtypes.DType) -> dtypes.DType:
    """The dtype in which an .npy file stores elements of `dtype`: itself, or a wider one that NumPy has."""
    if dtype in _OF or dtype is dtypes.string:
        return dtype
    return dtypes.float32 if dtype.is_float else dtypes.int8 if dtype.kind == "int" else dtypes.uint8


def _header(descr: str, shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    # Data begins at a multiple of 64, as in NumPy.
    text = text.ljust(-(len(_MAGIC) + 5 + len(text)) % 64 + len(text)) + "\n"
    return _MAGIC + b"\1\0" + struct.pack("<H", len(text)) + text.encode("latin-1")


def dtype_of(descr: str) -> dtypes.DType | None:
    """The dtype of NumPy's `descr`, or None if it is not numeric."""
    return _DESCR.get(descr)


def read(
    file: IO[bytes], length: int, where: str, backend: Backend, check: Check | None = None, name: str = ""
) -> Tensor:
    """The array in `file`, which is `length` bytes long; only the bytes declared by its header are read."""
    descr, fortran, shape, begin = read_header(file, where)
    count = prod(shape)
    texts = re.fullmatch(r"<U([0-9]{1,9})", descr)
    if texts:
        dtype, expected = dtypes.string, 4 * int(texts[1]) * count
        if texts[1].strip("0") == "" and count > EMPTY_TEXTS:
            raise FormatError(f"{where}: {count} empty strings; at most {EMPTY_TEXTS} are read")
    elif descr in _DESCR:
        dtype = _DESCR[descr]
        expected = int(dtype.nbytes(count))
    else:
        raise DTypeError(
            f"{where}: arrays of {descr[:40]!r} are not read; there are {', '.join(sorted(_DESCR))} and <U"
        )
    if length - begin != expected:
        raise FormatError(f"{where}: {length - begin} bytes of data where its header says {expected}")
    if check is not None:
        check(name, dtype, shape)
    data = memoryview(file.read(expected))
    if len(data) != expected:
        raise FormatError(f"{where}: ends after {len(data)} bytes of {expected}")
    lying = tuple(reversed(shape)) if fortran else shape
    try:
        if texts:
            width = 4 * int(texts[1])
            words = [str(data[i * width : (i + 1) * width], "utf-32-le").rstrip("\0") for i in range(count)]
            x = backend.from_list(words, dtype, lying)
        else:
            x = backend.from_bytes(data, dtype, lying)
    except (ValueError, OverflowError, IndexError) as error:  # invalid texts; NumPy's limits on axes and sizes
        raise FormatError(f"{where}: {descr!r} of shape {shape}: {error}") from None
    return backend.permute(x, tuple(range(len(shape)))[::-1]) if fortran and len(shape) > 1 else x


def read_header(file: IO[bytes], where: str) -> tuple[str, bool, tuple[int, ...], int]:
    """(dtype in NumPy's notation, whether it is in Fortran order, shape, offset of the data)"""
    if file.read(6) != _MAGIC:
        raise FormatError(f"{where}: not an .npy file")
    version = file.read(2)
    width = {b"\1\0": 2, b"\2\0": 4, b"\3\0": 4}.get(version)
    if width is None:
        raise FormatError(f"{where}: .npy version {version.hex('.')} is not known")
    length = int.from_bytes(file.read(width), "little")
    if length > HEADER:
        raise FormatError(f"{where}: its .npy header is {length} bytes long; at most {HEADER} are read")
    text = file.read(length)
    try:
        header = ast.literal_eval(text.decode("utf-8" if version == b"\3\0" else "latin-1").strip())
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise FormatError(f"{where}: its .npy header is malformed") from None
    whole = isinstance(shape, tuple) and all(type(n) is int and 0 <= n < 1 << 63 for n in shape)
    if not isinstance(descr, str) or not isinstance(fortran, bool) or not whole or len(shape) > MAX_RANK:
        raise FormatError(f"{where}: its .npy header is malformed")
    return descr, fortran, shape, 8 + width + length
