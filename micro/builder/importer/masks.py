"""Additive attention masks: constants with minus infinity, or a very negative number, for hidden elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from emberlet.codegen.ir.graph import Node

from ..kernels.layer import Array
from ..kernels.move import strides
from ..kernels.nest import Axis
from ..kernels.select import Select
from ..quantization.grids import MASK
from .layout import StoredTensor, dims_of
from .state import Importer

LOWEST = float(np.finfo(np.float32).min)


def hides(constant: Array) -> bool:
    """Whether an added constant hides elements before a softmax."""
    return constant.dtype.kind == "f" and bool(np.any(hidden(constant))) and not np.any(np.isnan(constant))


def hidden(constant: Array) -> Array:
    return np.asarray(constant <= -MASK)


def with_mask(t: Importer, node: Node[Any], held: StoredTensor, constant: Array) -> None:
    """The node's output: the smallest number where the constant hides an element, elsewhere the tensor. Both have one
    shape."""
    dims = dims_of(node.outputs[0])
    mask = hidden(constant).astype(np.float32).reshape((1,) * (len(dims) - constant.ndim) + constant.shape)
    mask = np.ascontiguousarray(np.transpose(mask, held.order))
    sizes = [dims[k] for k in held.order]
    steps = [step if n > 1 else 0 for n, step in zip(mask.shape, strides(mask.shape), strict=True)]
    own = strides(sizes)
    axes = tuple(Axis(n, (m, 0, a, a)) for n, m, a in zip(sizes, steps, own, strict=True))
    out = t.define(node.outputs[0], held.order)
    least = np.full(1, LOWEST, np.float32)
    t.add(Select(node.name, (held.name,), out.name, out.shape, axes, (mask, least, None)))
