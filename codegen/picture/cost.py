"""The cost of a node in floating point operations; a multiply-add counts as two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.sizes import terms
from ..ir.types import Dim, TensorType
from ..ops.attention import Attention
from ..ops.convolution import Conv, ConvTranspose
from ..ops.internal import Linear
from ..ops.linear_algebra import Gemm, MatMul

FREE = {
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity", "Concat", "Split", "Slice", "Expand",
    "Gather", "Cast", "Shape", "Range", "Pad", "Tile",
}  # fmt: skip


def number(d: Dim, sizes: Mapping[str, int]) -> int:
    """A dimension as a number; names not in `sizes` count as 1."""
    found = terms(d)
    if found is None:
        return sizes.get(str(d), 1)
    total = 0
    for names, n in found.items():
        for name in names:
            if name.startswith("min("):
                most, _, inner = name[4:-1].partition(", ")
                n *= min(int(most), number(inner, sizes))
            else:
                n *= sizes.get(name, 1)
        total += n
    return total


def elements(a: Argument, sizes: Mapping[str, int]) -> int:
    """The number of elements of a value."""
    if a.value is not None:
        return a.value.size
    if not isinstance(a.type, TensorType) or a.type.shape is None:
        return 0
    out = 1
    for d in a.type.shape:
        out *= number(d, sizes)
    return out


def flops(node: Node[Any], sizes: Mapping[str, int]) -> int:
    """The operations of one node: if it is neither a product nor free, one per element of its result."""
    made = elements(node.outputs[0], sizes) if node.outputs else 0
    match node:
        case Conv() | ConvTranspose():
            weight = node.inputs[1]
            across = elements(weight, sizes) // max(1, _dim(weight, 0, sizes))
            return 2 * across * (elements(node.inputs[0], sizes) if isinstance(node, ConvTranspose) else made)
        case MatMul() | Linear():
            return 2 * made * _dim(node.inputs[0], -1, sizes)
        case Gemm():
            return 2 * made * _dim(node.inputs[0], 0 if node.config.trans_a else -1, sizes)
        case Attention():
            keys = _dim(node.inputs[1], 2, sizes) if node.config.heads is None else _dim(node.inputs[1], 1, sizes)
            return 4 * elements(node.inputs[0], sizes) * keys
        case _:
            return 0 if node.op() in FREE else made


def _dim(a: Argument, axis: int, sizes: Mapping[str, int]) -> int:
    if a.value is not None:
        return a.value.shape[axis]
    shape = a.type.shape if isinstance(a.type, TensorType) else None
    return number(shape[axis], sizes) if shape else 1


def short(n: int) -> str:
    """11,173,962 as "11.2 M"."""
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= size:
            text = f"{n / size:.3g}"
            return f"{text if 'e' not in text else int(n / size)} {unit}"
    return str(n)
