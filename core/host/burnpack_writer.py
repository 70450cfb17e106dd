"""Writing a burnpack (`.bpk`). Needs cbor2: pip install emberlet[store].

Tensors are written one after the other, so that a file of any size takes the memory of its largest tensor. The layout
is Burn's: names sorted, every tensor at a multiple of 256 bytes. Two names of one tensor share its bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

from .. import dtypes
from ..burnpack import ALIGNMENT, HEADER, MAGIC, MAX_METADATA, MAX_TENSORS, NARROW, VERSION, aligned
from ..errors import DTypeError, FormatError, UnsupportedError
from ..tensor import Tensor
from .files import atomic_write

Buffer = bytes | bytearray | memoryview


class Source:
    """A tensor to be written whose bytes need not exist yet.

    read() gives its bytes, little-endian and row-major, or an iterable of their pieces; it is called once, when the
    writer gets there, and nothing is kept. Two sources are one tensor when they are the same object.
    """

    def __init__(
        self,
        dtype: dtypes.DType,
        shape: Iterable[int],
        read: Callable[[], Buffer | Iterable[Buffer]],
        param_id: int | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = tuple(shape)
        self.read = read
        self.param_id = param_id

    @property
    def nbytes(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return self.dtype.nbytes(count)


def save(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor | Source],
    metadata: Mapping[str, str] | None = None,
    scalars: Mapping[str, int | float | bool] | None = None,
    param_ids: Mapping[str, int] | None = None,
) -> int:
    """Write a burnpack to `path`, atomically; a name without extension gets `.bpk`. Returns its size in bytes.

    tensors: name -> Tensor, or Source for one whose bytes come later. metadata: text -> text. scalars: name -> int,
    float or bool. param_ids: name -> 64-bit identity of a parameter, for Tensors that have one.
    Raises DTypeError for strings, FormatError past a limit of the format, OSError; then the old file is as it was.
    """
    path = os.fspath(path)
    if not os.path.splitext(path)[1]:
        path += ".bpk"
    header, order = _plan(tensors, metadata, scalars, param_ids)
    with atomic_write(path) as file:
        return _write(file, header, order)


def dumps(
    tensors: Mapping[str, Tensor | Source],
    metadata: Mapping[str, str] | None = None,
    scalars: Mapping[str, int | float | bool] | None = None,
    param_ids: Mapping[str, int] | None = None,
) -> bytes:
    """The bytes of the file that `save` would write."""
    import io

    header, order = _plan(tensors, metadata, scalars, param_ids)
    file = io.BytesIO()
    _write(file, header, order)
    return file.getvalue()


def _plan(
    tensors: Mapping[str, Tensor | Source],
    metadata: Mapping[str, str] | None,
    scalars: Mapping[str, int | float | bool] | None,
    param_ids: Mapping[str, int] | None,
) -> tuple[bytes, list[tuple[str, int, Source]]]:
    """(header, metadata and padding; name, position in the data section and source of each tensor to write)."""
    try:
        import cbor2
    except ImportError as error:
        raise UnsupportedError(f"writing a burnpack needs cbor2: pip install emberlet[store] ({error})") from None

    if len(tensors) > MAX_TENSORS:
        raise FormatError(f"{len(tensors)} tensors are more than the {MAX_TENSORS} a burnpack may hold")
    texts = dict(metadata or {})
    for key, value in texts.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise FormatError(f"metadata {key!r}: {value!r} is not a pair of texts")
        if key.startswith(NARROW):
            raise FormatError(f"metadata {key!r}: keys that begin with {NARROW!r} are the writer's own")
    descriptors: dict[str, dict[str, Any]] = {}
    order: list[tuple[str, int, Source]] = []
    seen: dict[int, tuple[int, int]] = {}
    keep = []  # an id() is unique only while its object lives
    end = 0
    for name in sorted(tensors):
        given = tensors[name]
        source = given if isinstance(given, Source) else _source(given)
        keep.append(given)
        if source.dtype.kind == "string":
            raise DTypeError(f"tensor {name!r} holds strings, which a burnpack cannot")
        nbytes = source.nbytes
        where = seen.get(id(given))
        if where is None:
            start = aligned(end)
            end = start + nbytes
            where = seen[id(given)] = (start, end)
            order.append((name, start, source))
        shape = list(source.shape)
        stored: Any = source.dtype.burn
        if source.dtype is dtypes.bool:
            stored = {"Bool": "Native"}
        elif stored is None:
            texts[NARROW + name] = " ".join([source.dtype.name, *map(str, shape)])
            stored, shape = "U8", [nbytes]
        descriptor: dict[str, Any] = {"dtype": stored, "shape": shape, "data_offsets": list(where)}
        param_id = source.param_id if source.param_id is not None else (param_ids or {}).get(name)
        if param_id is not None:
            descriptor["param_id"] = param_id
        descriptors[name] = descriptor
    contents: dict[str, Any] = {"tensors": descriptors}
    if texts:
        contents["metadata"] = dict(sorted(texts.items()))
    if scalars:
        contents["scalars"] = {name: _scalar(name, scalars[name]) for name in sorted(scalars)}
    encoded = cbor2.dumps(contents)
    if len(encoded) > MAX_METADATA:
        raise FormatError(f"{len(encoded)} bytes of metadata are more than the {MAX_METADATA} a burnpack may hold")
    header = MAGIC.to_bytes(4, "little") + VERSION.to_bytes(2, "little") + len(encoded).to_bytes(4, "little")
    data_start = aligned(HEADER + len(encoded))
    return (header + encoded).ljust(data_start, b"\0"), order


def _write(file: IO[bytes], header: bytes, order: list[tuple[str, int, Source]]) -> int:
    size = file.write(header)
    begin = size
    for name, start, source in order:
        size += file.write(bytes(begin + start - size))
        for piece in _pieces(source.read()):
            size += file.write(piece)
        if size != begin + start + source.nbytes:
            raise FormatError(
                f"tensor {name!r} gave {size - begin - start} bytes where {source.dtype} of shape {source.shape} "
                f"takes {source.nbytes}"
            )
    return size


def _pieces(data: Buffer | Iterable[Buffer]) -> Iterator[memoryview]:
    parts: Iterable[Buffer] = (data,) if isinstance(data, (bytes, bytearray, memoryview)) else data
    for part in parts:
        view = memoryview(part)
        if view.nbytes:
            yield view if view.format == "B" and view.ndim == 1 else view.cast("B")


def _source(tensor: Tensor) -> Source:
    return Source(tensor.dtype, tensor.shape, lambda: tensor.backend.to_bytes(tensor))


def _scalar(name: str, value: int | float | bool) -> dict[str, int | float | bool]:
    if isinstance(value, bool):
        return {"Bool": value}
    if isinstance(value, float):
        return {"Float": value}
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return {"Int" if value < 1 << 63 else "UInt": value}
    raise FormatError(f"scalar {name!r}: {value!r} is not a bool, a float or an integer of 64 bits")


__all__ = ["ALIGNMENT", "Source", "dumps", "save"]
