"""Squared distances from constant rows as layers that have an int8 form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import numpy as np
from emberlet.host.quantization.calibration import Range

from ..graph import Graph
from ..kernels.distance import DistanceFloat
from ..kernels.dot import DotFloat
from ..kernels.elementwise import BinaryFloat, MapFloat
from ..kernels.layer import Layer
from ..kernels.pool import ReduceFloat
from ..kernels.window import Window

ROOM = 1.3
"""The factor by which the ranges of tensors that only exponentials read are wider than in the samples: a row beyond
all of them would seem nearer to the constant rows than it is, and a kernel of support vectors falls steeply there.
Neighbors need the finer steps more. tests/micro/test_estimators.py has both."""

_MARK = ":distance:"


def with_room(ranges: Mapping[str, Range]) -> dict[str, Range]:
    """The ranges of tensors, wider for those of distances that are taken apart."""
    wide = {name: (ROOM * low, ROOM * high) for name, (low, high) in ranges.items() if _MARK in name}
    return {**ranges, **wide}


def taken_apart(graph: Graph) -> Graph:
    """|x - v|² as |x|² - 2 x·v + |v|². Other distances stay."""
    layers: list[Layer] = []
    shapes = dict(graph.shapes)
    for layer in graph.layers:
        if not isinstance(layer, DistanceFloat) or layer.chain != (("pow", (2.0,)),):
            layers.append(layer)
            continue
        (x,), (n, size), rows = layer.inputs, layer.rows.shape, layer.rows.astype(np.float64)
        own = ("products", "squares", "length", "sums")
        mark = _MARK if _is_in_exponent(graph, layer.output) else ":"
        products, squares, length, sums = (f"{layer.output}{mark}{k}" for k in own)
        shapes.update({products: (n,), squares: (size,), length: (1,), sums: (n,)})
        weights = (-2 * rows).astype(np.float32).reshape(n, 1, 1, size)
        bias = (rows**2).sum(1).astype(np.float32)
        layers += [
            DotFloat(f"{layer.name} products", (x,), products, (size,), Window((1, 1)), 1, weights, bias),
            MapFloat(f"{layer.name} squares", (x,), squares, (size,), (("pow", (2.0,)),)),
            ReduceFloat(f"{layer.name} length", (squares,), length, (1, size, 1), "sum"),
            BinaryFloat(f"{layer.name} sums", (products, length), sums, "add", (n,), (1,), None),
            MapFloat(layer.name, (sums,), layer.output, shapes[layer.output], (("clip", (0.0, inf)),)),
        ]
    return replace(graph, layers=tuple(layers), shapes=shapes)


def _is_in_exponent(graph: Graph, name: str) -> bool:
    """Whether exponentials alone read a tensor."""
    readers = graph.consumers()[name]
    return bool(readers) and all(isinstance(r, MapFloat) and any(step[0] == "exp" for step in r.chain) for r in readers)
