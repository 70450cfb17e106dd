"""A tensor of a store that has not been read yet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

from .. import dtypes
from ..backend import Backend, get_backend
from ..dtypes import DType
from ..errors import FormatError
from ..tensor import Tensor
from ..tensor_data import TensorData

Make = Callable[[Backend], Tensor]
Raw = Callable[[], memoryview]


class Packed(NamedTuple):
    """A matrix of integers as QuantizedWeight holds them.

    axis: that of its channels; bits: of a level; size: how many weights of a channel share a scale; zero: the level
    of zero; affine: whether something is subtracted; read: levels uint8 (channels, blocks, size), scales float32
    (channels, blocks), and None or what is subtracted, (channels, blocks), on the host; points: the level of zero of
    each block, float32 (channels, blocks), where blocks have their own, in place of `zero` and what is subtracted;
    along: where all weights have one scale, a function that gives the same with channels along another axis. joined: a
    function that gives the same in longer blocks of so many weights, None where their parts have several scales.
    """

    axis: int
    bits: int
    size: int
    zero: int
    affine: bool
    read: Callable[[], tuple[Tensor, Tensor, Tensor | None]]
    points: Callable[[], Tensor] | None = None
    along: Callable[[int], Packed | None] | None = None
    joined: Callable[[int], Packed | None] | None = None

    @property
    def symmetric(self) -> bool:
        """Whether the level of zero is the middle one, or becomes it by adding a number."""
        return not self.affine if self.points is None else not bool((self.points() != float(self.zero)).any())


class Quantized(NamedTuple):
    """How a tensor is stored quantized: the burnpack's scheme, a function that reads its bytes, and their number."""

    scheme: tuple[tuple[str, Any], ...] | dict[str, Any]
    read: Raw
    nbytes: int


def bools(raw: Raw, shape: tuple[int, ...], backend: Backend) -> Tensor:
    """Bools of one byte each, which in a file may be other than 0 and 1."""
    return backend.cast(backend.from_bytes(raw(), dtypes.uint8, shape), dtypes.bool)


class Snapshot:
    """A tensor that is read anew at each access.

    name: its key; original: its name in the file; dtype, shape: those of `tensor()`; param_id: the 64-bit identity of a
    parameter, or None; stored: the dtype or scheme as named in the file; nbytes: its size in the file; same: equal for
    all names of one tensor, None if there is only one; quantized: how a burnpack stores it quantized, or None; packed:
    its integers, or None; real: of a quantized weight's integers in a file, the weight as floats, or None; parts: of a
    matrix in PyTorch's layout that a file holds in narrow floats, a function of how many channels share scales that
    gives its "values" and "scale" as a QuantizedWeight holds them, or None; blocks: the name of a kind of GGUF's blocks
    and what reads those of the tensor, or None.
    """

    __slots__ = (
        "_make",
        "_raw",
        "blocks",
        "dtype",
        "name",
        "nbytes",
        "original",
        "packed",
        "param_id",
        "parts",
        "quantized",
        "real",
        "same",
        "shape",
        "stored",
    )

    def __init__(
        self, name: str, dtype: DType, shape: tuple[int, ...], *, raw: Raw | None = None, make: Make | None = None,
        original: str | None = None, param_id: int | None = None, stored: str = "", nbytes: int | None = None,
        same: object = None,
    ) -> None:  # fmt: skip
        if prod(n or 1 for n in shape) >= 1 << 59:  # NumPy checks the strides of empty arrays too
            raise FormatError(f"tensor {name[:80]!r} has shape {shape}, which is too large to address")
        self.name = name
        self.original = name if original is None else original
        self.dtype = dtype
        self.shape = shape
        self.param_id = param_id
        self.stored = stored or dtype.name
        self.nbytes = int(dtype.nbytes(prod(shape))) if nbytes is None else nbytes
        self.same = same
        self.quantized: Quantized | None = None
        self.packed: Packed | None = None
        self.real: Snapshot | None = None
        self.parts: Callable[[int], dict[str, Snapshot]] | None = None
        self.blocks: tuple[str, Raw] | None = None
        self._raw = raw
        self._make = make

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def tensor(self, backend: Backend | str | None = None) -> Tensor:
        """The tensor on `backend`. Raises FormatError if the file turns out not to hold it, OSError."""
        where = get_backend(backend)
        if self._make is not None:
            return self._make(where)
        return where.from_bytes(self.raw(), self.dtype, self.shape)

    def to_data(self) -> TensorData:
        """The elements, read now, as a TensorData."""
        data: TensorData = self.tensor().to_data()
        return data

    def raw(self) -> memoryview:
        """The elements as bytes: row-major, little-endian, those of 6, 4 and 2 bits packed."""
        if self._raw is not None:
            return self._raw()
        made = self.tensor()
        return memoryview(made.backend.to_bytes(made))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.tensor("numpy").__array__(dtype, copy=copy)

    def named(self, name: str) -> Snapshot:
        """The same tensor under another name."""
        made = Snapshot(
            name, self.dtype, self.shape, raw=self._raw, make=self._make, original=self.original,
            param_id=self.param_id, stored=self.stored, nbytes=self.nbytes, same=self.same,
        )  # fmt: skip
        for key in ("quantized", "packed", "real", "parts", "blocks"):
            setattr(made, key, getattr(self, key))
        return made

    def mapped(self, function: Callable[[Tensor], Tensor], dtype: DType, shape: tuple[int, ...]) -> Snapshot:
        """A Snapshot of function(tensor), a tensor of `dtype` and `shape`, computed when it is read."""
        return Snapshot(
            self.name, dtype, shape, make=lambda backend: function(self.tensor(backend)), original=self.original,
            param_id=self.param_id, stored=self.stored, nbytes=self.nbytes,
        )  # fmt: skip

    def watched(self, tell: Callable[[int], None]) -> Snapshot:
        """The same tensor; calls tell(bytes) whenever its bytes were read for a writer."""

        def told(read: Raw) -> memoryview:
            found = read()
            tell(len(found))
            return found

        made = Snapshot(
            self.name, self.dtype, self.shape, raw=partial(told, self.raw), make=self._make, original=self.original,
            param_id=self.param_id, stored=self.stored, nbytes=self.nbytes, same=self.same,
        )  # fmt: skip
        made.packed = self.packed
        if self.blocks is not None:
            made.blocks = self.blocks[0], partial(told, self.blocks[1])
        if self.quantized is not None:
            made.quantized = self.quantized._replace(read=partial(told, self.quantized.read))
        return made

    def transposed(self) -> Snapshot:
        """The transpose of a matrix."""
        return self.mapped(lambda x: x.mT, self.dtype, self.shape[::-1])

    def astype(self, dtype: DType) -> Snapshot:
        """The tensor in another dtype."""
        return self if dtype is self.dtype else self.mapped(lambda x: x.astype(dtype), dtype, self.shape)

    def __repr__(self) -> str:
        renamed = "" if self.original == self.name else f", from {self.original!r}"
        return f"Snapshot({self.name!r}, {self.dtype}, {self.shape}{renamed})"
