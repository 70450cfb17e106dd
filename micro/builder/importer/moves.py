"""Operators that only move elements or change the shape."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from emberlet import dtypes
from emberlet.codegen.evaluation import evaluate
from emberlet.codegen.ir.argument import Argument, Constant
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ir.value import Inline, Value
from emberlet.codegen.ops import movement as m
from emberlet.codegen.ops.blocks import DepthToSpace
from emberlet.codegen.ops.expansion import Pad
from emberlet.codegen.ops.indexing import Gather
from emberlet.codegen.ops.joining import Concat, Split
from emberlet.codegen.ops.resizing import Resize
from emberlet.codegen.ops.slicing import Slice

from ..kernels.interpolate import Interpolate
from ..kernels.layer import Array
from ..kernels.move import Move, Part, strides
from ..kernels.nest import Axis
from .lanes import take
from .layout import Order, StoredTensor, channels_last, dims_of
from .picks import pick
from .state import Importer
from .table import translates
from .values import numpy_of


@translates(m.Reshape, m.Flatten, m.Squeeze, m.Unsqueeze)
def reshape(t: Importer, node: Node[Any]) -> None:
    held, out = t.of(node.inputs[0]), node.outputs[0]
    dims = dims_of(out)
    plain = tuple(range(len(held.dims)))
    if held.has_order(plain):
        t.alias(out, held)
        return
    kept = _same_axes(held, dims)
    if kept is not None:
        t.alias(out, held, kept)
    elif len(dims) == 2 and dims[0] == 1:
        # Flattened for a dense layer: the elements stay in place, and the layer's weights are reordered.
        order = np.transpose(np.arange(prod(held.dims)).reshape(held.dims), held.order).reshape(-1)
        t.alias(out, held)
        flat = t.layout.held[out.name]
        t.layout.flattened[flat.name] = order
        t.layout.unflattened[flat.name] = held
    else:
        t.alias(out, t.ordered(held, plain))


def _same_axes(held: StoredTensor, dims: tuple[int, ...]) -> tuple[int, ...] | None:
    """The order of a reshaped tensor if the reshape only adds and removes axes of size 1; else None."""
    old = [k for k, n in enumerate(held.dims) if n != 1]
    new = [k for k, n in enumerate(dims) if n != 1]
    if [held.dims[k] for k in old] != [dims[k] for k in new]:
        return None
    place = dict(zip(old, new, strict=True))
    order = [place[k] for k in held.order if k in place]
    ones = [k for k in range(len(dims)) if k not in new]
    return (*ones, *order)


@translates(m.Transpose)
def transpose(t: Importer, node: m.Transpose) -> None:
    """No element moves; only the recorded order of the axes changes."""
    held, perm = t.of(node.inputs[0]), node.perm()
    dims = dims_of(node.outputs[0])
    order = tuple(perm.index(k) for k in held.order)
    t.layout.held[node.outputs[0].name] = t.shaped(StoredTensor(held.name, dims, order))


MOST_JOINED = 64
"""Tensors that one move joins: a call has at most 255 arguments."""


@translates(Concat)
def concat(t: Importer, node: Concat) -> None:
    parts = [t.computed(node, k) for k in range(len(node.inputs))]
    rank = len(parts[0].dims)
    axis = node.config.axis % rank
    order = next((p.order for p, a in zip(parts, node.inputs, strict=True) if a.value is None), parts[0].order)
    while len(parts) > MOST_JOINED:
        parts = [
            _joined(t, node, f"part {k}", parts[k : k + MOST_JOINED], axis, order)
            for k in range(0, len(parts), MOST_JOINED)
        ]
    t.layout.held[node.outputs[0].name] = _joined(t, node, "", parts, axis, order)


def _joined(t: Importer, node: Concat, what: str, parts: list[StoredTensor], axis: int, order: Order) -> StoredTensor:
    """what: "" for the node's output."""
    rank = len(parts[0].dims)
    if not all(p.has_order(order) for p in parts):
        order = channels_last(rank)
    parts = [t.ordered(p, order) for p in parts]
    if what:
        size = sum(p.dims[axis] for p in parts)
        dims = tuple(size if k == axis else n for k, n in enumerate(parts[0].dims))
        out = StoredTensor(t.layout.fresh(f"{node.outputs[0].name}:{what}"), dims, order)
        t.layout.shapes[out.name] = out.shape
    else:
        out = t.define(node.outputs[0], order)
    sizes = [out.dims[k] for k in order]
    to, at, moved = strides(sizes), 0, []
    for p in parts:
        own = [p.dims[k] for k in order]
        axes = tuple(Axis(n, (a, b)) for n, a, b in zip(own, strides(own), to, strict=True))
        moved.append(Part(0, at * to[order.index(axis)], axes))
        at += p.dims[axis]
    name = f"{node.name} {what}" if what else node.name
    t.add(Move(name, tuple(p.name for p in parts), out.name, out.shape, tuple(moved)))
    return out


def _cut(t: Importer, name: str, held: StoredTensor, output: Argument, ranges: dict[int, range]) -> None:
    """The elements whose index along each axis of `ranges` is in that range."""
    sizes = [held.dims[k] for k in held.order]
    steps = dict(zip(held.order, strides(sizes), strict=True))
    out = t.define(output, held.order)
    to = strides([out.dims[k] for k in held.order])
    start, axes = 0, []
    for k, step_out in zip(held.order, to, strict=True):
        r = ranges.get(k, range(held.dims[k]))
        start += r.start * steps[k]
        axes.append(Axis(len(r), (steps[k] * r.step, step_out)))
    t.add(Move(name, (held.name,), out.name, out.shape, (Part(start, 0, tuple(axes)),)))


@translates(Slice)
def cut(t: Importer, node: Slice) -> None:
    held = t.of(node.inputs[0])
    starts, ends, axes, steps = node.bounds()
    ranges: dict[int, range] = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
            raise Problem("bounds that the model computes are not supported; they must be constant")
        k = axis % len(held.dims)
        ranges[k] = range(*slice(start, end, step).indices(held.dims[k]))
    if all(r == range(held.dims[k]) for k, r in ranges.items()):
        t.layout.held[node.outputs[0].name] = held
        return
    _cut(t, node.name, held, node.outputs[0], ranges)


@translates(Split)
def split(t: Importer, node: Split) -> None:
    held, axis, at = t.of(node.inputs[0]), node.config.axis % node.rank(0), 0
    for k, output in enumerate(node.outputs):
        size = dims_of(output)[axis]
        if output.present:
            _cut(t, f"{node.name} {k}", held, output, {axis: range(at, at + size)})
        at += size


@translates(Gather)
def gather(t: Importer, node: Gather) -> None:
    """One index, or several with a constant stride, as a slice."""
    picked = node.picked()
    if picked is None:
        take(t, node)
        return
    held = t.of(node.inputs[0])
    axis = node.config.axis % len(held.dims)
    places = [p % held.dims[axis] for p in picked]
    step = places[1] - places[0] if len(places) > 1 else 1
    if not step or any(b - a != step for a, b in zip(places, places[1:], strict=False)):
        pick(t, node)
        return
    ranges = {axis: range(places[0], places[-1] + (1 if step > 0 else -1), step)}
    dims = tuple(len(places) if k == axis else n for k, n in enumerate(held.dims))
    middle = Argument(f"{node.outputs[0].name}:picked", TensorType(node.dtype(0), dims))
    _cut(t, node.name, held, middle, ranges)
    out, target = t.layout.held[middle.name], dims_of(node.outputs[0])
    kept = _same_axes(out, target)
    if kept is None:
        out = t.ordered(out, tuple(range(len(dims))))
    t.alias(node.outputs[0], out, kept)


@translates(Pad)
def pad(t: Importer, node: Pad) -> None:
    held, axes = t.of(node.inputs[0]), node.axes()
    pads = node.config.pads if node.config.pads is not None else node.ints(1)
    if axes is None or pads is None:
        raise Problem("padding that the model computes is not supported; it must be constant")
    if node.config.mode != "constant":
        pick(t, node)
        return
    value = float(t.array(node, 2, "the value", limits=True).reshape(-1)[0]) if node.has(2) else node.config.value
    if min(pads, default=0) < 0:
        raise Problem("negative padding is not supported")
    before = {axis % len(held.dims): pads[i] for i, axis in enumerate(axes)}
    out = t.define(node.outputs[0], held.order)
    own = [held.dims[k] for k in held.order]
    to = strides([out.dims[k] for k in held.order])
    moved = tuple(Axis(n, (a, b)) for n, a, b in zip(own, strides(own), to, strict=True))
    start = sum(before.get(k, 0) * step for k, step in zip(held.order, to, strict=True))
    t.add(Move(node.name, (held.name,), out.name, out.shape, (Part(0, start, moved),), value))


@translates(Resize)
def resize(t: Importer, node: Resize) -> None:
    """Resize by a whole factor by repeating elements, or to any size by linear interpolation."""
    held, dims, c = t.of(node.inputs[0]), dims_of(node.outputs[0]), node.config
    times = [b // a for a, b in zip(held.dims, dims, strict=True)]
    exact = all(a * n == b for a, n, b in zip(held.dims, times, dims, strict=True))
    steady = c.coordinates in ("asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
    rounding = c.nearest_mode == "floor" if c.coordinates == "asymmetric" else c.nearest_mode.startswith("round")
    if c.mode == "linear":
        interpolate(t, node, held, dims)
        return
    if c.mode != "nearest":
        raise Problem(f"resizing with mode {c.mode} is not supported; export the model with mode 'linear' or 'nearest'")
    if not exact or not steady or not rounding:
        pick(t, node)
        return
    out = t.define(node.outputs[0], held.order)
    own, to = [held.dims[k] for k in held.order], strides([dims[k] for k in held.order])
    axes: list[Axis] = []
    for k, step, step_out in zip(held.order, strides(own), to, strict=True):
        axes += [Axis(held.dims[k], (step, step_out * times[k])), Axis(times[k], (0, step_out))]
    t.add(Move(node.name, (held.name,), out.name, out.shape, (Part(0, 0, tuple(axes)),)))


def interpolate(t: Importer, node: Resize, held: StoredTensor, dims: tuple[int, ...]) -> None:
    """Along one or two axes, which are moved to the front. The operator itself, applied to the numbers 0, 1, 2, … along
    each axis, shows the source of each element."""
    axes = [k for k, (a, b) in enumerate(zip(held.dims, dims, strict=True)) if a != b]
    if not axes:
        axes = [k for k, n in enumerate(dims) if n > 1][:1]
    if len(axes) > 2:
        raise Problem(f"resizing {len(axes)} axes is not supported; resize one or two, and the others in a second step")
    if node.config.antialias:
        raise Problem("antialias is not supported; export the model with antialias=0, or average first")
    if node.config.coordinates == "tf_crop_and_resize":
        raise Problem("tf_crop_and_resize is not supported; cut the region out with Slice first")
    spatial = [k for k in held.order if k in axes]
    others = [k for k in held.order if k not in axes]
    fronts, behind = [k for k in others if held.dims[k] == 1], [k for k in others if held.dims[k] != 1]
    held = t.ordered(held, (*fronts, *spatial, *behind))
    sizes = [held.dims[k] for k in spatial]
    shape = (*([1] * (2 - len(sizes))), *sizes, prod(held.dims[k] for k in behind))
    places: list[Array] = [_places(node, held.dims, dims, k) for k in spatial]
    rows, columns = places if len(places) == 2 else (np.zeros(1), *places)
    held = t.shaped(held, shape)
    out = t.define(node.outputs[0], held.order)
    t.add(Interpolate(node.name, (held.name,), out.name, shape, rows, columns))


def _places(node: Resize, dims: tuple[int, ...], to: tuple[int, ...], axis: int) -> Array:
    """The position along an axis of the input that each element of the output comes from."""
    x = np.arange(dims[axis], dtype=np.float32).reshape([-1 if k == axis else 1 for k in range(len(dims))])
    value = Value(dtypes.float32, dims, Inline(np.broadcast_to(x, dims).tobytes()))
    first = replace(node.inputs[0], type=TensorType(dtypes.float32, dims), source=Constant(value))
    (found,) = evaluate(replace(node, inputs=(first, *node.inputs[1:])).typed())
    if found is None:
        raise Problem("sizes that the model computes are not supported; they must be constant")
    return numpy_of(found).reshape(to)[tuple(slice(None) if k == axis else 0 for k in range(len(to)))]


@translates(DepthToSpace)
def depth_to_space(t: Importer, node: DepthToSpace) -> None:
    held = t.image(node.inputs[0])
    n, b = len(held.dims), node.config.block_size
    if n != 4:
        raise Problem("the input must be an image")
    _, c, h, w = held.dims
    depth = c // (b * b)
    out = t.define(node.outputs[0], channels_last(4))
    by = (b * depth, depth, 1) if node.config.mode == "DCR" else (b, 1, b * b)
    wide = w * b * depth
    axes = (
        Axis(h, (w * c, b * wide)),
        Axis(b, (by[0], wide)),
        Axis(w, (c, b * depth)),
        Axis(b, (by[1], depth)),
        Axis(depth, (by[2], 1)),
    )
    t.add(Move(node.name, (held.name,), out.name, out.shape, (Part(0, 0, axes),)))
