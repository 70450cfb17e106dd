"""The state of an import: the layers so far, how the model's tensors are stored, and what its outputs are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.errors import ModelError

from ..graph import Graph, Grid, Reshape
from ..kernels.constant import Constant
from ..kernels.elementwise import MapFloat
from ..kernels.lanes import Take
from ..kernels.layer import Array, Layer
from ..kernels.move import Move, Part, strides
from ..kernels.nest import Axis
from ..kernels.state import Keep
from .channels import Channels
from .grids import Grids, keeps_grid
from .layout import Layout, Order, StoredTensor, channels_last, dims_of
from .outputs import Outputs
from .ranks import Ranks
from .states import States
from .values import byte_of, numpy_of


@dataclass
class Importer:
    """The state of an import; methods raise Problem for anything unsupported.

    layers: those so far; inputs: of the graph; channels: the channel axes of inputs; dynamic: values of dynamic
    quantization (dynamic.py); broken: tensors that a node with a problem would compute; problems: one line for each
    reason why the model cannot run.
    """

    name: str
    outputs: Outputs = field(default_factory=Outputs)
    layers: list[Layer] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    layout: Layout = field(default_factory=Layout)
    grids: Grids = field(default_factory=Grids)
    states: States = field(default_factory=States)
    ranks: Ranks = field(default_factory=Ranks)
    channels: Channels = field(default_factory=Channels)
    dynamic: dict[str, Any] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    # -- tensors ------------------------------------------------------------------------------------------------------

    def add_input(self, argument: Argument, order: Order) -> None:
        """Add a model input. order: its axes as passed, outermost first. Raises ModelError if it holds no elements."""
        kind = byte_of(argument)
        dims = dims_of(argument)
        if not all(dims):
            raise ModelError(f"input {argument.name!r} has shape {dims}, which holds no elements")
        held = self.layout.store(argument.name, dims, order)
        self.layout.inputs[held.name] = dims, order
        self.inputs.append(held.name)
        if kind is not None:
            self.grids.integers[held.name] = kind
        self.grids.note_whole(argument, held)

    def add_output(self, argument: Argument) -> None:
        """Add a model output, its elements in the model's order."""
        if argument.name in self.outputs.dropped:
            return
        if argument.value is not None:
            raise Problem("the input is a constant")
        held = self.of(argument)
        held = self.ordered(held, held.plain)
        kind, before = byte_of(argument), self.grids.integers.get(held.name)
        if kind is not None and self.grid_behind(held) is None and before is None:
            raise Problem("integers without a QuantizeLinear are not supported")
        if (held.name in self.outputs.names or before is not None) and kind != before:
            # The same bytes, as real numbers and as integers.
            copied = self.layout.part_of(held, "again")
            self.layers.append(MapFloat(f"copy {held.name}", (held.name,), copied, self.layout.shapes[held.name], ()))
            # A tensor of bytes without a scale holds whole numbers.
            self.grids.tensors[copied] = self.grids.tensors.get(held.name) or Grid(1.0, before or 0)
            held = StoredTensor(copied, held.dims, held.order)
        self.outputs.names.append(held.name)
        if kind is not None:
            self.grids.integers[held.name] = kind

    def of(self, argument: Argument, flat: bool = False) -> StoredTensor:
        """How a node's input is stored. flat: the node reads a flattened tensor's elements as stored.

        Raises Problem for a constant.
        """
        if argument.name in self.layout.held:
            held = self.layout.held[argument.name]
            if held.name in self.layout.unflattened and not flat:
                before = self.layout.unflattened[held.name]
                return self.shaped(StoredTensor(self.ordered(before, before.plain).name, held.dims, held.plain))
            return held
        if argument.value is not None:
            raise Problem(f"input {argument.name!r} is a constant, expected a tensor that the model computes")
        raise Problem(f"input {argument.name!r} is not a tensor of numbers")

    def computed(self, node: Node[Any], i: int) -> StoredTensor:
        """`of` for input i; a constant gets a tensor and a layer that writes it. Raises Problem."""
        argument = node.inputs[i]
        if argument.value is None or argument.name in self.layout.held:
            return self.of(argument)
        value = self.array(node, i, "an operand")
        held = self.layout.store(argument.name, value.shape, tuple(range(value.ndim)))
        self.grids.note_whole(argument, held)
        self.layers.append(Constant(f"constant {held.name}", (), held.name, value.astype(np.float32)))
        grid = self.grids.constants.get(argument.name) or self.grids.of_constant(argument)
        if grid is not None:
            self.grids.tensors[held.name] = grid
        return held

    def define(self, argument: Argument, order: Order) -> StoredTensor:
        """The stored tensor for an output that a layer is about to write."""
        held = self.layout.store(argument.name, dims_of(argument), order)
        self.grids.note_whole(argument, held)
        return held

    def alias(self, argument: Argument, source: StoredTensor, order: Order | None = None) -> None:
        """An output that shares the elements of `source`, in the model's shape."""
        dims = dims_of(argument)
        target = StoredTensor(source.name, dims, order if order is not None else tuple(range(len(dims))))
        self.layout.held[argument.name] = self.shaped(target)

    def shaped(self, held: StoredTensor, shape: tuple[int, ...] | None = None) -> StoredTensor:
        """The tensor, renamed by a reshape if its tensor in the graph has another shape."""
        shape = held.shape if shape is None else shape
        if self.layout.shapes[held.name] == shape:
            return held
        name = self.layout.fresh(f"{held.name}:{'x'.join(map(str, shape))}")
        self.layout.shapes[name] = shape
        self.layers.append(Reshape(f"reshape {held.name}", (held.name,), name, shape))
        self.grids.follow(name, held.name)
        return StoredTensor(name, held.dims, held.order)

    def ordered(self, held: StoredTensor, order: Order) -> StoredTensor:
        """The tensor stored in the given order; moves elements only if necessary."""
        if held.has_order(order):
            return self.shaped(StoredTensor(held.name, held.dims, order))
        key = (held.name, order)
        if key not in self.layout.copies:
            target = StoredTensor(self.layout.fresh(f"{held.name}:moved"), held.dims, order)
            self.layout.shapes[target.name] = target.shape
            sizes = [held.dims[a] for a in held.order]
            steps = dict(zip(held.order, strides(sizes), strict=True))
            out = strides([held.dims[a] for a in order])
            axes = tuple(Axis(held.dims[a], (steps[a], to)) for a, to in zip(order, out, strict=True))
            self.layers.append(
                Move(f"transpose {held.name}", (held.name,), target.name, target.shape, (Part(0, 0, axes),))
            )
            self.layout.moved += prod(target.shape)
            self.grids.follow(target.name, held.name)
            self.layout.copies[key] = target
        return self.layout.copies[key]

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

    def grid_behind(self, held: StoredTensor, wanted: Grid | None = None) -> Grid | None:
        """The grid of a quantized tensor, even if its bytes were moved since.

        wanted: the grid to assume for an input of the model that has none yet.
        """
        writers = {layer.output: layer for layer in self.layers}
        seen = [held.name]
        while seen[-1] not in self.grids.tensors:
            writer = writers.get(seen[-1])
            if wanted is not None and seen[-1] in self.inputs and seen[-1] in self.grids.integers:
                self.grids.tensors[seen[-1]] = wanted
                break
            if wanted is not None and seen[-1] in self.grids.coded and isinstance(writer, Take):
                self._decode(writer, wanted)
                break
            if writer is None or not keeps_grid(writer):
                return None
            seen.append(writer.inputs[0])
        for name in seen:
            self.grids.tensors[name] = self.grids.tensors[seen[-1]]
        return self.grids.tensors[held.name]

    def _decode(self, layer: Take, grid: Grid) -> None:
        """Replace a table's bytes by real numbers, now that their grid is known."""
        assert layer.table is not None
        steps = layer.table.astype(np.float64) + (self.grids.coded.pop(layer.output) - grid.zero)
        real = replace(layer, table=(steps * grid.scale).astype(np.float32))
        self.layers[next(k for k, found in enumerate(self.layers) if found is layer)] = real
        self.grids.tensors[layer.output] = grid

    # -- the graph ----------------------------------------------------------------------------------------------------

    def add(self, layer: Layer) -> None:
        self.layers.append(layer)

    def keep_state(self, source: Argument, output: Argument) -> None:
        """Make a model input take an output's value of the previous inference, zeros at first.

        Raises Problem if their shapes differ.
        """
        before = self.layout.held[source.name]
        if before.name in self.states.remembered or output.name in self.outputs.dropped:
            return  # a layer already keeps it
        after = self.of(output)
        if after.dims != before.dims:
            raise Problem(f"the shape is {after.dims}, but the state {source.name!r} has shape {before.dims}")
        name = self.ordered(after, before.order).name
        self.inputs.remove(before.name)
        self.states.first[before.name] = 0.0
        self.states.kept.append(Keep(f"keep {source.name}", (name,), before.name, self.layout.shapes[before.name]))

    def _give_states_before(self) -> None:
        """Give each output that is a state a tensor of its own: the state's value before this inference."""
        for k, name in enumerate(self.outputs.names):
            if name in self.states.first:
                before = self.outputs.names[k] = self.layout.fresh(f"{name}:before")
                shape = self.layout.shapes[before] = self.layout.shapes[name]
                self.layers.append(Reshape(f"give {name}", (name,), before, shape))
                self.grids.follow(before, name)
                if name in self.grids.integers:
                    self.grids.integers[before] = self.grids.integers[name]

    def graph(self) -> Graph:
        """The finished graph. Raises ModelError."""
        self._give_states_before()
        layout, grids, outputs, ranks = self.layout, self.grids, self.outputs, self.ranks
        layers = self.states.without_remembered(self.layers, outputs.names)
        inputs = tuple(name for name in self.inputs if name not in self.states.remembered)
        seen = (*inputs, *outputs.names)
        return Graph(
            self.name,
            (*layers, *self.states.kept),
            layout.shapes,
            inputs,
            tuple(outputs.names),
            grids=grids.tensors,
            weight_scales=grids.weight_scales,
            weight_zeros=grids.weight_zeros,
            layouts={name: layout.inputs[name] for name in inputs},
            states=self.states.first,
            cuts=ranks.cuts,
            ranks_of_nan=ranks.of_nan,
            sums=ranks.sums,
            integers={n: k for n, k in grids.integers.items() if n in seen},
            whole=frozenset(grids.whole),
            packed=frozenset(grids.packed),
            labels=dict.fromkeys(outputs.labeled(layout.shapes, ranks.sums), outputs.labels),
            decides=outputs.decides,
            is_float=not ranks.sums,
        ).check()
