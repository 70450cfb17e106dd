"""The initializers of an ONNX model as a store: protobuf's wire format read in place, without a library.

https://github.com/onnx/onnx/blob/main/onnx/onnx.proto; https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

from ... import dtypes
from ...burnpack.limits import Limits
from ...dtypes.narrow import pack_codes
from ...errors import FormatError
from ...host.onnx_types import DTYPES
from ..reading import Bytes, check_sharing, contents
from ..snapshot import Snapshot, bools
from ..stored import Store
from .onnx_weights import LOOK_UPS, READS, Reading, join

MAX_RANK = 64
MAX_FIELDS = 10_000_000
# Elements outside raw_data: field -> how an element is packed.
_TYPED = {4: "f", 5: None, 7: None, 10: "d", 11: None}


class _Message:
    """The part of the file with the fields of one message."""

    def __init__(self, data: Bytes, start: int, end: int, where: str) -> None:
        self.data, self.start, self.end, self.where = data, start, end, where
        self._piece = memoryview(b"")
        self._from = 0

    def _byte(self, at: int) -> int:
        if not self._from <= at < self._from + len(self._piece):
            self._from, self._piece = at, self.data[at : min(at + 4096, self.end)]
        return self._piece[at - self._from]

    def varint(self, at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            if at >= self.end or shift > 63:
                raise FormatError(f"{self.where}: is not an ONNX model: a number at byte {at} does not end")
            byte = self._byte(at)
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at

    def fields(self) -> Iterator[tuple[int, int, int]]:
        """Yields (field number, value) for a number, (field number, start, end) for a field of bytes."""
        at = self.start
        for _ in range(MAX_FIELDS):
            if at >= self.end:
                return
            tag, at = self.varint(at)
            kind, number = tag & 7, tag >> 3
            if kind == 0:
                value, at = self.varint(at)
                yield number, value, -1
                continue
            if kind == 2:
                length, at = self.varint(at)
            else:
                length = {1: 8, 5: 4}.get(kind, -1)
            if length < 0 or at + length > self.end or number == 0:
                raise FormatError(f"{self.where}: is not an ONNX model: the field at byte {at} goes past its message")
            yield number, at, at + length
            at += length

    def part(self, start: int, end: int) -> _Message:
        return _Message(self.data, start, end, self.where)

    def text(self, start: int, end: int) -> str:
        if end < 0 or end - start > 1 << 20:
            raise FormatError(f"{self.where}: is not an ONNX model: a text field holds no text")
        try:
            return str(self.data[start:end], "utf-8")
        except UnicodeDecodeError:
            raise FormatError(f"{self.where}: is not an ONNX model: a text is not UTF-8") from None

    def entry(self, start: int, end: int) -> tuple[str, str]:
        """The key and the value of a StringStringEntryProto."""
        pair = self.part(start, end)
        texts = {n: pair.text(a, b) for n, a, b in pair.fields() if n in (1, 2)}
        return texts.get(1, ""), texts.get(2, "")


def read(data: Bytes, where: str, *, path: str | None = None, limits: Limits, **_: object) -> Store:
    """The initializers of the model's graph. Raises FormatError."""
    found: dict[str, Snapshot] = {}
    extras: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    graphs = 0
    places: set[str] = set()
    nodes: list[Reading] = []
    model = _Message(data, 0, len(data), where)
    for number, start, end in model.fields():
        if number == 7 and end >= 0:
            graphs += 1
            graph = model.part(start, end)
            for n, a, b in graph.fields():
                if n == 1 and b >= 0 and (node := _reading(graph.part(a, b))):
                    nodes.append(node)
                if n == 5 and b >= 0:
                    if len(found) >= limits.tensors:
                        raise FormatError(f"{where}: more initializers than the limit of {limits.tensors}")
                    s = _tensor(graph.part(a, b), path, limits, places)
                    if isinstance(s, Snapshot):
                        found[s.name] = s
                    else:
                        extras[s[0]] = s[1]
        elif number == 2 and end >= 0:
            metadata["producer"] = model.text(start, end)
        elif number == 14 and end >= 0:
            metadata.update([model.entry(start, end)])
    if not graphs:
        raise FormatError(f"{where}: is not an ONNX model: it holds no graph")
    join(found, nodes)
    if path is not None:
        held = len(data) + sum(_size_of(os.path.join(os.path.dirname(path), place)) for place in places)
        check_sharing(where, sum(s.nbytes for s in found.values()), held)
    return Store(found, format="onnx", origin=where, metadata=metadata, extras=extras)


def _reading(node: _Message) -> Reading | None:
    """A node that reads integers, or None."""
    inputs: list[tuple[int, int]] = []
    ints: dict[str, int] = {}
    kind = output = ""
    for number, start, end in node.fields():
        if number == 1 and end >= 0 and len(inputs) < MAX_RANK:
            inputs.append((start, end))
        elif number == 2 and end >= 0:
            output = output or node.text(start, end)
        elif number == 4 and end >= 0:
            kind = node.text(start, end)
            if kind not in READS and kind not in LOOK_UPS:
                return None
        elif number == 5 and end >= 0:
            name, value = "", 0
            part = node.part(start, end)
            for n, a, b in part.fields():
                if n == 1:
                    name = part.text(a, b)
                elif n == 3 and b < 0:
                    value = a if a < 1 << 63 else a - (1 << 64)
            ints[name] = value
    return Reading(kind, tuple([node.text(*span) for span in inputs]), output, ints) if kind else None


class _Tensor:
    """The fields of a TensorProto; those with bytes as (start, end)."""

    def __init__(self, message: _Message) -> None:
        self.name, self.kind, self.location = "", 0, 0
        self.shape: list[int] = []
        self.raw: tuple[int, int] | None = None
        self.typed: dict[int, list[tuple[int, int]]] = {}
        self.external: dict[str, str] = {}
        for number, start, end in message.fields():
            if number == 1:
                self.shape += [start] if end < 0 else _numbers(message, start, end, MAX_RANK + 1)
            elif number == 2 and end < 0:
                self.kind = start
            elif number == 8:
                self.name = message.text(start, end)
            elif number == 9 and end >= 0:
                self.raw = (start, end)
            elif number in _TYPED:
                self.typed.setdefault(number, []).append((start, end))
            elif number == 13 and end >= 0:
                self.external.update([message.entry(start, end)])
            elif number == 14 and end < 0:
                self.location = start


def _tensor(message: _Message, path: str | None, limits: Limits, places: set[str]) -> Snapshot | tuple[str, str]:
    found = _Tensor(message)
    label = f"{message.where}: initializer {found.name[:80]!r}"
    dtype = DTYPES.get(found.kind)
    if dtype is None or dtype is dtypes.string:
        return found.name, f"an initializer of ONNX's type {found.kind}, which is not read"
    shape = tuple(found.shape)
    if len(shape) > MAX_RANK or any(n >= 1 << 63 for n in shape) or prod(shape) >= 1 << 62:
        raise FormatError(f"{label}: its shape is too large")
    size = int(dtype.nbytes(prod(shape)))
    if size > limits.tensor:
        raise FormatError(f"{label}: {size} bytes are more than the limit of {limits.tensor}")
    if found.location == 1:
        get: Any = partial(_external, label, path, found.external, size)
        places.add(found.external.get("location", ""))
    elif found.raw is not None:
        length = found.raw[1] - found.raw[0]
        if length != size:
            raise FormatError(f"{label}: {length} bytes where {dtype} of {shape} takes {size}")
        get = partial(_slice, message.data, *found.raw)
    else:
        most = sum(1 if end < 0 else end - start for spans in found.typed.values() for start, end in spans)
        if prod(shape) > 2 * most * 8 // min(dtype.bits, 8):
            raise FormatError(f"{label}: fewer elements than its shape {shape} takes")
        get = partial(_from_fields, label, message, found.typed, dtype, prod(shape), size)
    make = partial(bools, get, shape) if dtype is dtypes.bool else None
    return Snapshot(found.name, dtype, shape, raw=None if make else get, make=make)


def _size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):  # read or refused with its tensor
        return 0


def _slice(data: Bytes, start: int, end: int) -> memoryview:
    return data[start:end]


def _numbers(message: _Message, start: int, end: int, most: int) -> list[int]:
    """Packed numbers."""
    found: list[int] = []
    part = message.part(start, end)
    while start < end:
        value, start = part.varint(start)
        found.append(value)
        if len(found) > most:
            raise FormatError(f"{message.where}: is not an ONNX model: more numbers than there can be")
    return found


def _external(label: str, path: str | None, said: dict[str, str], size: int) -> memoryview:
    """The bytes in a file beside the model."""
    name = said.get("location", "")
    if path is None:
        raise FormatError(f"{label}: is in the file {name!r}; open the model by its path")
    folder = os.path.realpath(os.path.dirname(path) or ".")
    target = os.path.realpath(os.path.join(folder, name)) if "\0" not in name else folder
    if os.path.commonpath([folder, target]) != folder or target == folder:
        raise FormatError(f"{label}: names the file {name!r}, which is not in the model's folder")
    digits = said.get("offset", "0")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 20:
        raise FormatError(f"{label}: its offset {digits[:40]!r} is not a number")
    data, _ = contents(target, False)
    if int(digits) + size > len(data):
        raise FormatError(f"{label}: ends at byte {int(digits) + size} of {name}, which has {len(data)}")
    return data[int(digits) : int(digits) + size]


def _from_fields(
    label: str, message: _Message, typed: dict[int, list[tuple[int, int]]], dtype: dtypes.DType, count: int, size: int
) -> memoryview:
    """The elements outside raw_data, as bytes in raw_data's layout."""
    number = {"float32": 4, "float64": 10, "int64": 7, "uint64": 11, "uint32": 11}.get(dtype.name, 5)
    out: list[Any] = []
    for start, end in typed.get(number, ()):
        code = _TYPED[number]
        if end < 0:
            out.append(start)
        elif code:
            raw = message.data[start:end]
            width = struct.calcsize(code)
            out += struct.unpack(f"<{len(raw) // width}{code}", raw[: len(raw) // width * width])
        else:
            out += _numbers(message, start, end, count)
    packs = 8 // dtype.bits if dtype.bits < 8 else 1  # 6-bit floats come one by one
    if len(out) != -(-count // packs):
        raise FormatError(f"{label}: {len(out)} elements where its shape takes {count}")
    if number in (4, 10):
        return memoryview(struct.pack(f"<{count}{'f' if number == 4 else 'd'}", *out))
    if dtype.bits == 6:
        return memoryview(pack_codes(out, 6))
    width = max(1, dtype.bits // 8)
    mask = (1 << 8 * width) - 1
    return memoryview(b"".join([(n & mask).to_bytes(width, "little") for n in out])[:size])
