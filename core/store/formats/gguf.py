"""Reading GGUF, llama.cpp's format; quantized blocks are dequantized or kept.
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

The model's properties are returned as metadata (texts), scalars (numbers) and extras (arrays).
"""

from __future__ import annotations

import struct
from functools import partial
from math import prod
from typing import Any

from ... import dtypes
from ...backend import Backend
from ...burnpack.limits import Limits
from ...errors import FormatError
from ...tensor import Tensor
from ..reading import Bytes
from ..snapshot import Packed, Raw, Snapshot
from ..stored import Store
from .gguf_blocks import BLOCKS, Block, dequantize, e2m1, parts

# ggml's type number -> dtype
PLAIN = {
    0: dtypes.float32, 1: dtypes.float16, 24: dtypes.int8, 25: dtypes.int16, 26: dtypes.int32, 27: dtypes.int64,
    28: dtypes.float64, 30: dtypes.bfloat16,
}  # fmt: skip
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
MAX_AXES = 8


class _Reader:
    """Reads the numbers and texts of the header in order."""

    def __init__(self, data: memoryview, where: str) -> None:
        self.data = data
        self.where = where
        self.at = 0

    def take(self, n: int) -> memoryview:
        if n < 0 or n > len(self.data) - self.at:
            raise FormatError(f"{self.where} is truncated: its header goes on past byte {len(self.data)}")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self) -> str:
        try:
            return str(self.take(self.number("Q")), "utf-8")
        except UnicodeDecodeError:
            raise FormatError(f"{self.where}: a text of its header is not UTF-8") from None

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind == _ARRAY:
            inner, count = self.number("I"), self.number("Q")
            if depth > 3:
                raise FormatError(f"{self.where}: arrays of its header are nested deeper than 4")
            if inner in _NUMBERS:
                size = struct.calcsize("<" + _NUMBERS[inner])
                raw = self.take(count * size)
                return list(struct.unpack(f"<{count}{_NUMBERS[inner]}", raw))
            if count > (len(self.data) - self.at) // 8:
                raise FormatError(f"{self.where}: an array of {count} values goes past its header")
            return [self.value(inner, depth + 1) for _ in range(count)]
        if kind not in _NUMBERS:
            raise FormatError(f"{self.where}: a value of its header has the unknown type {kind}")
        return self.number(_NUMBERS[kind])


def read(data: Bytes, where: str, *, limits: Limits, blocks: bool = False, **_: object) -> Store:
    """The tensors of the file; with `blocks`, quantized ones as uint8 with the bytes of a row along the last axis.

    Shapes are in NumPy's order, the reverse of GGUF's. Raises FormatError; a tensor of an unknown type raises only when
    it is read.
    """
    head = _Reader(data[0 : min(len(data), limits.metadata)], where)
    if bytes(head.take(4)) != b"GGUF":
        raise FormatError(f"{where}: does not begin with GGUF")
    version = head.number("I")
    if version not in (2, 3):
        raise FormatError(f"{where}: has GGUF version {version}; versions 2 and 3 are supported")
    count, pairs = head.number("Q"), head.number("Q")
    if count > limits.tensors or pairs > limits.tensors:
        raise FormatError(f"{where}: {count} tensors and {pairs} values; at most {limits.tensors} are read")
    said: dict[str, Any] = {}
    for _i in range(pairs):
        key = head.text()
        said[key] = head.value(head.number("I"))
    entries = [_entry(head) for _i in range(count)]
    align = said.get("general.alignment", 32)
    if type(align) is not int or not 1 <= align <= 1 << 20:
        raise FormatError(f"{where}: its alignment is {str(align)[:40]}")
    begin = (head.at + align - 1) // align * align
    found: dict[str, Snapshot] = {}
    for name, shape, kind, offset in entries:
        if name in found:
            raise FormatError(f"{where}: two tensors are called {name!r}")
        found[name] = _snapshot(data, where, name, shape, kind, begin + offset, blocks, limits)
    return Store(
        found, format="gguf", origin=where, layout="pytorch",
        metadata={k: v for k, v in said.items() if isinstance(v, str)},
        scalars={k: v for k, v in said.items() if isinstance(v, (int, float))},
        extras={k: v for k, v in said.items() if isinstance(v, list)},
    )  # fmt: skip


def _entry(head: _Reader) -> tuple[str, tuple[int, ...], int, int]:
    name, axes = head.text(), head.number("I")
    if axes > MAX_AXES:
        raise FormatError(f"{head.where}: tensor {name!r} has {axes} axes; at most {MAX_AXES} are read")
    shape = tuple(head.number("Q") for _ in range(axes))
    return name, shape[::-1], head.number("I"), head.number("Q")


def _snapshot(
    data: Bytes, where: str, name: str, shape: tuple[int, ...], kind: int, start: int, blocks: bool, limits: Limits
) -> Snapshot:
    label = f"{where}: tensor {name!r}"
    count = prod(shape)
    if count >= 1 << 62:
        raise FormatError(f"{label}: the product of its shape {shape} overflows")
    if kind in PLAIN:
        dtype = PLAIN[kind]
        size = int(dtype.nbytes(count))
        _check(label, start, size, len(data), limits)
        return Snapshot(name, dtype, shape, raw=lambda: data[start : start + size])
    if kind not in BLOCKS:
        return Snapshot(name, dtypes.float32, shape, make=partial(_refuse, label, kind), stored=f"ggml type {kind}")
    block = BLOCKS[kind]
    if not shape or shape[-1] % block.weights_each:
        raise FormatError(
            f"{label}: rows of {shape[-1] if shape else 1} do not split into blocks of {block.weights_each}"
        )
    size = count // block.weights_each * block.nbytes
    _check(label, start, size, len(data), limits)

    def raw() -> memoryview:
        return data[start : start + size]

    if blocks:
        rows = (*shape[:-1], shape[-1] // block.weights_each * block.nbytes)
        return Snapshot(name, dtypes.uint8, rows, raw=raw, stored=block.name)

    def make(backend: Any) -> Any:
        return dequantize(raw(), block, shape).to(backend)

    def read() -> tuple[Any, Any, Any]:
        levels, scale, least = parts(raw(), block)
        rows = (count // shape[-1], shape[-1] // block.group)
        flat = None if least is None else least.reshape(rows)
        return levels.reshape((*rows, block.group)), scale.reshape(rows), flat

    found = Snapshot(name, dtypes.float32, shape, make=make, stored=block.name, nbytes=size)
    if len(shape) == 2 and count:
        found.packed = Packed(0, block.bits, block.group, block.zero, block.zero == 0, read)
        if block.name in ("MXFP4", "NVFP4"):
            found.parts = partial(_parts, name, block, shape, raw)
    found.blocks = block.name, raw
    return found


def _parts(name: str, block: Block, shape: tuple[int, ...], read: Raw, _: int) -> dict[str, Snapshot]:
    """The values and scales of a matrix of E2M1's numbers."""
    held = (shape[0], shape[1] // block.group, block.group)
    made = partial(Snapshot, original=name)

    def values(backend: Backend) -> Tensor:
        return e2m1(read(), block, shape[0])[0].to(backend)

    def scale(backend: Backend) -> Tensor:
        return e2m1(read(), block, shape[0])[1].to(backend)

    count = held[0] * held[1]
    narrow = dtypes.float8_e8m0fnu if block.name == "MXFP4" else dtypes.float8_e4m3fn
    found = {
        "values": made(f"{name}.values", dtypes.float4_e2m1fn, held, make=values),
        "scale": made(f"{name}.scale", narrow, (count,), make=scale),
    }
    if block.name == "NVFP4":
        found["tensor_scale"] = made(
            f"{name}.tensor_scale", dtypes.float32, (), make=lambda backend: backend.full((), 1, dtypes.float32)
        )
    return found


def _check(label: str, start: int, size: int, length: int, limits: Limits) -> None:
    if size > limits.tensor:
        raise FormatError(f"{label}: {size} bytes are more than the limit of {limits.tensor}")
    if start + size > length:
        raise FormatError(f"{label}: ends at byte {start + size}, the file at {length}")


def _refuse(label: str, kind: int, _backend: Any) -> Any:
    known = ", ".join(sorted([d.name for d in PLAIN.values()] + [b.name for b in BLOCKS.values()]))
    raise FormatError(f"{label}: is of ggml's type {kind}, which is not read; there are {known}")
