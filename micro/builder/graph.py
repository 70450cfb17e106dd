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
from .quantization.sixteen import parted

L = TypeVar("L", bound=Layer)


@dataclass(frozen=True)
class Grid:
    """What bytes, or words of 16 bits, mean: scale * (q - zero)."""

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
    """The meaning of an output's words: steps from kernels.trees.MIDDLE; transform: the function applied to all of
    them."""

    step: float
    transform: str | None = None


@dataclass(frozen=True)
class Reshape(Layer):
    """The same elements under another shape: no kernel, one buffer."""

    shape: tuple[int, ...]

    def reference(self, *inputs: Array) -> Array:
        return inputs[0].reshape(self.shape)


@dataclass(frozen=True)
class Graph:
    """shapes: of every tensor; grids: of tensors whose bytes are decided (all of them, once quantized);
    weight_scales: per output channel, of layers whose weights came quantized, by the layer's name; weight_zeros: the
    bytes of zero of those that are asymmetric; layouts: of inputs that come in another order than the model's, their
    shape in the model and its axes in the order they come; states: tensors that are kept from one inference to the
    next, and what their elements are at first: layers read them, and the last layers, `kernels.state.Keep`, write them;
    doubled: the arithmetic is TensorFlow Lite's (quantization/doubled.py); once: the names of layers that round once
    all the same; unsigned: of averages whose bytes are uint8 in the file; cuts: of inputs that hold ranks, the numbers
    that each feature is ranked among; sums: of outputs that hold words; labels: of outputs, the names of their
    elements; calls_to_fill: inferences on zeros that fill a stream's states before its first step; integers: of inputs
    and outputs that are bytes in the model too, what a stored byte is more than the model's number: 0 for uint8, 128
    for int8; words: of a quantized graph, tensors of indices whose
    elements take two bytes, along a last axis of 2 (quantization/indices.py); whole: tensors that hold whole numbers
    (indices, counts, 1 and 0 for true and false), which keep steps of one where those fit a byte; packed: layers whose
    weights came with 4 bits, and are to lie two in a byte.
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
    sums: Mapping[str, Sums] = field(default_factory=dict)
    labels: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    calls_to_fill: int = 0
    integers: Mapping[str, int] = field(default_factory=dict)
    words: frozenset[str] = frozenset()
    packed: frozenset[str] = frozenset()

    @property
    def wide(self) -> tuple[str, ...]:
        """The tensors of 16 bits."""
        return tuple(name for name, grid in self.grids.items() if grid.wide)

    def check(self) -> Graph:
        """Returns this graph. Raises ModelError if a layer reads a tensor that no earlier one wrote, or a tensor has no
        shape."""
        known = {*self.inputs, *self.states}
        for layer in self.layers:
            for name in layer.inputs:
                if name not in known:
                    raise ModelError(
                        f"{self.name}: layer {layer.name!r} reads {name!r}, which nothing before it writes"
                    )
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
        """The graph with other layers, and only the shapes and grids of the tensors they mention."""
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
        """Every tensor, by the layers' NumPy references; inputs in float32, or bytes where the graph is quantized.

        For a model that was already quantized (a float32 graph with grids), tensors have onnxruntime's values after Q
        and DQ.

        states: the states of layers and tensors, by name; empty at first, updated by each call. Without it every call
        starts anew. Raises ShapeError if an input is missing or has another size.
        """
        if self.calls_to_fill and not states:
            states = {} if states is None else states
            started, zeros = replace(self, calls_to_fill=0), self._zeros()
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
        """A number as it lies in the arena: a float, a byte, or the two bytes of a word."""
        if self.is_float:
            return (float(first),)
        word = int(first)
        return (word & 255, word >> 8) if self.grids[name].wide else (word,)

    def _zeros(self) -> dict[str, Array]:
        """Inputs that represent zeros."""
        if self.is_float:
            return {name: np.zeros(self.shapes[name], np.float32) for name in self.inputs}
        return {name: self._zero(name) for name in self.inputs}

    def _zero(self, name: str) -> Array:
        grid, shape = self.grids[name], self.shapes[name]
        if grid.wide:
            return parted(np.full((*shape[:-1], shape[-1] // 2), grid.zero))
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
