"""Copies a model's weights from its file to a burnpack or into a module, one tensor at a time."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from emberlet import dtypes
from emberlet.backend import Backend, get_backend
from emberlet.dtypes import DType
from emberlet.errors import EmberletError
from emberlet.tensor import Tensor

from .ir.value import Buffer, Value

if TYPE_CHECKING:
    from emberlet.host import burnpack_writer

DIGEST = "generated"


def sources(record: Mapping[str, Value], half: bool) -> dict[str, burnpack_writer.Source]:
    """The writer's sources: equal values share one source, and so one place in the file."""
    shared: dict[Hashable, burnpack_writer.Source] = {}
    out = {}
    found = _halves(record) if half else {}
    for name, value in record.items():
        dtype = found.get(name, value.dtype)
        key = value.content(), dtype.name
        if key not in shared:
            shared[key] = _source(value, dtype)
        out[name] = shared[key]
    return out


def _halves(record: Mapping[str, Value]) -> dict[str, DType]:
    """The dtypes of the weights where floats are stored as float16, as far as that holds them."""
    from emberlet.module.narrowing import choose

    wide = (dtypes.float32, dtypes.float64)
    given = {name: (value.dtype, value.tensor) for name, value in record.items()}
    return choose(given, lambda dtype: dtypes.float16 if dtype in wide else dtype)


def _source(value: Value, dtype: DType) -> burnpack_writer.Source:
    def read() -> Buffer:
        if dtype is value.dtype:
            return value.raw()
        x = value.tensor()
        stored: Buffer = x.backend.to_bytes(x.backend.cast(x, dtype))
        return stored

    from emberlet.host import burnpack_writer

    return burnpack_writer.Source(dtype, value.shape, read)


def save(path: str | os.PathLike[str], record: Mapping[str, Value], half: bool, metadata: Mapping[str, str]) -> int:
    """Write the burnpack; returns its size. A digest in its metadata shows whether the weights were changed later."""
    return save_sources(path, sources(record, half), metadata)


def save_sources(
    path: str | os.PathLike[str], given: Mapping[str, burnpack_writer.Source], metadata: Mapping[str, str]
) -> int:
    """`save` for the writer's sources."""
    from emberlet.host import burnpack_writer

    digest = _digest((name, given[name].read()) for name in sorted(given))
    return burnpack_writer.save(path, given, {**metadata, DIGEST: digest})


def as_generated(path: str | os.PathLike[str]) -> bool:
    """Whether a burnpack still holds the weights that `save` wrote; False for a burnpack that something else wrote."""
    from emberlet.burnpack import Burnpack

    try:
        pack = Burnpack.from_file(path, zero_copy=True)
        return pack.metadata.get(DIGEST) == _digest((name, pack.raw(name)) for name in sorted(pack.tensors))
    except EmberletError:
        return False


def _digest(weights: Iterable[tuple[str, Buffer]]) -> str:
    from hashlib import sha256

    found = sha256()
    for name, data in weights:
        found.update(name.encode() + b"\0")
        found.update(data)
    return found.hexdigest()[:16]


def dumps(record: Mapping[str, Value], half: bool, metadata: Mapping[str, str]) -> bytes:
    """The burnpack's bytes."""
    from emberlet.host import burnpack_writer

    return burnpack_writer.dumps(sources(record, half), metadata)


def tensors(record: Mapping[str, Value], backend: Backend | str | None) -> dict[str, Tensor]:
    """The record as tensors of a backend; equal values share one tensor."""
    home = get_backend(backend)
    shared: dict[Hashable, Tensor] = {}
    out = {}
    for name, value in record.items():
        key = value.content()
        if key not in shared:
            shared[key] = value.tensor(home)
        out[name] = shared[key]
    return out
