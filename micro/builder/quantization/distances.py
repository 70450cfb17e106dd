"""Squared distances from constant rows as layers that have an int8 form."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from ..graph import Graph
from ..kernels.distance import DistanceFloat
from ..kernels.dot import DotFloat
from ..kernels.elementwise import BinaryFloat, MapFloat
from ..kernels.layer import Layer
from ..kernels.pool import ReduceFloat
from ..kernels.window import Window


def taken_apart(graph: Graph) -> Graph:
    """|x - v|² as |x|² - 2 x·v + |v|². Other distances stay."""
    layers: list[Layer] = []
    shapes = dict(graph.shapes)
    for layer in graph.layers:
        if not isinstance(layer, DistanceFloat) or layer.chain != (("pow", (2.0,)),):
            layers.append(layer)
            continue
        (x,), (n, size), rows = layer.inputs, layer.rows.shape, layer.rows.astype(np.float64)
        products, squares, length, sums = (f"{layer.output}:{k}" for k in ("products", "squares", "length", "sums"))
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
