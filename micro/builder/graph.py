"""The graph between an importer and the memory plan: layers in order, first float32, after quantization int8.

Tensors have no batch axis; images are (height, width, channels), sequences (steps, channels).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeVar

import numpy as np
from emberlet.errors import ModelError, ShapeError

from .kernels.layer import Array, Layer
from .quantization.reference import dequantize, steps_of
from .quantization.sixteen import to_bytes

L = TypeVar("L", bound=Layer)


@dataclass(frozen=True)
class Grid:
    """The meaning of bytes, or of 16-bit words: scale * (q - zero)."""

    scale: float
    zero: int
    bits: int = 8

    @property
    def wide(self) -> bool:
        return self.bits == 16

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest number."""
        return self.scale * -self.zero, self.scale * ((1 << self.bits) - 1 - self.zero)


@dataclass(frozen=True)
class Sums:
    """The meaning of an output's words: multiples of `step` above or below kernels.trees.MIDDLE; transform: a function
    of all of them."""

    step: float
    transform: str | None = None


@dataclass(frozen=True)
class Columns:
    """What `put` does to each number of an input before it becomes a byte: (number - offset) * factor, in float64."""

    offset: Array
    factor: Array

    @classmethod
    def unchanged(cls, count: int) -> Columns:
        return cls(np.zeros(count), np.ones(count))

    @property
    def differ(self) -> bool:
        """Whether `put` changes anything."""
        return bool(self.offset.any() or (self.factor != 1).any())

    def of(self, numbers: Array) -> Array:
        """The shifted and scaled numbers, float32; the last axis has the columns."""
        return ((numbers.astype(np.float64) - self.offset) * self.factor).astype(np.float32)

    def then(self, operation: str, constant: Array) -> Columns:
        """Followed by an operation ("add", "sub", "mul", "div") with a constant of each column, or of all."""
        if operation in ("add", "sub"):
            shift = constant / self.factor
            return Columns(self.offset - shift if operation == "add" else self.offset + shift, self.factor)
        return Columns(self.offset, self.factor * constant if operation == "mul" else self.factor / constant)


@dataclass(frozen=True)
class Reshape(Layer):
    """The same elements in another shape: no kernel runs, and the buffer is shared."""

    shape: tuple[int, ...]

    def reference(self, *inputs: Array) -> Array:
        return inputs[0].reshape(self.shape)


@dataclass(frozen=True)
class Graph:
    """shapes: of every tensor; grids: of tensors whose bytes have a meaning (all if quantized); weight_scales: layers
    whose weights the model quantized -> a scale per output channel; weight_zeros: those of them with asymmetric weights
    -> the byte of zero; layouts: inputs that are passed in another order than the model's -> their shape in the model,
    and its axes in the order passed; states: tensors kept between inferences -> the initial value of their elements:
    layers read them, and the last layers, `kernels.state.Keep`, write them; doubled: the arithmetic is TensorFlow
    Lite's (quantization/doubled.py); once: the layers that nevertheless round only once; unsigned: averages whose bytes
    are uint8 in the file; cuts: inputs that hold ranks -> the thresholds of each feature; ranks_of_nan: these inputs
    -> the rank of NaN, and the features of the ranks beyond one for each; sums: outputs that hold words
    -> their meaning; labels: outputs -> names of their elements; calls_to_fill: inferences on zeros that fill a
    stream's states before its first step; integers: inputs and outputs that are bytes in the model too -> what is added
    to the model's number to store it, 0 for uint8 and 128 for int8; words: tensors of indices in a quantized graph
    whose elements take two bytes, along a last axis of 2 (quantization/indices.py); whole: tensors of whole numbers
    (indices, counts, 1 and 0 for true and false), whose grids have steps of one if they fit a byte; packed: layers
    whose weights are 4-bit in the model and are to be stored two in a byte; decides: the output that holds the index of
    the class among its labels, if that is not the index of another output's largest element; columns: inputs whose
    numbers `put` shifts and scales first (quantization/columns.py).
    """

    name: str
    layers: tuple[Layer, ...]
    shapes: Mapping[str, tuple[int, ...]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    is_float: bool = True
    grids: Mapping[str, Grid] = field(default_factory=dict)
    weight_scales: Mapping[str, Array] = field(default_factory=dict)
    weight_zeros: Mapping[str, int] = field(default_factory=dict)
    layouts: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    states: Mapping[str, float] = field(default_factory=dict)
    doubled: bool = False
    once: frozenset[str] = frozenset()
    unsigned: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    cuts: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    ranks_of_nan: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    sums: Mapping[str, Sums] = field(default_factory=dict)
    labels: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    calls_to_fill: int = 0
    integers: Mapping[str, int] = field(default_factory=dict)
    words: frozenset[str] = frozenset()
    packed: frozenset[str] = frozenset()
    decides: str = ""
    columns: Mapping[str, Columns] = field(default_factory=dict)

    @property
    def wide(self) -> tuple[str, ...]:
        """The tensors of 16 bits."""
        return tuple(name for name, grid in self.grids.items() if grid.wide)

    def check(self) -> Graph:
        """Returns this graph. Raises ModelError if a layer reads a tensor that no earlier layer wrote, or if a tensor
        has no shape."""
        known = {*self.inputs, *self.states}
        for layer in self.layers:
            for name in layer.inputs:
                if name not in known:
                    raise ModelError(f"{self.name}: layer {layer.name!r} reads {name!r}, which no earlier layer writes")
            known.add(layer.output)
        missing = [name for name in known if name not in self.shapes]
        if missing or not set(self.outputs) <= known:
            raise ModelError(f"{self.name}: no shape for {missing}, outputs {self.outputs} of {sorted(known)}")
        return self

    def order_text(self, name: str) -> str:
        """The axes of an input in words; "" if there is only one, or none is known."""
        dims, order = self.layouts.get(name, ((), ()))
        if sum(n != 1 for n in dims) < 2:
            return ""
        if len(dims) == 4:
            return "height × width × channels"
        return "as in the model" if order == tuple(sorted(order)) else "steps × channels"

    def consumers(self) -> dict[str, list[Layer]]:
        """The layers that read each tensor."""
        readers: dict[str, list[Layer]] = {name: [] for name in self.shapes}
        for layer in self.layers:
            for name in dict.fromkeys(layer.inputs):
                readers[name].append(layer)
        return readers

    def with_layers(self, layers: Iterable[Layer]) -> Graph:
        """The graph with other layers, and the shapes and grids of their tensors only."""
        kept = tuple(layers)
        names = {
            *self.inputs,
            *self.outputs,
            *self.states,
            *(n for layer in kept for n in (*layer.inputs, layer.output)),
        }
        return replace(
            self,
            layers=kept,
            shapes={n: s for n, s in self.shapes.items() if n in names},
            grids={n: g for n, g in self.grids.items() if n in names},
        )

    def run(self, inputs: Mapping[str, Array], states: dict[str, Any] | None = None) -> dict[str, Array]:
        """Every tensor, computed by the layers' NumPy references. Inputs are float32, or bytes if the graph is
        quantized.

        In the float32 graph of a quantized model, tensors have the values that onnxruntime computes after
        QuantizeLinear and DequantizeLinear.

        states: the states of layers and tensors, by name; pass an empty dictionary at first, and each call updates it.
        Without it every call starts anew. Raises ShapeError if an input is missing or has another size.
        """
        if self.calls_to_fill and not states:
            states = {} if states is None else states
            started, zeros = replace(self, calls_to_fill=0), self.zeros
            for _ in range(self.calls_to_fill):
                started.run(zeros, states)
        values: dict[str, Array] = {}
        for name in self.inputs:
            if name not in inputs:
                raise ShapeError(f"{self.name}: no value for input {name!r}; found {sorted(inputs)}")
            x = np.asarray(inputs[name])
            if x.size != prod(self.shapes[name]):
                raise ShapeError(f"{self.name}: input {name!r} has shape {x.shape}, expected {self.shapes[name]}")
            values[name] = self._on_grid(name, x.reshape(self.shapes[name]))
        dtype = np.float32 if self.is_float else np.uint8
        for name, first in self.states.items():
            before = None if states is None else states.get(name)
            elements = self.elements(name, first)
            values[name] = np.resize(np.array(elements, dtype), self.shapes[name]) if before is None else before
        for layer in self.layers:
            given = [values[name] for name in layer.inputs]
            if layer.remembers and states is not None:
                y, states[layer.name] = layer.advance(states.get(layer.name), *given)
            else:
                y = layer.reference(*given)
            values[layer.output] = self._on_grid(layer.output, y.reshape(self.shapes[layer.output]))
        if states is not None:
            states.update((name, values[name]) for name in self.states)
        return values

    def elements(self, name: str, first: float) -> tuple[float, ...]:
        """A number as the arena stores it: a float, a byte, or the two bytes of a word."""
        if self.is_float:
            return (float(first),)
        word = int(first)
        return (word & 255, word >> 8) if self.grids[name].wide else (word,)

    @property
    def zeros(self) -> dict[str, Array]:
        """Inputs that represent zeros."""
        if self.is_float:
            return {name: np.zeros(self.shapes[name], np.float32) for name in self.inputs}
        return {name: self._zero(name) for name in self.inputs}

    def _zero(self, name: str) -> Array:
        grid, shape = self.grids[name], self.shapes[name]
        if grid.wide:
            return to_bytes(np.full((*shape[:-1], shape[-1] // 2), grid.zero))
        return np.full(shape, grid.zero, np.uint8)

    def _on_grid(self, name: str, x: Array) -> Array:
        """Numbers saturated and rounded to the tensor's grid, if a float32 graph has one for it."""
        if not self.is_float or name not in self.grids:
            return x
        grid = self.grids[name]
        return dequantize(steps_of(x, grid.scale, grid.zero, grid.bits), grid.scale, grid.zero)


def renamed(layer: L, inputs: Mapping[str, str] | None = None, output: str | None = None) -> L:
    """A copy of a layer with renamed inputs (old name -> new name) or output."""
    names = tuple((inputs or {}).get(n, n) for n in layer.inputs)
    return replace(layer, inputs=names, output=output or layer.output)
