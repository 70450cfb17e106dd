"""Value: a tensor known at compile time, whose bytes are read only when needed.

Memory may not hold a model twice, so a Value keeps the location of its bytes rather than the bytes. A fill keeps a
single element, however large it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from dataclasses import field
from math import prod
from typing import TYPE_CHECKING, Literal, assert_never

from emberlet.dtypes import DType, int64
from emberlet.dtypes import string as string_dtype

from ..records import dataclass
from .problem import Problem

if TYPE_CHECKING:
    from emberlet.backend import Backend
    from emberlet.tensor import Tensor

Number = int | float | bool
Buffer = bytes | bytearray | memoryview
SMALL = 1 << 16
WORDS: dict[int, Literal["B", "H", "I", "Q"]] = {
    8: "B",
    16: "H",
    32: "I",
    64: "Q",
}
"""Bits of an element -> its code for memoryview."""


@dataclass(frozen=True)
class Inline:
    """The bytes themselves, row-major and little-endian, narrow elements packed lowest bits first."""

    data: Buffer


@dataclass(frozen=True)
class Stored:
    """Bytes that `load` fetches; `key` is equal for two values only if their bytes are at the same location."""

    load: Callable[[], Buffer]
    key: Hashable


@dataclass(frozen=True)
class Fill:
    """Every element is `number`."""

    number: Number


@dataclass(frozen=True)
class Text:
    """The elements of a string tensor."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Transposed:
    """The elements of a transposed matrix, which are moved only when needed."""

    matrix: Value


Source = Inline | Stored | Fill | Text | Transposed


@dataclass(frozen=True)
class Value:
    """A constant tensor: dtype, shape, and where its elements come from.

    origin: what distinguishes it from others with the same elements: the name of its initializer, or how it was
    computed from some.
    """

    dtype: DType
    shape: tuple[int, ...]
    source: Source = field(repr=False)
    origin: Hashable = field(default=None, repr=False)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return int(self.dtype.nbytes(self.size))

    def key(self) -> Hashable:
        """A key equal for two values only if they have the same initializer, or were computed in the same way from the
        same ones."""
        if isinstance(self.source, Transposed):
            return ("transposed", self.source.matrix.key())
        return self.content() if self.origin is None else (self.dtype.name, self.shape, "origin", self.origin)

    def content(self) -> Hashable:
        """A key equal for two values only if they are equal tensors."""
        match self.source:
            case Inline(data):
                what: Hashable = ("inline", bytes(data))
            case Stored(_, key):
                what = ("stored", key)
            case Fill() if self.size == 1 and self.dtype.bits >= 8:
                what = ("inline", bytes(self.raw()))  # as files store a number
            case Fill(number):
                what = ("fill", repr(number))
            case Text(items):
                what = ("text", items)
            case Transposed(matrix):
                what = ("transposed", matrix.content())
            case other:
                assert_never(other)
        return (self.dtype.name, self.shape, what)

    def raw(self) -> Buffer:
        """The elements as bytes in the layout of `Inline`. Raises Problem for strings."""
        match self.source:
            case Inline(data):
                return data
            case Stored(load, _):
                return load()
            case Fill(number):
                return _repeated(number, self.dtype, self.size)
            case Text():
                raise Problem("a string tensor has no bytes")
            case Transposed(matrix) if matrix.dtype.bits in WORDS and matrix.size <= SMALL:
                return _turned(matrix)
            case Transposed(matrix):
                x = matrix.tensor()
                turned: Buffer = x.backend.to_bytes(x.backend.permute(x, (1, 0)))
                return turned
            case other:
                assert_never(other)

    def tensor(self, backend: Backend | str | None = None) -> Tensor:
        """The value as a Tensor of `backend`."""
        from emberlet.backend import get_backend

        home = get_backend(backend)
        match self.source:
            case Fill(number):
                return home.full(self.shape, number, self.dtype)
            case Text(items):
                return home.from_list(list(items), self.dtype, self.shape)
            case _:
                return home.from_bytes(self.raw(), self.dtype, self.shape)

    def list(self) -> list[Number | str]:
        """The elements as a flat list of Python numbers, bools or str."""
        if isinstance(self.source, Text):
            return list(self.source.items)
        if isinstance(self.source, Fill):
            return [self.source.number] * self.size
        if self.dtype.code is not None and not self.dtype.is_bool:
            return list(struct.unpack(f"<{self.size}{self.dtype.code}", self.raw()))
        from emberlet.backend import get_backend

        home = get_backend("python")
        return list(home.to_list(home.from_bytes(bytes(self.raw()), self.dtype, self.shape)))

    def ints(self) -> tuple[int, ...]:
        """The elements as ints. Raises Problem if they are not integers."""
        if not self.dtype.is_integer:
            raise Problem(f"expected integers, found a constant of dtype {self.dtype}")
        return tuple(int(v) for v in self.list())

    def item(self) -> Number | str:
        """The only element. Raises Problem unless there is exactly one."""
        if self.size != 1:
            raise Problem(f"expected one element, found a constant of shape {self.shape}")
        return self.list()[0]


def _turned(matrix: Value) -> bytes:
    """The bytes of the transposed matrix, without a backend, which would have to be imported."""
    elements = memoryview(matrix.raw()).cast("B").cast(WORDS[matrix.dtype.bits])
    columns = matrix.shape[1]
    return b"".join([elements[i::columns].tobytes() for i in range(columns)])


def _repeated(number: Number, dtype: DType, count: int) -> bytes:
    """The bytes of `count` elements that are all `number`."""
    from emberlet.backend import get_backend

    home = get_backend("python")
    whole = 1 if dtype.bits >= 8 else 4 if 8 % dtype.bits else 8 // dtype.bits  # narrow elements share bytes
    unit = bytes(home.to_bytes(home.full((whole,), number, dtype)))
    if count % whole == 0:
        return unit * (count // whole)
    rest = bytes(home.to_bytes(home.full((count % whole,), number, dtype)))
    return unit * (count // whole) + rest


def ints_value(values: tuple[int, ...], dtype: DType = int64) -> Value:
    """A rank-1 constant of integers. Raises Problem if one is out of the dtype's range."""
    try:
        data = struct.pack(f"<{len(values)}{dtype.code}", *values)
    except struct.error:
        raise Problem(f"makes integers that do not fit {dtype.name}") from None
    return Value(dtype, (len(values),), Inline(data))


def scalar_value(number: Number, dtype: DType) -> Value:
    """A rank-0 constant."""
    return Value(dtype, (), Fill(number))


def text_value(items: tuple[str, ...], shape: tuple[int, ...] | None = None) -> Value:
    """A constant of strings, rank 1 unless `shape` says otherwise."""
    return Value(string_dtype, (len(items),) if shape is None else shape, Text(items))
