"""Burn's bincode recorders (`.bin`, `.bin.gz`, bytes of BinBytesRecorder), as Burn 0.14 and later write them.

A file holds five texts about the record and then the fields of the module in the order in which its struct declares
them, without names or types. A parameter is its ParamId (thirteen digits of base 32), the bytes of its tensor, its
shape and the number of its dtype. Everything between parameters is structure: 0 for a constant or a missing option, 1
for a present one, the length of a list, the variant of an enum. Such a number never begins a parameter, so the
parameters are found without the struct. They are called "0", "1", "2" and so on.
https://docs.rs/bincode/2.0.1/bincode/spec
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from ... import dtypes
from ...burnpack.limits import Limits
from ...dtypes import DType
from ...errors import FormatError
from ..reading import Bytes
from ..snapshot import Snapshot, bools
from ..stored import Store

FLOATS = {
    "f32": dtypes.float32,
    "f64": dtypes.float64,
    "half::binary16::f16": dtypes.float16,
    "half::bfloat::bf16": dtypes.bfloat16,
}
INTEGERS = {d.burn.lower(): d for d in dtypes.ALL if d.burn and d.burn[0] in "IU" and d.burn[1:].isdigit()}
DIGITS = "0123456789abcdefghijklmnopqrstuv"
MAX_STRUCTURE = 1 << 20  # bytes beside parameters; a layer has about ten
# The variants of Burn's DType, whose numbers changed with its releases: U16 was added, then Flex32.
_PLAIN = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U8", "Bool")
_WITH_U16 = (*_PLAIN[:10], "U16", *_PLAIN[10:])
_WITH_FLEX32 = (*_WITH_U16[:2], "Flex32", *_WITH_U16[2:])
_TABLES = (_WITH_FLEX32, _WITH_U16, _PLAIN)


def is_bincode(head: bytes) -> bool:
    """Whether a file begins as these do: with the name of a float type."""
    return any(head.startswith(bytes([len(name)]) + name.encode()) for name in FLOATS)


def read(data: Bytes, where: str, limits: Limits) -> Store:
    """The parameters in `data`, by number. Raises FormatError."""
    reader = _Reader(data, where)
    said = dict(zip(("float", "int", "format", "version", "settings"), (reader.text() for _ in range(5)), strict=True))
    known = {**FLOATS, **INTEGERS}
    if said["float"] not in FLOATS or said["int"] not in INTEGERS:
        raise FormatError(
            f"{where}: is not one of Burn's records: it says {said['float'][:40]!r}, {said['int'][:40]!r}"
        )
    found = []
    while reader.at < len(data):
        parameter = reader.parameter(said["version"])
        if parameter is None:
            reader.structure()
            continue
        found.append(parameter)
        if len(found) > limits.tensors:
            raise FormatError(f"{where}: more than the limit of {limits.tensors} tensors")
        if parameter.end - parameter.begin > limits.tensor:
            size = parameter.end - parameter.begin
            raise FormatError(
                f"{where}: tensor {len(found) - 1}: {size} bytes are more than the limit of {limits.tensor}"
            )
    types = {known[said["float"]], known[said["int"]], dtypes.bool}
    table = _table(found, types)
    if found and table is None:
        raise FormatError(
            f"{where}: its tensors are none of {', '.join(sorted(d.name for d in types))}; quantized ones and those of "
            "Burn before 0.14 are not read from bincode: load the record in Burn and save a burnpack"
        )
    snapshots = {}
    for i, p in enumerate(found):
        name, dtype = str(i), _dtype(p, table or ())
        assert dtype is not None

        def get(begin: int = p.begin, end: int = p.end) -> memoryview:
            return data[begin:end]

        is_bool = dtype is dtypes.bool
        snapshots[name] = Snapshot(
            name, dtype, p.shape, raw=None if is_bool else get, make=partial(bools, get, p.shape) if is_bool else None,
            param_id=p.identity,
        )  # fmt: skip
    return Store(snapshots, format="record", origin=where, metadata=said, layout="burn", nameless=True)


class _Parameter:
    """A parameter: the range of its bytes, its shape, the number of its dtype, and its identity."""

    __slots__ = ("begin", "end", "identity", "number", "shape")

    def __init__(self, begin: int, end: int, shape: tuple[int, ...], number: int, identity: int | None) -> None:
        self.begin = begin
        self.end = end
        self.shape = shape
        self.number = number
        self.identity = identity


def _dtype(p: _Parameter, table: tuple[str, ...]) -> DType | None:
    said = table[p.number] if p.number < len(table) else None
    return next((d for d in dtypes.ALL if d.burn == said), None) if said else None


def _table(found: list[_Parameter], types: set[DType]) -> tuple[str, ...] | None:
    """The numbering of dtypes by which every tensor has one of `types` and the right number of bytes; None if no
    numbering fits.

    Two numberings never fit the same tensor: all floats and all integers of a file have the types that its header
    names.
    """
    for table in _TABLES:
        if all(_fits(p, _dtype(p, table), types) for p in found):
            return table
    return None


def _fits(p: _Parameter, dtype: DType | None, types: set[DType]) -> bool:
    return dtype is not None and dtype in types and dtype.nbytes(prod(p.shape)) == p.end - p.begin


def identity(text: Any) -> int | None:
    """The number of a ParamId as Burn writes it: thirteen digits of base 32; None for the older texts."""
    if not isinstance(text, str) or len(text) != 13 or text.strip(DIGITS):
        return None
    bits = 0
    for c in text:
        bits = bits << 5 | DIGITS.index(c)
    return int.from_bytes((bits >> 1).to_bytes(8, "big"), "little")


class _Reader:
    """Reads numbers and texts in order. A length is checked against the rest of the file before it is used."""

    def __init__(self, data: Bytes, where: str) -> None:
        self.data = data
        self.where = where
        self.at = 0
        self.left = MAX_STRUCTURE
        self._window = b""
        self._begin = 0

    def bad(self, text: str) -> FormatError:
        return FormatError(f"{self.where}: is no bincode of a module's record: {text} at byte {self.at}")

    def peek(self, at: int, n: int) -> bytes:
        """The `n` bytes from `at` on; fewer at the end."""
        begin = at - self._begin
        if begin < 0 or begin + n > len(self._window):
            self._window = bytes(self.data[at : min(len(self.data), at + max(n, 4096))])
            self._begin, begin = at, 0
        return self._window[begin : begin + n]

    def number(self) -> int:
        """An unsigned integer of variable length."""
        head = self.peek(self.at, 9)
        if not head:
            raise self.bad("it is cut off")
        size = {251: 2, 252: 4, 253: 8}.get(head[0], 0)
        if head[0] > 253 or len(head) <= size:
            raise self.bad("it is cut off" if head[0] <= 253 else f"0x{head[0]:02x} begins no number")
        self.at += 1 + size
        return int.from_bytes(head[1 : 1 + size], "little") if size else head[0]

    def text(self) -> str:
        n = self.number()
        if n > 1000 or n > len(self.data) - self.at:
            raise self.bad(f"a text of {n} bytes")
        self.at += n
        try:
            return self.peek(self.at - n, n).decode()
        except UnicodeDecodeError:
            raise self.bad("a text is not UTF-8") from None

    def structure(self) -> None:
        """Pass over a number between parameters."""
        before = self.at
        if self.number() > 0xFFFF:
            self.at = before
            raise self.bad("there is neither a parameter nor the length of a list")
        self.left -= self.at - before
        if self.left < 0:
            raise self.bad(f"there are more than {MAX_STRUCTURE} bytes between parameters")

    def parameter(self, version: str) -> _Parameter | None:
        """The parameter that begins here, if one does."""
        head = self.peek(self.at, 14)
        if head[0] != 13 or head[1:].strip(DIGITS.encode()):
            return None
        if len(head) < 14:
            raise self.bad("a parameter is cut off")
        self.at += 14
        size = self.number()
        if size > len(self.data) - self.at:
            raise self.bad(f"a tensor of {size} bytes is cut off")
        begin, end = self.at, self.at + size
        self.at = end
        rank = self.number()
        if rank > 64:
            raise self.bad(f"a shape of {rank} axes")
        shape = tuple(self.number() for _ in range(rank))
        number = self.number()
        if number == _WITH_FLEX32.index("Bool") and _release(version) >= (0, 21):
            store = self.number()  # how bools are stored: a byte each, but for the third variant
            if store > 1:
                raise self.bad("bools of four bytes")
        return _Parameter(begin, end, shape, number, identity(head[1:].decode()))


def _release(version: str) -> tuple[int, int]:
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and all(p.isdecimal() for p in parts[:2]) else (0, 0)
