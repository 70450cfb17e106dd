"""A model ready for emission: its layers in order, every tensor's offset in the arena, and the constants in two
blobs."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .graph import Columns, Sums
from .kernels.layer import Array, Layer, View

First = tuple[int, int, tuple[float, ...]]
"""An offset in the arena, a number of elements, and their initial values, repeated."""


@dataclass(frozen=True)
class Step:
    """One layer with the views of its tensors and the offsets that its kernel is called with."""

    layer: Layer
    inputs: tuple[View, ...]
    output: View
    places: dict[str, int]


@dataclass(frozen=True)
class Port:
    """An input or output of the model: its offset in the arena, and the meaning of its elements.

    scale, zero: of the bytes; unused if the model is float32. order: its axes, in words. cuts: if the bytes are ranks,
    the thresholds of each feature; nan: the rank of NaN, and the features of the ranks beyond one for each; sums: if
    they are words, their meaning; labels: names of the elements; decides: whether it holds the place of the class among
    its labels; width: bytes of an element; integer: the offset of the byte from the number of an int8 or uint8 tensor;
    columns: how `put` shifts and scales each number first.
    """

    name: str
    shape: tuple[int, ...]
    place: int
    scale: float = 1.0
    zero: int = 0
    order: str = ""
    cuts: tuple[tuple[float, ...], ...] | None = None
    sums: Sums | None = None
    labels: tuple[int | str, ...] = ()
    integer: int | None = None
    width: int = 1
    decides: bool = False
    nan: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    columns: Columns | None = None

    @property
    def size(self) -> int:
        """Its size in elements of the arena."""
        return int(np.prod(self.shape)) * self.width

    @property
    def grid(self) -> tuple[float, int]:
        """The step and the zero point of its bytes; those of the model's own integers are whole."""
        return (self.scale, self.zero) if self.integer is None else (1, self.integer)

    def text(self) -> str:
        """Name, shape and axes, for people to read."""
        order = f" ({self.order})" if self.order else ""
        return f"{_plain(self.name)}: {' × '.join(map(str, self.shape)) or 'one number'}{order}"


def _plain(name: str) -> str:
    """A name from the model's file, escaped for a docstring."""
    return "".join(c if c.isalnum() or c in "_./:- " else "?" for c in name)


@dataclass(frozen=True)
class Program:
    """weights: uint8, or float32 if `is_float`; words: T; arena: its size in elements; peak: the layer at which most of
    it is used; states: (offset, elements, initial values, repeated) of the layers' states; kept: the same for tensors
    kept between inferences; calls_to_fill: as in Graph; second_core: whether an RP2040's runs half of the large layers.
    """

    name: str
    is_float: bool
    steps: tuple[Step, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    arena: int
    weights: Array
    words: tuple[int, ...]
    peak: str = ""
    states: tuple[First, ...] = ()
    kept: tuple[First, ...] = ()
    calls_to_fill: int = 0
    second_core: bool = False

    @property
    def arena_bytes(self) -> int:
        return self.arena * (4 if self.is_float else 1)

    @property
    def weight_bytes(self) -> bytes:
        """W as stored in flash, little-endian."""
        return self.weights.astype("<f4" if self.is_float else np.uint8).tobytes()

    @property
    def word_bytes(self) -> bytes:
        """T as stored in flash, little-endian."""
        return struct.pack(f"<{len(self.words)}I", *self.words)

    @property
    def macs(self) -> int:
        return sum(step.layer.macs for step in self.steps)


class Constants:
    """W and T, filled layer by layer; equal parts are stored once."""

    def __init__(self, is_float: bool, beyond: int = 0) -> None:
        """beyond: the number of zeros after the weights."""
        self._beyond = beyond
        self._parts: list[Array] = []
        self._places: dict[bytes, int] = {}
        self._size = 0
        self._dtype = np.float32 if is_float else np.uint8
        self.words: list[int] = []
        self._tables: dict[tuple[int, ...], int] = {}

    def add(self, layer: Layer) -> tuple[int, int]:
        """Add a layer's constants; returns their offsets in W and in T."""
        weights, words = layer.constants()
        return self._weights(np.ascontiguousarray(weights, self._dtype)), self._table(words)

    def _weights(self, weights: Array) -> int:
        if not weights.size:
            return 0
        key = weights.tobytes()
        if key not in self._places:
            self._places[key] = self._size
            self._parts.append(weights)
            self._size += weights.size
        return self._places[key]

    def _table(self, words: Sequence[int]) -> int:
        if not words:
            return 0
        key = tuple(words)
        if key not in self._tables:
            self._tables[key] = len(self.words)
            self.words += words
        return self._tables[key]

    @property
    def weights(self) -> Array:
        return np.concatenate([*self._parts, np.zeros(self._beyond, self._dtype)])
