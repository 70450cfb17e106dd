"""The state of an import: the layers so far, and how each of the model's tensors is stored.

A tensor records the order of its axes in memory, so a transposition costs nothing until a layer needs another order.
Convolutions read and write channels last, whatever the model's order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ir.value import Value
from emberlet.dtypes import DType
from emberlet.errors import ModelError

from ..graph import Graph, Grid, Reshape, Sums
from ..kernels.constant import Constant
from ..kernels.elementwise import MapFloat
from ..kernels.interpolate import Interpolate
from ..kernels.lanes import Take
from ..kernels.layer import Array, Layer
from ..kernels.move import Move, Part, strides
from ..kernels.nest import Axis
from ..kernels.pool import MaxPool, ReduceFloat
from ..kernels.state import Keep
from ..quantization.reference import ZERO
from .layout import Channels, Order, channels_last


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of the model. name: in the graph; dims: its shape in the model; order: its axes as stored, outermost
    first."""

    name: str
    dims: tuple[int, ...]
    order: Order

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as stored, without a leading batch of 1."""
        sizes = [self.dims[a] for a in self.order]
        return tuple(sizes[1:] if sizes and self.order[0] == 0 and sizes[0] == 1 else sizes)

    def has_order(self, order: Order) -> bool:
        """Whether the tensor is also stored in `order`: axes of size 1 may be anywhere."""
        return [a for a in self.order if self.dims[a] != 1] == [a for a in order if self.dims[a] != 1]


def _plain(held: StoredTensor) -> Order:
    return tuple(range(len(held.dims)))


@dataclass
class Importer:
    """The state of an import; methods raise Problem for anything unsupported.

    layouts: of inputs, their shape in the model and the order of their axes; moved: the number of elements that
    transpositions move; flattened: tensors that the model flattened while stored in another order -> the position of
    each element in the model's order; unflattened: these tensors before the model flattened them; read: tensors that a
    node or the model's caller reads; only_output: those that only the caller reads; only_softmax: those that only
    softmax reads; dropped: outputs that stay internal, and what is computed from them; remembered: inputs that are
    states of layers; problems: one line for each reason why the model cannot run; channels: the channel axes of inputs;
    kept: the layers that write states; constant_grids: the grids of constants that the model quantized; prepared:
    tensors that are an input, scaled and filled -> what was done (trees.py); coded: tensors looked up in a table of
    bytes and not yet dequantized -> what is added to the table's numbers to store them; dynamic: values of
    dynamic quantization (dynamic.py); narrow: 4-bit constants; labels: those of the classes; decisions:
    labels of classes (labels.py); only_given: tensors that only the caller reads, possibly cast; ranks_alone: whether
    the model is one ensemble of trees, which then reads ranks; states, cuts, ranks_of_nan, sums, integers, whole,
    packed, decides: as in Graph.
    """

    name: str
    layers: list[Layer] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    held: dict[str, StoredTensor] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    grids: dict[str, Grid] = field(default_factory=dict)
    weight_scales: dict[str, Array] = field(default_factory=dict)
    weight_zeros: dict[str, int] = field(default_factory=dict)
    scales: dict[str, tuple[Array, int, int]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    layouts: dict[str, tuple[tuple[int, ...], Order]] = field(default_factory=dict)
    flattened: dict[str, Array] = field(default_factory=dict)
    unflattened: dict[str, StoredTensor] = field(default_factory=dict)
    moved: int = 0
    states: dict[str, float] = field(default_factory=dict)
    kept: list[Layer] = field(default_factory=list)
    constant_grids: dict[str, Grid] = field(default_factory=dict)
    integers: dict[str, int] = field(default_factory=dict)
    dynamic: dict[str, Any] = field(default_factory=dict)
    prepared: dict[str, Any] = field(default_factory=dict)
    coded: dict[str, int] = field(default_factory=dict)
    cuts: dict[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    ranks_of_nan: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    sums: dict[str, Sums] = field(default_factory=dict)
    labels: tuple[int | str, ...] = ()
    decisions: list[Any] = field(default_factory=list)
    only_given: set[str] = field(default_factory=set)
    decides: str = ""
    ranks_alone: bool = False
    whole: set[str] = field(default_factory=set)
    narrow: set[str] = field(default_factory=set)
    packed: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    only_output: set[str] = field(default_factory=set)
    only_softmax: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    remembered: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    channels: Channels = field(default_factory=Channels)
    _moved: dict[tuple[str, Order], StoredTensor] = field(default_factory=dict)

    # -- tensors ------------------------------------------------------------------------------------------------------

    def add_input(self, argument: Argument, order: Order) -> None:
        """Add a model input. order: its axes as passed, outermost first. Raises ModelError if it holds no elements."""
        kind = _byte_of(argument)
        dims = dims_of(argument)
        if not all(dims):
            raise ModelError(f"input {argument.name!r} has shape {dims}, which holds no elements")
        held = StoredTensor(self.fresh(argument.name), dims, order)
        self.layouts[held.name] = dims, order
        self.shapes[held.name] = held.shape
        self.held[argument.name] = held
        self.inputs.append(held.name)
        if kind is not None:
            self.integers[held.name] = kind
        self._note_whole(argument, held)

    def add_output(self, argument: Argument) -> None:
        """Add a model output, its elements in the model's order."""
        if argument.name in self.dropped:
            return
        if argument.value is not None:
            raise Problem("the input is a constant")
        held = self.of(argument)
        held = self.ordered(held, _plain(held))
        kind, before = _byte_of(argument), self.integers.get(held.name)
        if kind is not None and self.grid_behind(held) is None and before is None:
            raise Problem("integers without a QuantizeLinear are not supported")
        if (held.name in self.outputs or before is not None) and kind != before:
            # The same bytes, as real numbers and as integers.
            copied = self.part_of(held, "again")
            self.layers.append(MapFloat(f"copy {held.name}", (held.name,), copied, self.shapes[held.name], ()))
            # A tensor of bytes without a scale holds whole numbers.
            self.grids[copied] = self.grids.get(held.name) or Grid(1.0, before or 0)
            held = StoredTensor(copied, held.dims, held.order)
        self.outputs.append(held.name)
        if kind is not None:
            self.integers[held.name] = kind

    def fresh(self, name: str) -> str:
        """A name that no tensor of the graph has."""
        out, n = name, 1
        while out in self.shapes:
            n += 1
            out = f"{name}.{n}"
        return out

    def of(self, argument: Argument, flat: bool = False) -> StoredTensor:
        """How a node's input is stored. flat: the node reads a flattened tensor's elements as stored.

        Raises Problem for a constant.
        """
        if argument.name in self.held:
            held = self.held[argument.name]
            if held.name in self.unflattened and not flat:
                before = self.unflattened[held.name]
                return self.shaped(StoredTensor(self.ordered(before, _plain(before)).name, held.dims, _plain(held)))
            return held
        if argument.value is not None:
            raise Problem(f"input {argument.name!r} is a constant, expected a tensor that the model computes")
        raise Problem(f"input {argument.name!r} is not a tensor of numbers")

    def computed(self, node: Node[Any], i: int) -> StoredTensor:
        """`of` for input i; a constant gets a tensor and a layer that writes it. Raises Problem."""
        argument = node.inputs[i]
        if argument.value is None or argument.name in self.held:
            return self.of(argument)
        value = self.array(node, i, "an operand")
        plain = tuple(range(value.ndim))
        held = StoredTensor(self.fresh(argument.name), value.shape, plain)
        self.shapes[held.name] = held.shape
        self.held[argument.name] = held
        self._note_whole(argument, held)
        self.layers.append(Constant(f"constant {held.name}", (), held.name, value.astype(np.float32)))
        grid = self.constant_grids.get(argument.name) or self.grid_of_constant(argument)
        if grid is not None:
            self.grids[held.name] = grid
        return held

    def define(self, argument: Argument, order: Order) -> StoredTensor:
        """The stored tensor for an output that a layer is about to write."""
        held = StoredTensor(self.fresh(argument.name), dims_of(argument), order)
        self.shapes[held.name] = held.shape
        self.held[argument.name] = held
        self._note_whole(argument, held)
        return held

    def _note_whole(self, argument: Argument, held: StoredTensor) -> None:
        """Record integer tensors. Those of at most 16 bits come from QuantizeLinear and have a scale."""
        dtype = argument.type.dtype if isinstance(argument.type, TensorType) else None
        if dtype is not None and (dtype.is_bool or (dtype.is_integer and dtype.bits > 16)):
            self.whole.add(held.name)

    @staticmethod
    def dtype_of(argument: Argument) -> DType:
        """The dtype of a tensor. Raises Problem unless it is of numbers or booleans."""
        t = argument.type
        if not isinstance(t, TensorType) or not (t.dtype.is_float or t.dtype.is_integer or t.dtype.is_bool):
            raise Problem(f"{argument.name!r} is {t}; numbers and booleans are supported")
        return t.dtype

    def part_of(self, held: StoredTensor, what: str) -> str:
        """The name of a new tensor of the graph, with another tensor's shape."""
        name = self.fresh(f"{held.name}:{what}")
        self.shapes[name] = self.shapes[held.name]
        return name

    def alias(self, argument: Argument, source: StoredTensor, order: Order | None = None) -> None:
        """An output that shares the elements of `source`, in the model's shape."""
        dims = dims_of(argument)
        target = StoredTensor(source.name, dims, order if order is not None else tuple(range(len(dims))))
        self.held[argument.name] = self.shaped(target)

    def shaped(self, held: StoredTensor, shape: tuple[int, ...] | None = None) -> StoredTensor:
        """The tensor, renamed by a reshape if its tensor in the graph has another shape."""
        shape = held.shape if shape is None else shape
        if self.shapes[held.name] == shape:
            return held
        name = self.fresh(f"{held.name}:{'x'.join(map(str, shape))}")
        self.shapes[name] = shape
        self.layers.append(Reshape(f"reshape {held.name}", (held.name,), name, shape))
        if held.name in self.grids:
            self.grids[name] = self.grids[held.name]
        return StoredTensor(name, held.dims, held.order)

    def ordered(self, held: StoredTensor, order: Order) -> StoredTensor:
        """The tensor stored in the given order; moves elements only if necessary."""
        if held.has_order(order):
            return self.shaped(StoredTensor(held.name, held.dims, order))
        key = (held.name, order)
        if key not in self._moved:
            target = StoredTensor(self.fresh(f"{held.name}:moved"), held.dims, order)
            self.shapes[target.name] = target.shape
            sizes = [held.dims[a] for a in held.order]
            steps = dict(zip(held.order, strides(sizes), strict=True))
            out = strides([held.dims[a] for a in order])
            axes = tuple(Axis(held.dims[a], (steps[a], to)) for a, to in zip(order, out, strict=True))
            self.layers.append(
                Move(f"transpose {held.name}", (held.name,), target.name, target.shape, (Part(0, 0, axes),))
            )
            self.moved += prod(target.shape)
            if held.name in self.grids:
                self.grids[target.name] = self.grids[held.name]
            self._moved[key] = target
        return self._moved[key]

    def image(self, argument: Argument) -> StoredTensor:
        """An input (n, c, *spatial), channels last, as (h, w, c) or (w, c). Raises Problem for a batch."""
        held = self.of(argument)
        rank = len(held.dims)
        if rank not in (3, 4):
            raise Problem(f"the input has shape {held.dims}; one or two spatial axes are supported")
        if held.dims[0] != 1:
            raise Problem(f"the batch size is {held.dims[0]}; only 1 is supported")
        return self.ordered(held, channels_last(rank))

    # -- constants ----------------------------------------------------------------------------------------------------

    def array(self, node: Node[Any], i: int, what: str, limits: bool = False) -> Array:
        """Input i as an array of finite numbers; `limits` may be infinite.

        Raises Problem if it is not constant, or holds NaN or numbers beyond float32.
        """
        value = node.value(i)
        if value is None:
            raise Problem(f"{what} must be constant")
        x = numpy_of(value)
        wrong = int(np.count_nonzero(np.isnan(x) if limits else ~np.isfinite(x)))
        if wrong:
            raise Problem(
                f"{what}, tensor {node.inputs[i].name!r}, holds {wrong} values that are NaN or beyond float32; "
                "export the model again with finite values"
            )
        return x

    def note_scales(self, node: Node[Any]) -> None:
        """Record the scales of quantized constant weights."""
        scale = numpy_of(node.value(1)) if node.value(1) is not None else None  # type: ignore[arg-type]
        zero = numpy_of(node.value(2)) if node.has(2) and node.value(2) is not None else np.zeros(1)  # type: ignore[arg-type]
        value = node.value(0)
        if scale is None or value is None or value.dtype.name not in BYTES or scale.ndim > 1:
            return
        if np.any(zero != zero.reshape(-1)[0]) or node.config.block_size:
            return  # one zero point per channel: such weights are quantized again
        axis = node.config.axis % len(value.shape) if scale.ndim else 0
        steps = numpy_of(value).astype(np.int64) - int(zero.reshape(-1)[0])
        # If possible, weights are bytes around 128, which assembly kernels require.
        fits = steps.size and steps.min() >= -ZERO and steps.max() < ZERO
        byte = ZERO if fits else int(zero.reshape(-1)[0]) + BYTES[value.dtype.name]
        self.scales[node.outputs[0].name] = scale.astype(np.float64).reshape(-1), axis, byte
        if value.dtype.name in ("int4", "uint4"):
            self.narrow.add(node.outputs[0].name)

    def keep_scales(self, node: Node[Any], weight: Argument, axis: int, channels: int, factor: float = 1.0) -> None:
        """Record the scale of each channel of a layer whose weights the model quantized along `axis`.

        factor: the layer's factor on the weights.
        """
        if weight.name not in self.scales or not factor:
            return
        scale, along, zero = self.scales[weight.name]
        if scale.size != 1 and (along != axis or scale.size != channels):
            return
        self.weight_scales[node.name] = np.broadcast_to(scale, (channels,)) * abs(factor)
        if weight.name in self.narrow:
            self.packed.add(node.name)
        if zero != ZERO:
            self.weight_zeros[node.name] = zero if factor > 0 else 255 - zero

    def grid_of_constant(self, argument: Argument) -> Grid | None:
        """The grid of a constant that the model quantized with one scale."""
        scale, _, zero = self.scales.get(argument.name, (np.zeros(0), 0, 0))
        return Grid(float(scale[0]), zero) if scale.size == 1 and scale[0] > 0 else None

    def grid_behind(self, held: StoredTensor, wanted: Grid | None = None) -> Grid | None:
        """The grid of a quantized tensor, even if its bytes were moved since.

        wanted: the grid to assume for an input of the model that has none yet.
        """
        writers = {layer.output: layer for layer in self.layers}
        seen = [held.name]
        while seen[-1] not in self.grids:
            writer = writers.get(seen[-1])
            if wanted is not None and seen[-1] in self.inputs and seen[-1] in self.integers:
                self.grids[seen[-1]] = wanted
                break
            if wanted is not None and seen[-1] in self.coded and isinstance(writer, Take):
                self._decode(writer, wanted)
                break
            if writer is None or not keeps_grid(writer):
                return None
            seen.append(writer.inputs[0])
        for name in seen:
            self.grids[name] = self.grids[seen[-1]]
        return self.grids[held.name]

    def _decode(self, layer: Take, grid: Grid) -> None:
        """Replace a table's bytes by real numbers, now that their grid is known."""
        assert layer.table is not None
        steps = layer.table.astype(np.float64) + (self.coded.pop(layer.output) - grid.zero)
        real = replace(layer, table=(steps * grid.scale).astype(np.float32))
        self.layers[next(k for k, found in enumerate(self.layers) if found is layer)] = real
        self.grids[layer.output] = grid

    # -- the graph ----------------------------------------------------------------------------------------------------

    def add(self, layer: Layer) -> None:
        self.layers.append(layer)

    def keep_state(self, source: Argument, output: Argument) -> None:
        """Make a model input take an output's value of the previous inference, zeros at first.

        Raises Problem if their shapes differ.
        """
        before = self.held[source.name]
        if before.name in self.remembered or output.name in self.dropped:
            return  # a layer already keeps it
        after = self.of(output)
        if after.dims != before.dims:
            raise Problem(f"the shape is {after.dims}, but the state {source.name!r} has shape {before.dims}")
        name = self.ordered(after, before.order).name
        self.inputs.remove(before.name)
        self.states[before.name] = 0.0
        self.kept.append(Keep(f"keep {source.name}", (name,), before.name, self.shapes[before.name]))

    def take_state(self, held: StoredTensor) -> bool:
        """Whether a tensor is a model input or a part of one. If so, a layer keeps it, and the input is removed."""
        writers = {layer.output: layer for layer in self.layers}
        name = held.name
        while isinstance(writers.get(name), Move | Reshape) and len(writers[name].inputs) == 1:
            name = writers[name].inputs[0]
        if name not in self.inputs and name not in self.remembered:
            return False
        self.remembered.add(name)
        return True

    def _without_remembered(self) -> tuple[list[Layer], list[str]]:
        """The layers and inputs without states that layers keep, and without layers that only split those. Raises
        ModelError."""
        gone, layers = set(self.remembered), []
        for layer in self.layers:
            if gone.isdisjoint(layer.inputs):
                layers.append(layer)
            elif isinstance(layer, Move | Reshape):
                gone.add(layer.output)
            else:
                raise ModelError(f"layer {layer.name!r} reads a state that another layer keeps")
        if not gone.isdisjoint(self.outputs):
            raise ModelError("an output is an input state that a layer keeps")
        return layers, [name for name in self.inputs if name not in gone]

    def _give_states_before(self) -> None:
        """Give each output that is a state a tensor of its own: the state's value before this inference."""
        for k, name in enumerate(self.outputs):
            if name in self.states:
                before = self.outputs[k] = self.fresh(f"{name}:before")
                shape = self.shapes[before] = self.shapes[name]
                self.layers.append(Reshape(f"give {name}", (name,), before, shape))
                if name in self.grids:
                    self.grids[before] = self.grids[name]
                if name in self.integers:
                    self.integers[before] = self.integers[name]

    def _is_labeled(self, name: str) -> bool:
        """Whether an output has a score for each class, or is the place of the class."""
        if name == self.decides:
            return True
        return prod(self.shapes[name]) == len(self.labels) * (4 if name in self.sums else 1) > 0

    def graph(self) -> Graph:
        """The finished graph. Raises ModelError."""
        self._give_states_before()
        layers, inputs = self._without_remembered()
        return Graph(
            self.name,
            (*layers, *self.kept),
            self.shapes,
            tuple(inputs),
            tuple(self.outputs),
            grids=self.grids,
            weight_scales=self.weight_scales,
            weight_zeros=self.weight_zeros,
            layouts={name: self.layouts[name] for name in inputs},
            states=self.states,
            cuts=self.cuts,
            ranks_of_nan=self.ranks_of_nan,
            sums=self.sums,
            integers={n: k for n, k in self.integers.items() if n in inputs or n in self.outputs},
            whole=frozenset(self.whole),
            packed=frozenset(self.packed),
            labels={name: self.labels for name in self.outputs if self._is_labeled(name)},
            decides=self.decides,
            is_float=not self.sums,
        ).check()


def _byte_of(argument: Argument) -> int | None:
    """What is added to a number of an int8 or uint8 tensor to store it as a byte; None for other dtypes."""
    dtype = argument.type.dtype.name if isinstance(argument.type, TensorType) else ""
    return BYTES[dtype] if dtype in ("int8", "uint8") else None


def keeps_grid(layer: Layer) -> bool:
    """Whether a layer only copies bytes, so that input and output have the same grid."""
    if isinstance(layer, Move):
        return len(set(layer.inputs)) == 1 and layer.fill is None
    picks = isinstance(layer, ReduceFloat) and layer.operation != "sum"
    return isinstance(layer, MaxPool | Reshape | Interpolate) or picks


def dims_of(argument: Argument) -> tuple[int, ...]:
    """The shape of a tensor of floats (or quantized bytes). Raises Problem unless every size is known."""
    t = argument.type
    if not isinstance(t, TensorType) or t.static_shape is None:
        raise Problem(f"the shape of {argument.name!r} is not known before the model runs")
    return t.static_shape


BYTES = {"int8": 128, "uint8": 0, "int4": 128, "uint4": 0}
"""Dtype of weights -> the byte that stands for a stored 0."""

_DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")


def numpy_of(value: Value) -> Array:
    """A constant as an array: floats as float32, or float64 if stored so; 4-bit numbers as bytes.

    Raises Problem for dtypes NumPy does not have.
    """
    if value.dtype.name in ("int4", "uint4"):
        both = np.frombuffer(bytes(value.raw()), np.uint8)
        narrow_ = np.stack([both & 15, both >> 4], -1).reshape(-1)[: prod(value.shape)].reshape(value.shape)
        return narrow_ if value.dtype.name == "uint4" else ((narrow_ ^ 8).astype(np.int8) - 8).astype(np.int8)
    if value.dtype.name not in _DTYPES:
        raise Problem(f"a constant of dtype {value.dtype} is not supported")
    x = np.frombuffer(bytes(value.raw()), value.dtype.name).reshape(value.shape)
    if not value.dtype.is_float:
        return x
    with np.errstate(over="ignore"):
        narrow = x.astype(np.float32)
    return x.astype(np.float64) if x.dtype == np.float64 and np.isfinite(narrow).all() else narrow
