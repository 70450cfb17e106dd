"""Shape propagation: sizes that the model names are read once, from its inputs.

`(z.shape[0], y.shape[1], 32)` becomes `(batch, length, 32)`, and nodes that only computed sizes disappear.
"""

from __future__ import annotations

import keyword
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Graph, Node
from ..ir.types import ScalarType, ShapeType, TensorType
from ..ops.arithmetic import Equal, Where
from ..ops.expansion import Expand
from ..ops.internal import InputSize, InputSizeConfig, PartOfShape, Sizes, SizesConfig
from ..ops.joining import Split
from ..ops.slicing import Slice, SliceConfig
from ..records import replace
from .rewriting import Change, Rewrite, Walk, instead, interim, replaced_by, rewrite, shape_of, typed, value_of

SAID = "read {} shapes from the inputs' named sizes"
NUMBER = "removed {} expansions of numbers that a choice broadcasts"
CUT = "read the parts of {} shapes one by one"
CHOSEN = "removed {} choices between a size and -1"


def _sizes_of_inputs(graph: Graph) -> dict[str, Node[Any]]:
    """Symbol -> a node that reads it from the first input that has it, where its name is free."""
    taken = {a.name for a in graph.inputs} | {o.name for n in graph.walk() for o in n.outputs}
    sizes: dict[str, Node[Any]] = {}
    for given in graph.inputs:
        t = given.type
        if not isinstance(t, TensorType) or t.shape is None:
            continue
        for axis, d in enumerate(t.shape):
            if isinstance(d, str) and d.isidentifier() and not keyword.iskeyword(d) and d not in sizes:
                name = d if d not in taken else f"{d}_size"
                if name not in taken:
                    sizes[d] = typed(InputSize(f"size {d}", (given,), (interim(name),), InputSizeConfig(axis, d)))
    return sizes


def run(graph: Graph) -> Rewrite:
    sizes = _sizes_of_inputs(graph)
    had = {n.config.symbol: n for n in graph.nodes if isinstance(n, InputSize)}
    sizes.update(had)
    used: set[str] = set()

    def step(node: Node[Any], walk: Walk) -> Change | None:
        if isinstance(node, Split):
            return cut(node)
        if isinstance(node, InputSize | Sizes) or not walk.only_output(node) or node.outputs[0].value is not None:
            return None
        if isinstance(node, Where):
            return chosen(node, walk) or scalar(node, walk)
        t = node.outputs[0].type
        if isinstance(t, ScalarType) and isinstance(t.value, str) and t.value in sizes:
            used.add(t.value)
            return replaced_by(node, SAID, sizes[t.value].outputs[0])
        if isinstance(t, ShapeType):
            symbols = list(dict.fromkeys(d for d in t.dims if isinstance(d, str)))
            if symbols and all(d is not None for d in t.dims) and all(d in sizes for d in symbols):
                used.update(symbols)
                inputs: tuple[Argument, ...] = tuple(sizes[d].outputs[0] for d in symbols)
                return instead(node, SAID, Sizes(node.name, inputs, node.outputs, SizesConfig(t.dims)))
        return None

    out, done = rewrite(graph, step)
    new = tuple(n for d, n in sizes.items() if d in used and d not in had)
    if new:
        out = Graph(out.name, (*new, *out.nodes), out.inputs, out.outputs)
    return out, done


def cut(node: Split) -> Change | None:
    """The parts of a shape, which onnxruntime joins into one node, as slices, which are Python tuples."""
    shape = node.inputs[0].type
    parts = [shape_of(o) for o in node.outputs]
    if not isinstance(shape, ShapeType) or not all(p and isinstance(p[0], int) for p in parts):
        return None
    made: list[Node[Any]] = []
    at = 0
    for part, o in zip(parts, node.outputs, strict=True):
        size = part[0] if part else 0
        assert isinstance(size, int)
        config = SliceConfig((at,), (at + size,), (0,))
        made.append(Slice(f"{node.name}::{o.name}", node.inputs[:1], (o,), config))
        at += size
    return instead(node, CUT, *made)


def scalar(node: Where, walk: Walk) -> Change | None:
    """One number that is expanded to the shape of what is chosen from, which has it anyway."""
    for i in (1, 2):
        wide = walk.made_by(node.inputs[i], Expand)
        value = wide.value(0) if wide is not None else None
        others = [node.inputs[j] for j in range(3) if j != i]
        if value is None or value.size != 1 or not value.dtype.is_float:
            continue
        if any(shape_of(a) is not None and shape_of(a) == shape_of(node.outputs[0]) for a in others):
            if None in (shape_of(node.outputs[0]) or ()):
                continue
            inputs = list(node.inputs)
            inputs[i] = value_of(walk.fresh(f"{node.name}::number"), replace(value, shape=()))
            return instead(node, NUMBER, replace(node, inputs=tuple(inputs)))
    return None


def chosen(node: Where, walk: Walk) -> Change | None:
    """Where(shape == -1, 1, shape), which TorchScript's exporter writes before an expand: the sizes are never -1."""
    test = walk.made_by(node.inputs[0], Equal)
    shape = node.inputs[2]
    ones = node.value(1)
    if test is None or ones is None or not isinstance(shape.type, ShapeType):
        return None
    dims = shape.type.dims
    if None in dims or ones.size != len(dims) or set(ones.ints()) != {1}:
        return None
    for i in (0, 1):
        minus = test.value(1 - i)
        if test.inputs[i].name == shape.name and minus is not None and minus.size in (1, len(dims)):
            if set(minus.ints()) != {-1}:
                continue
            if -1 not in dims:
                return replaced_by(node, CHOSEN, shape)
            config = SizesConfig(tuple(1 if d == -1 else d for d in dims))
            return instead(node, CHOSEN, PartOfShape(node.name, (shape,), node.outputs, config))
    return None
