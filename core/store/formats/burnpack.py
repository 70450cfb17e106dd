"""Burnpacks as stores; the reader is emberlet.burnpack."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import IO, Any

from ... import dtypes
from ...backend import get_backend
from ...burnpack import Burnpack
from ...burnpack.limits import Limits, from_bytes
from ...burnpack.quantized import layout_of, scheme_of, values_of
from ...burnpack.writing import Source, plan, write
from ...errors import FormatError
from ...functional.movement.joining import concat
from ...functional.quantized.weights import as_rows
from ...host.schemes import in_words
from ...module.layouts import KEY
from ...tensor import Tensor
from ..reading import Bytes
from ..snapshot import Packed, Quantized, Snapshot
from ..stored import Store


def read(data: Bytes, where: str, *, limits: Limits, **_: object) -> Store:
    """The burnpack in `data`. Raises FormatError."""
    return of_pack(from_bytes(data, where, limits), where)


def of_pack(pack: Burnpack, where: str) -> Store:
    """An open burnpack as a store."""
    found = {}
    for name, entry in pack.tensors.items():
        plain = isinstance(entry.stored, str) and entry.dtype is not dtypes.bool
        found[name] = Snapshot(
            name, entry.dtype, entry.shape, raw=partial(pack.raw, name) if plain else None,
            make=None if plain else partial(pack.tensor, name), param_id=entry.param_id,
            stored=in_words(entry.stored["QFloat"]) if entry.is_quantized else str(entry.stored), nbytes=entry.nbytes,
            same=(entry.start, entry.end, entry.shape) if entry.nbytes else None,
        )  # fmt: skip
        if entry.is_quantized and isinstance(entry.stored["QFloat"], dict):
            found[name].quantized = _quantized(pack, name, f"{where}: tensor {name!r}")
            found[name].packed = _packed(pack, name, f"{where}: tensor {name!r}")
    layout = pack.metadata.get(KEY, "burn")
    return Store(
        found, format="burnpack", origin=where, metadata=pack.metadata, scalars=pack.scalars, layout=layout
    )  # fmt: skip


def _quantized(pack: Burnpack, name: str, where: str) -> Quantized:
    """The scheme and bytes of a quantized tensor, in the form in which another burnpack stores them."""
    entry = pack.tensors[name]

    def read() -> memoryview:
        layout_of(entry, entry.nbytes, where)  # raises what reading it would
        return pack.raw(name)

    return Quantized(entry.stored["QFloat"], read, entry.nbytes)


def _packed(pack: Burnpack, name: str, where: str) -> Packed | None:
    """The integers of a tensor with one scale, one for each channel, or one for each block of a matrix's channels; None
    for others. Channels are the columns of a matrix whose blocks are one column wide, else along the first axis."""
    entry = pack.tensors[name]
    try:
        s: Any = scheme_of(entry.stored["QFloat"], entry.shape, where)
    except FormatError:  # reading it raises that, too
        return None
    shape = entry.shape
    if len(shape) < 2 or s.value.is_float or s.tensor_scale is not None or 0 in shape:
        return None
    if s.block is None:
        made = _along(pack, name, where, s, int(len(shape) == 2))
        return made and made._replace(along=lambda axis: _along(pack, name, where, s, axis))
    axis = 1 if len(shape) == 2 and s.block[1] == 1 else 0
    return _along(pack, name, where, s, axis) if s.block[axis] == 1 else None


def _along(pack: Burnpack, name: str, where: str, s: Any, axis: int) -> Packed | None:
    """The integers with channels along an axis; None where the blocks of a channel are no runs of its weights."""
    entry = pack.tensors[name]
    shape, channels = entry.shape, entry.shape[axis]
    bits = int(entry.stored["QFloat"]["value"][1])  # native values of 4 and 2 bits are bytes
    count, middle = prod(shape) // channels, 1 << (bits - 1)
    size = -(-count * bits // 8) * 8 // bits
    if s.block is not None and any(b < n for i, (b, n) in enumerate(zip(s.block, shape, strict=True)) if i != axis):
        if len(shape) != 2 or s.block[1 - axis] * bits % 8:
            return None
        size = s.block[1 - axis]
    blocks = -(-count // size)

    def read() -> tuple[Tensor, Tensor, None]:
        raw = pack.raw(name)
        _, n, grid, at = layout_of(entry, len(raw), where)
        backend = get_backend(None)
        values = as_rows(values_of(backend, raw[:n], s, shape), axis)
        levels = backend.pad(values, ((0, 0), (0, blocks * size - count)), 0.0) + float(middle)
        scale = as_rows(backend.from_bytes(raw[at:], s.scale, tuple(grid)).astype(dtypes.float32), axis)
        levels = levels.reshape((channels, blocks, size)).astype(dtypes.uint8)
        return levels, backend.expand(scale, (channels, blocks)), None

    def joined(longer: int) -> Packed | None:
        times = min(longer // size, blocks) if longer < count else blocks
        if longer < count and longer % size:
            return None
        levels, scale, _ = read()
        groups, backend = -(-blocks // times), levels.backend
        firsts = [scale[:, k * times : k * times + 1] for k in range(groups)]
        if any(bool((scale[:, k * times : (k + 1) * times] != first).any()) for k, first in enumerate(firsts)):
            return None
        rows = levels.reshape((channels, blocks * size))[:, : groups * longer]
        rows = backend.pad(rows, ((0, 0), (0, groups * longer - rows.shape[1])), middle)
        found = rows.reshape((channels, groups, longer)), concat(firsts, 1), None
        return Packed(axis, bits, longer, middle, False, lambda: found)

    return Packed(axis, bits, size, middle, False, read, joined=joined)


def dump(store: Store, file: IO[bytes], metadata: dict[str, str]) -> int:
    """Write the store as a burnpack; returns the bytes written."""
    if store.layout:
        metadata[KEY] = store.layout
    sources = {}
    seen: dict[object, Source] = {}
    for name, s in store.items():
        if s.quantized is None:
            source = Source(s.dtype, s.shape, s.raw, s.param_id)
        else:
            source = Source(s.dtype, s.shape, s.quantized.read, s.param_id, s.quantized.scheme, s.quantized.nbytes)
        sources[name] = seen.setdefault(s.same, source) if s.same is not None else source
    return int(write(file, *plan(sources, metadata, store.scalars)))
