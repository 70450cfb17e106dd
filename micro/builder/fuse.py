"""Merges layers of a float32 graph before it is quantized or planned. Results are equal up to rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, prod

import numpy as np

from .functions import Chain
from .graph import Graph, Grid, Reshape, renamed
from .kernels.depthwise import DepthwiseFloat
from .kernels.dot import DotFloat
from .kernels.elementwise import BinaryFloat, MapFloat
from .kernels.layer import Array, Layer, as_image
from .kernels.move import Copy, Move
from .kernels.nest import Axis, merged
from .kernels.state import Keep
from .quantization.grids import ends

Clamped = DotFloat | DepthwiseFloat | BinaryFloat


def fuse(graph: Graph) -> Graph:
    """Apply all fusions until none changes anything."""
    passes: tuple[Callable[[Graph], Graph], ...] = (
        moves_to_reshapes,
        drop_reshapes,
        absorb_quantizers,
        constants_to_maps,
        merge_maps,
        merge_gates,
        fold_scales,
        fuse_clamps,
        moves_into_states,
        remove_dead,
    )
    while True:
        before = graph.layers
        for step in passes:
            graph = step(graph)
        if len(graph.layers) == len(before) and all(a is b for a, b in zip(graph.layers, before, strict=True)):
            return separate_states(graph).check()


def separate_states(graph: Graph) -> Graph:
    """Copy states that are outputs or are written to other states before any state is written, so that the order of
    writing does not matter."""
    root = _roots(graph)
    written = {layer.output for layer in graph.layers if layer.output in graph.states}
    layers: list[Layer] = []
    keeps: list[Layer] = []
    shapes, grids = dict(graph.shapes), dict(graph.grids)

    def copy_of(name: str, what: str) -> str:
        copied = f"{name}.{what}"
        shapes[copied] = shapes[name]
        if name in grids:
            grids[copied] = grids[name]
        layers.append(Copy(f"copy {copied}", (name,), copied, shapes[name]))
        return copied

    for layer in graph.layers:
        if isinstance(layer, Reshape) and layer.output in graph.outputs and root(layer.output) in written:
            layer = renamed(layer, {layer.inputs[0]: copy_of(layer.inputs[0], f"before {layer.output}")})
        if not isinstance(layer, Keep):
            layers.append(layer)
    for layer in graph.layers:
        if not isinstance(layer, Keep):
            continue
        (name,) = layer.inputs
        if root(name) in graph.states and root(name) != layer.output:
            layer = renamed(layer, {name: copy_of(name, f"kept {len(keeps)}")})
        keeps.append(layer)
    return replace(graph, layers=(*layers, *keeps), shapes=shapes, grids=grids) if written else graph


def in_float32(graph: Graph) -> Graph:
    """A quantized model as a float32 graph: grids are dropped, and a QuantizeLinear only saturates."""

    def saturating(layer: Layer) -> Layer:
        grid = graph.grids.get(layer.output)
        if not isinstance(layer, MapFloat) or layer.chain or grid is None:
            return layer
        return replace(layer, chain=(("clip", ends(grid)),))

    layers = tuple(saturating(layer) for layer in graph.layers)
    graph = _between_integers(replace(graph, layers=layers))
    return replace(graph, grids={}, weight_scales={}, weight_zeros={})


def _between_integers(graph: Graph) -> Graph:
    """In a float32 build, pass inputs and outputs that are bytes in the model as the model's integers."""
    first: list[Layer] = []
    last: list[Layer] = []
    shapes, names = dict(graph.shapes), dict[str, str]()
    for name, byte in graph.integers.items():
        grid = graph.grids.get(name)
        if grid is None:
            continue
        names[name] = real = f"{name}:real"
        shape = shapes[real] = shapes[name]
        zero = grid.zero - byte
        if name in graph.inputs:
            first.append(
                MapFloat(f"dequantize {name}", (name,), real, shape, (("affine", (grid.scale, -grid.scale * zero)),))
            )
        if name in graph.outputs:
            chain: Chain = (("affine", (1 / grid.scale, 0.0)), ("round", ()), ("affine", (1.0, float(zero))))
            ends_ = (float(-byte), float(255 - byte))
            last.append(MapFloat(f"quantize {name}", (real,), name, shape, (*chain, ("clip", ends_))))
    inside = [renamed(layer, names, names.get(layer.output)) for layer in graph.layers]
    return replace(graph, layers=(*first, *inside, *last), shapes=shapes)


def moves_into_states(graph: Graph) -> Graph:
    """Write a state that is a slice of a tensor directly when slicing, if nothing reads its old value later."""
    root = _roots(graph)
    for k, layer in enumerate(graph.layers):
        keep = _sole_reader(graph, layer.output)
        if not isinstance(layer, Move) or not isinstance(keep, Keep) or layer.fill is not None:
            continue
        before, after = layer.inputs, [n for later in graph.layers[k + 1 :] for n in later.inputs]
        if any(root(name) in graph.states for name in before) or any(root(name) == keep.output for name in after):
            continue
        if any(graph.grids.get(name) != graph.grids.get(keep.output) for name in (*before, layer.output)):
            continue
        whole = prod(layer.shape) == sum(prod(axis.turns for axis in part.axes) for part in layer.parts)
        if whole and keep.output not in graph.outputs:
            return moves_into_states(_replaced(graph, layer, keep, renamed(layer, output=keep.output)))
    return graph


def remove_dead(graph: Graph) -> Graph:
    """Remove layers whose output nothing reads."""
    wanted, kept = {*graph.outputs, *graph.states}, []
    for layer in reversed(graph.layers):
        if layer.output in wanted:
            wanted.update(layer.inputs)
            kept.append(layer)
    return graph.with_layers(reversed(kept)) if len(kept) < len(graph.layers) else graph


def drop_reshapes(graph: Graph) -> Graph:
    """Remove reshapes that change nothing or only feed another reshape."""
    for layer in graph.layers:
        if not isinstance(layer, Reshape) or layer.output in graph.outputs:
            continue
        source = layer.inputs[0]
        readers = graph.consumers()[layer.output]
        if graph.shapes[source] == layer.shape or (readers and all(isinstance(r, Reshape) for r in readers)):
            rest = [renamed(other, {layer.output: source}) for other in graph.layers if other is not layer]
            return drop_reshapes(graph.with_layers(rest))
    return graph


def absorb_quantizers(graph: Graph) -> Graph:
    """Merge a QuantizeLinear into the layer before it if nothing else reads that layer's output.

    A model input or a state takes the grid of the first QuantizeLinear after it.
    """
    written: dict[tuple[str, Grid], str] = {}
    writers = {layer.output: layer for layer in graph.layers}
    for layer in graph.layers:
        grid = graph.grids.get(layer.output)
        if not isinstance(layer, MapFloat) or layer.chain or grid is None:
            continue
        source = layer.inputs[0]
        if (source in graph.inputs or source in graph.states) and source not in graph.grids:
            return absorb_quantizers(replace(graph, grids={**graph.grids, source: grid}))
        same = source if graph.grids.get(source) == grid else written.setdefault((source, grid), layer.output)
        if same != layer.output and layer.output not in graph.outputs:
            rest = [renamed(other, {layer.output: same}) for other in graph.layers if other is not layer]
            return absorb_quantizers(graph.with_layers(rest))
        before = writers.get(source)
        if before is not None and source not in graph.grids and _sole_reader(graph, source) is layer:
            return absorb_quantizers(_replaced(graph, before, layer, renamed(before, output=layer.output)))
    return graph


def moves_to_reshapes(graph: Graph) -> Graph:
    """Replace moves that keep every element in place by reshapes."""

    def changed(layer: Layer) -> Layer:
        if not isinstance(layer, Move) or len(layer.parts) != 1 or layer.fill is not None:
            return layer
        (part,), size = layer.parts, prod(layer.shape)
        whole = not merged(part.axes) or merged(part.axes) == [Axis(size, (1, 1))]
        if part.table is not None or not whole or prod(graph.shapes[layer.inputs[0]]) != size:
            return layer
        return Reshape(layer.name, layer.inputs, layer.output, layer.shape)

    return _each(graph, changed)


def _each(graph: Graph, changed: Callable[[Layer], Layer]) -> Graph:
    """The graph with every layer changed; the same one if none is."""
    layers = [changed(layer) for layer in graph.layers]
    return graph if all(a is b for a, b in zip(layers, graph.layers, strict=True)) else graph.with_layers(layers)


def _roots(graph: Graph) -> Callable[[str], str]:
    """Gives the tensor that a name is a reshape of."""
    source = {layer.output: layer.inputs[0] for layer in graph.layers if isinstance(layer, Reshape)}

    def root(name: str) -> str:
        while name in source:
            name = source[name]
        return name

    return root


def _sole_reader(graph: Graph, name: str) -> Layer | None:
    """The only layer that reads a tensor; None if there are several or the tensor is an output."""
    readers = graph.consumers().get(name, [])
    return readers[0] if len(readers) == 1 and name not in graph.outputs else None


def _replaced(graph: Graph, first: Layer, second: Layer, merged: Layer) -> Graph:
    """The graph with two adjacent layers merged, at the position of the first."""
    return graph.with_layers([merged if layer is first else layer for layer in graph.layers if layer is not second])


def constants_to_maps(graph: Graph) -> Graph:
    """Replace sums and products with a single number by functions of one number, and division by constants by
    products."""

    def changed(layer: Layer) -> Layer:
        if not isinstance(layer, BinaryFloat) or layer.constant is None or layer.grid is not None:
            return layer
        if layer.constant.size != 1:
            nonzero = layer.operation == "div" and bool(np.all(layer.constant != 0))
            return replace(layer, operation="mul", constant=1 / layer.constant) if nonzero else layer
        c = float(layer.constant.reshape(-1)[0])
        if layer.operation == "div" and c == 0:
            return layer
        by = {"add": (1.0, c), "sub": (1.0, -c), "mul": (c, 0.0)}
        factor, shift = by[layer.operation] if layer.operation in by else (1 / c, 0.0)
        chain: Chain = (("affine", (factor, shift)),)
        if layer.low > -inf or layer.high < inf:
            chain += (("clip", (layer.low, layer.high)),)
        return MapFloat(layer.name, layer.inputs, layer.output, layer.shape, chain)

    return _each(graph, changed)


def merge_maps(graph: Graph) -> Graph:
    """Merge consecutive functions."""
    for layer in graph.layers:
        after = _sole_reader(graph, layer.output)
        if isinstance(layer, MapFloat) and isinstance(after, MapFloat) and layer.output not in graph.grids:
            both = replace(layer, output=after.output, chain=layer.chain + after.chain)
            return merge_maps(_replaced(graph, layer, after, both))
    return graph


def merge_gates(graph: Graph) -> Graph:
    """Merge a tensor times a function of itself into one function: x * sigmoid(x)."""
    writers = {layer.output: layer for layer in graph.layers}
    for layer in graph.layers:
        if not isinstance(layer, BinaryFloat) or layer.operation != "mul" or len(layer.inputs) != 2:
            continue
        if layer.shape != layer.other or layer.low > -inf or layer.high < inf:
            continue
        for source, gate in (layer.inputs, layer.inputs[::-1]):
            writer = writers.get(gate)
            if not isinstance(writer, MapFloat) or writer.inputs != (source,) or gate in graph.grids:
                continue
            if _sole_reader(graph, gate) is not layer or ("start", ()) in writer.chain:
                continue
            chain: Chain = (("start", ()), *writer.chain, ("times_start", ()))
            merged = MapFloat(layer.name, (source,), layer.output, layer.shape, chain)
            rest = [merged if other is layer else other for other in graph.layers if other is not writer]
            return merge_gates(graph.with_layers(rest))
    return graph


def fuse_clamps(graph: Graph) -> Graph:
    """Merge ReLU and similar functions into the final clamp of the layer before."""
    for layer in graph.layers:
        after = _sole_reader(graph, layer.output)
        if not isinstance(layer, Clamped) or not isinstance(after, MapFloat) or layer.output in graph.grids:
            continue
        if not after.chain:
            continue
        (name, parameters), rest = after.chain[0], after.chain[1:]
        if name != "clip":
            continue
        low, high = parameters
        clamped = replace(layer, low=min(max(layer.low, low), high), high=max(min(layer.high, high), low))
        if rest:
            layers = [clamped if x is layer else replace(after, chain=rest) if x is after else x for x in graph.layers]
            return fuse_clamps(graph.with_layers(layers))
        return fuse_clamps(_replaced(graph, layer, after, replace(clamped, output=after.output)))
    return graph


def fold_scales(graph: Graph) -> Graph:
    """Fold a factor and a shift per channel (a batch norm's) into the weights of the layer before."""
    for layer in graph.layers:
        after = _sole_reader(graph, layer.output)
        if not isinstance(layer, DotFloat | DepthwiseFloat):
            continue
        if layer.low > -inf or layer.high < inf or layer.output in graph.grids or after is None:
            continue
        parameters = _affine(after, len(layer.weights))
        if parameters is None:
            continue
        factor, shift, merged_output = parameters
        if layer.name in graph.weight_scales and np.any(factor != 1):
            continue  # quantized weights stay as they are
        scaled = replace(
            layer,
            weights=layer.weights * factor.reshape(-1, *[1] * (layer.weights.ndim - 1)),
            bias=layer.bias * factor + shift,
        )
        if isinstance(merged_output, MapFloat):
            layers = [scaled if x is layer else merged_output if x is after else x for x in graph.layers]
            return fold_scales(graph.with_layers(layers))
        return fold_scales(_replaced(graph, layer, after, replace(scaled, output=after.output)))
    return graph


def _affine(layer: Layer, channels: int) -> tuple[Array, Array, MapFloat | None] | None:
    """The factor and shift per channel that `layer` applies, and the rest of the layer; None if there are none."""
    ones, zeros = np.ones(channels), np.zeros(channels)
    if isinstance(layer, MapFloat) and layer.chain[:1] and layer.chain[0][0] == "affine":
        a, b = layer.chain[0][1]
        rest = replace(layer, chain=layer.chain[1:]) if len(layer.chain) > 1 else None
        return ones * a, ones * b, rest
    if isinstance(layer, BinaryFloat) and layer.constant is not None and layer.low == -inf and layer.high == inf:
        if as_image(layer.other) != (1, 1, channels) or as_image(layer.shape)[2] != channels:
            return None
        c = layer.constant.astype(np.float64).reshape(-1)
        by = {"add": (ones, c), "sub": (ones, -c), "mul": (c, zeros)}
        return (*by[layer.operation], None) if layer.operation in by else None  # a quotient here is one by zero
    return None
