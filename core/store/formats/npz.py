"""NumPy's `.npz`: read in place if members are not compressed, and written. Needs no NumPy."""

from __future__ import annotations

import io
import zipfile
from functools import partial
from typing import IO, Any

from ... import dtypes
from ...burnpack.limits import Limits
from ...errors import FormatError
from ...host import npy
from ...host.memory import error_text
from ..reading import Bytes
from ..snapshot import Snapshot, bools
from ..stored import Store
from .archives import BytesFile, members_of_zip, open_zip


def read(data: Bytes, where: str, *, limits: Limits, **_: object) -> Store:
    """The arrays of the archive. Raises FormatError. Arrays of texts and objects are listed in `extras`."""
    places = members_of_zip(data, where, stored_only=False)
    found: dict[str, Snapshot] = {}
    extras: dict[str, Any] = {}
    total = 0
    archive = open_zip(data, where)
    names = archive.namelist()
    if names and not any(name.endswith(".npy") for name in names):
        raise FormatError(f"{where}: a zip archive with neither .npy files nor PyTorch's data.pkl")
    for info in archive.infolist():
        if not info.filename.endswith(".npy"):
            continue
        name = info.filename.removesuffix(".npy")
        label = f"{where}: {info.filename[:80]}"
        npy.check_method(info.compress_type, label)
        stored = info.filename in places
        total += info.file_size
        if total > max(npy.EXPANDED, 16 * len(data)) or info.file_size > limits.tensor + npy.HEADER:
            raise FormatError(f"{where}: its {len(data)} bytes would become {total}; save it without compression")
        try:
            head = _stored(data, places[info.filename]) if stored else _unpacked(archive, info, 1 << 14)
            descr, fortran, shape, begin = npy.read_header(head, label)
        except FormatError:
            raise
        except Exception as error:  # exceptions of zipfile and the decompressors, which have no common base
            raise FormatError(f"{label}: {error_text(error)}") from None
        dtype = npy.dtype_of(descr)
        if dtype is None:
            extras[name] = f"an array of {descr[:40]}, which is not read"
            continue
        count = 1
        for n in shape:
            count *= n
        if count >= 1 << 62 or info.file_size - begin != dtype.nbytes(count):
            raise FormatError(
                f"{label}: {info.file_size - begin} bytes of data where its header says {shape} of {descr}"
            )
        if stored:
            start = places[info.filename][0]
            raw: Any = partial(_slice, data, start + begin, start + info.file_size)
        else:
            raw = partial(_member, archive, info, label, begin)
        found[name] = _snapshot(name, dtype, shape, fortran, raw)
    return Store(found, format="npz", origin=where, extras=extras)


def _snapshot(name: str, dtype: dtypes.DType, shape: tuple[int, ...], fortran: bool, raw: Any) -> Snapshot:
    turned = fortran and len(shape) > 1
    lying = shape[::-1] if turned else shape
    make = partial(bools, raw, lying) if dtype is dtypes.bool else None
    s = Snapshot(name, dtype, lying, raw=None if make else raw, make=make)
    if not turned:
        return s
    axes = tuple(range(len(shape)))[::-1]
    return s.mapped(lambda x: x.permute_dims(axes), dtype, shape)


def _slice(data: Bytes, start: int, end: int) -> memoryview:
    return data[start:end]


def _stored(data: Bytes, place: tuple[int, int]) -> Any:
    file = BytesFile(data)
    file.seek(place[0])
    return file


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, count: int) -> io.BytesIO:
    with archive.open(info) as file:
        return io.BytesIO(file.read(count))


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, label: str, begin: int) -> memoryview:
    """A compressed member's elements."""
    try:
        with archive.open(info) as file:
            read = file.read(info.file_size)
    except FormatError:
        raise
    except Exception as error:  # exceptions of zipfile and the decompressors, which have no common base
        raise FormatError(f"{label}: {error_text(error)}") from None
    if len(read) != info.file_size:
        raise FormatError(f"{label} ends after {len(read)} bytes of {info.file_size}")
    return memoryview(read)[begin:]


def dump(store: Store, file: IO[bytes], metadata: dict[str, str]) -> int:
    """Write the store as an .npz file, which has no metadata; returns the bytes written."""
    begin = file.tell()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, s in store.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), npy.dumps(s.tensor()))
    return file.tell() - begin
