"""Pooling and reductions."""

from __future__ import annotations

from math import prod
from typing import Any

from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops import pooling as p
from emberlet.codegen.ops import reduction as r

from ..kernels.arg import Arg
from ..kernels.norms import OPERATIONS as NORMS
from ..kernels.norms import NormFloat
from ..kernels.pool import AveragePoolFloat, MaxPool, ReduceFloat, window_counts
from ..kernels.window import Window
from .layout import StoredTensor, channels_last, dims_of
from .products import window_of
from .state import Importer
from .table import translates

LEAST = -3.4e38
POSITIONS = 1 << 20  # of a window whose elements are counted: a few bytes of a file may ask for any number


def _window(node: p.Pool, held: StoredTensor, ceil: bool = True) -> Window:
    """The window and its padding. ceil: include the padding that ceil_mode adds."""
    window = node.window()
    padding = list(window.padding(held.dims[2:]))
    if node.config.ceil_mode and ceil:
        # The last position may extend beyond the edge, which needs more padding.
        sizes = window.sizes(held.dims[2:], True)
        for i, out in enumerate(sizes):
            reach = (window.kernel[i] - 1) * window.dilation[i] + 1
            assert isinstance(out, int)
            needed = (out - 1) * window.stride[i] + reach - held.dims[2 + i] - padding[i][0]
            padding[i] = (padding[i][0], max(padding[i][1], needed))
    return window_of(window.kernel, window.stride, window.dilation, tuple(padding))


@translates(p.MaxPool)
def max_pool(t: Importer, node: p.MaxPool) -> None:
    if len(node.outputs) > 1 and node.outputs[1].present:
        raise Problem("the indices of the maxima are not supported")
    held = t.image(node.inputs[0])
    window = _window(node, held)
    out = t.define(node.outputs[0], channels_last(len(held.dims)))
    t.add(MaxPool(node.name, (held.name,), out.name, t.layout.shapes[held.name], window, LEAST))


@translates(p.AveragePool)
def average_pool(t: Importer, node: p.AveragePool) -> None:
    held = t.image(node.inputs[0])
    window = _window(node, held)
    out = t.define(node.outputs[0], channels_last(len(held.dims)))
    h, w = (1, *t.layout.shapes[held.name][:-1])[-2:]
    if prod(window.output(h, w)) > POSITIONS:
        raise Problem(f"a window has more than {POSITIONS} positions in an image of {h} x {w}")
    # Padding that ceil_mode adds never counts.
    counted = _window(node, held, ceil=False).pads if node.config.count_include_pad else (0, 0, 0, 0)
    counts = window_counts(window, h, w, counted)
    t.add(AveragePoolFloat(node.name, (held.name,), out.name, t.layout.shapes[held.name], window, counts))


@translates(p.GlobalAveragePool, p.GlobalMaxPool)
def global_pool(t: Importer, node: p.GlobalPool) -> None:
    held = t.image(node.inputs[0])
    axes = tuple(range(2, len(held.dims)))
    _reduce(t, node, held, axes, "max" if isinstance(node, p.GlobalMaxPool) else "mean")


KINDS: dict[type[Node[Any]], str] = {
    r.ReduceMean: "mean",
    r.ReduceSum: "sum",
    r.ReduceMax: "max",
    r.ReduceMin: "min",
    r.ReduceL1: "l1",
    r.ReduceL2: "l2",
    r.ReduceSumSquare: "square",
    r.ReduceLogSum: "logsum",
    r.ReduceLogSumExp: "logsumexp",
    r.ReduceProd: "prod",
}


@translates(*KINDS)
def reduction(t: Importer, node: r.Reduction) -> None:
    held, axes = t.of(node.inputs[0]), node.axes()
    if axes is None:
        raise Problem("axes that the model computes are not supported; they must be constant")
    if KINDS[type(node)] == "mean" and not node.dtype(0).is_float:
        raise Problem("integers are not supported; cast them to float32")
    _reduce(t, node, held, axes, KINDS[type(node)])


@translates(r.ArgMax, r.ArgMin)
def arg(t: Importer, node: r.ArgExtreme) -> None:
    held, c = t.of(node.inputs[0]), node.config
    axis = c.axis % len(held.dims)
    at = held.order.index(axis)
    sizes = [held.dims[k] for k in held.order]
    shape = (prod(sizes[:at]), sizes[at], prod(sizes[at + 1 :]))
    out = t.define(node.outputs[0], _remaining(held, (axis,), len(dims_of(node.outputs[0]))))
    how = ("max" if isinstance(node, r.ArgMax) else "min"), c.select_last_index
    t.add(Arg(node.name, (held.name,), out.name, shape, *how))


def _reduce(t: Importer, node: Node[Any], held: StoredTensor, axes: tuple[int, ...], kind: str) -> None:
    """The tensor as (outer, length, inner), with the reduced axes adjacent; if necessary, a move brings them
    together."""
    large = [k for k in held.order if held.dims[k] != 1]
    places = [i for i, k in enumerate(large) if k in axes]
    if places and places[-1] - places[0] != len(places) - 1:
        kept = [k for k in held.order if k not in axes]
        held = t.ordered(held, (*kept, *(k for k in held.order if k in axes)))
        large = [k for k in held.order if held.dims[k] != 1]
        places = [i for i, k in enumerate(large) if k in axes]
    first, last = (places[0], places[-1] + 1) if places else (len(large), len(large))
    sizes = [held.dims[k] for k in large]
    shape = (prod(sizes[:first]), prod(sizes[first:last]), prod(sizes[last:]))
    out = t.define(node.outputs[0], _remaining(held, axes, len(dims_of(node.outputs[0]))))
    if kind in NORMS:
        t.add(NormFloat(node.name, (held.name,), out.name, shape, kind))
        return
    operation = kind if kind in ("max", "min") else "sum"
    factor = 1 / shape[1] if kind == "mean" else 1.0
    t.add(ReduceFloat(node.name, (held.name,), out.name, shape, operation, factor))


def _remaining(held: StoredTensor, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The order of the remaining axes, after the reduced ones became 1 or were removed."""
    if rank == len(held.dims):
        return held.order
    kept = [k for k in range(len(held.dims)) if k not in axes]
    return tuple(kept.index(k) for k in held.order if k not in axes)
