"""Burn's older record formats: named MessagePack, JSON and bincode, with or without gzip, at any precision.

A file is {"metadata": {float, int, format, version, settings}, "item": record}. In the record a parameter is {"id",
"param"}, its tensor {"bytes", "shape", "dtype"} or, before Burn 0.14, {"value", "shape"}. bincode, which stores no
names, is read by bincode.py. https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

from ... import dtypes
from ...burnpack.limits import Limits
from ...errors import FormatError
from ..reading import Bytes, json_of
from ..snapshot import Snapshot, bools
from ..stored import Store
from .bincode import identity, is_bincode
from .bincode import read as bincode

MAX_DEPTH = 128
_NUMBERS = {
    0xCA: "f",
    0xCB: "d",
    0xCC: "B",
    0xCD: "H",
    0xCE: "I",
    0xCF: "Q",
    0xD0: "b",
    0xD1: "h",
    0xD2: "i",
    0xD3: "q",
}


def read(data: Bytes, where: str, *, limits: Limits, key: str | None = None, **_: object) -> Store:
    """The record in `data`. Raises FormatError."""
    if bytes(data[0:2]) == b"\x1f\x8b":
        data = _unzipped(data, where, limits)
    if len(data) > limits.file:
        raise FormatError(f"{where}: {len(data)} bytes are more than the limit of {limits.file}")
    if is_bincode(bytes(data[0 : min(len(data), 32)])):
        return bincode(data, where, limits)
    whole = data[0 : len(data)]
    tree = _json(whole, where) if bytes(whole[:1].tobytes().lstrip()) == b"{" else _MessagePack(whole, where).read()
    if not isinstance(tree, dict) or "item" not in tree:
        raise FormatError(f"{where}: is not one of Burn's records: it has no item")
    said = tree.get("metadata")
    metadata = {k: v for k, v in said.items() if isinstance(v, str)} if isinstance(said, dict) else {}
    item = tree["item"]
    if key is not None:
        for part in key.split("."):
            item = item.get(part) if isinstance(item, dict) else None
    found: dict[str, Snapshot] = {}
    scalars: dict[str, Any] = {}
    extras: dict[str, Any] = {}
    for name, value in leaves(item, where, 0):
        if isinstance(value, dict):
            found[name] = _tensor(name, value, metadata, f"{where}: tensor {name[:80]!r}", limits)
        elif isinstance(value, (bool, int, float)):
            scalars[name] = value
        elif value is not None:
            extras[name] = value
    return Store(
        found, format="record", origin=where, metadata=metadata, scalars=scalars, extras=extras, layout="burn"
    )  # fmt: skip


def _unzipped(data: Bytes, where: str, limits: Limits) -> memoryview:
    most = min(limits.file, (8 << 20) + 16 * len(data))
    machine = zlib.decompressobj(31)
    try:
        out = machine.decompress(bytes(data[0 : len(data)]), most + 1)
    except zlib.error as error:
        raise FormatError(f"{where}: its gzip data are malformed: {error}") from None
    if len(out) > most:
        raise FormatError(f"{where}: its {len(data)} bytes would become more than {most}; unpack it first")
    if not machine.eof:
        raise FormatError(f"{where}: its gzip data are cut off")
    return memoryview(out)


def _json(data: memoryview, where: str) -> Any:
    try:
        return json_of(str(data, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: is not JSON: {str(error)[:200]}") from None


class _MessagePack:
    """Reads values in order; the lengths of texts and byte strings are checked before they are read."""

    def __init__(self, data: memoryview, where: str) -> None:
        self.data = data
        self.where = where
        self.at = 0
        self.left = (8 << 20) + 24 * len(data)

    def bad(self, text: str) -> FormatError:
        return FormatError(f"{self.where}: is no MessagePack: {text} at byte {self.at}")

    def take(self, n: int) -> memoryview:
        if n > len(self.data) - self.at:
            raise self.bad("it is cut off")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, n: int) -> int:
        return int.from_bytes(self.take(n), "big")

    def pay(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise self.bad("it takes more memory than its length allows")

    def read(self) -> Any:
        value = self.value(0)
        if self.at != len(self.data):
            raise self.bad("there is more than one value")
        return value

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise self.bad(f"it is nested deeper than {MAX_DEPTH}")
        op = self.number(1)
        if op < 0x80:
            return op
        if op >= 0xE0:
            return op - 256
        if op < 0x90 or op in (0xDE, 0xDF):
            return self.map(op & 15 if op < 0x90 else self.number(2 if op == 0xDE else 4), depth)
        if op < 0xA0 or op in (0xDC, 0xDD):
            return self.array(op & 15 if op < 0xA0 else self.number(2 if op == 0xDC else 4), depth)
        if op < 0xC0 or op in (0xD9, 0xDA, 0xDB):
            return self.text(op & 31 if op < 0xC0 else self.number(1 << (op - 0xD9)))
        if op in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[op]
        if op in (0xC4, 0xC5, 0xC6):
            return self.take(self.number(1 << (op - 0xC4)))
        if op in _NUMBERS:
            self.pay(32)
            code = ">" + _NUMBERS[op]
            return struct.unpack(code, self.take(struct.calcsize(code)))[0]
        raise self.bad(f"0x{op:02x} is not read")

    def text(self, n: int) -> str:
        self.pay(60 + 4 * n)
        try:
            return str(self.take(n), "utf-8")
        except UnicodeDecodeError:
            raise self.bad("a text is not UTF-8") from None

    def array(self, n: int, depth: int) -> list[Any]:
        if n > len(self.data) - self.at:
            raise self.bad(f"an array of {n} values is cut off")
        self.pay(64 + 9 * n)
        return [self.value(depth + 1) for _ in range(n)]

    def map(self, n: int, depth: int) -> dict[str, Any]:
        if 2 * n > len(self.data) - self.at:
            raise self.bad(f"a map of {n} pairs is cut off")
        self.pay(64 + 110 * n)
        found: dict[str, Any] = {}
        for _ in range(n):
            key = self.value(depth + 1)
            if not isinstance(key, (str, int)):
                raise self.bad("a key is not text")
            found[str(key)] = self.value(depth + 1)
        return found


def _is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and "shape" in value and ("bytes" in value or "value" in value)


def leaves(value: Any, where: str, depth: int, name: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value): a dict stands for a tensor."""
    if depth > MAX_DEPTH:
        raise FormatError(f"{where}: is nested deeper than {MAX_DEPTH}")
    if _is_tensor(value):
        yield name, value
    elif isinstance(value, dict) and set(value) == {"id", "param"} and _is_tensor(value["param"]):
        yield name, {**value["param"], "id": value["id"]}
    elif isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value)):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(child, where, depth + 1, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _tensor(name: str, found: dict[str, Any], metadata: dict[str, str], label: str, limits: Limits) -> Snapshot:
    shape = found["shape"]
    if isinstance(shape, dict) and set(shape) == {"dims"}:
        shape = shape["dims"]
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1 << 63 for n in shape) or len(shape) > 64:
        raise FormatError(f"{label}: its shape is not a list of unsigned integers")
    count = prod(shape)
    dtype, raw = _elements(found, metadata, label, count)
    if len(raw) != dtype.nbytes(count) or len(raw) > limits.tensor:
        raise FormatError(f"{label}: {len(raw)} bytes where {dtype} of {tuple(shape)} takes {dtype.nbytes(count)}")
    is_bool = dtype is dtypes.bool

    def get() -> memoryview:
        return raw

    return Snapshot(
        name, dtype, tuple(shape), raw=None if is_bool else get,
        make=partial(bools, get, tuple(shape)) if is_bool else None, param_id=identity(found.get("id")),
    )  # fmt: skip


def _elements(found: dict[str, Any], metadata: dict[str, str], label: str, count: int) -> tuple[Any, memoryview]:
    """(dtype, bytes)"""
    try:
        if "bytes" in found:
            said = found.get("dtype")
            said = "Bool" if isinstance(said, dict) and "Bool" in said else said
            dtype = next((d for d in dtypes.ALL if isinstance(said, str) and d.burn == said), None)
            if dtype is None:
                raise FormatError(f"{label}: dtype {str(said)[:40]!r} is not read")
            raw = found["bytes"]
            return dtype, raw if isinstance(raw, memoryview) else memoryview(bytes(_list(raw, label)))
        values = _list(found["value"], label)
        if len(values) != count:
            raise FormatError(f"{label}: {len(values)} values where its shape takes {count}")
        if values and all(isinstance(v, bool) for v in values):
            return dtypes.bool, memoryview(bytes(values))
        float_type = metadata.get("float", "f32")
        if "f16" in float_type and all(type(v) is int for v in values):  # the bits of each
            return (dtypes.bfloat16 if "bf16" in float_type else dtypes.float16), _packed("H", values)
        if any(isinstance(v, float) for v in values) or not values:
            wide = "f64" in float_type
            return (dtypes.float64 if wide else dtypes.float32), _packed("d" if wide else "f", values)
        wide = any(not -(1 << 31) <= v < 1 << 31 for v in values)
        return (dtypes.int64 if wide else dtypes.int32), _packed("q" if wide else "i", values)
    except (ValueError, TypeError, struct.error, OverflowError):
        raise FormatError(f"{label}: its elements are not numbers of one type") from None


def _list(value: Any, label: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(f"{label}: its elements are not an array")
    return value


def _packed(code: str, values: list[Any]) -> memoryview:
    return memoryview(struct.pack(f"<{len(values)}{code}", *values))
