"""Reorders constant weights of 8 bits for the kernels that multiply bytes (wasm/kernels/stored_panels.py): once, when a
plan is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberlet import dtypes
from emberlet.sizes.size import is_open

from ..plan.narrowing import SIGNED
from ..record.node import Node, topological
from ..wasm.kernels.integers import ORDER
from ..wasm.kernels.stored_panels import FOUR, without_casts


def store_panels(roots: Sequence[Node], width: int, host: Any) -> None:
    """Store the constant matrices of products as int8 in panels: for each of `width` columns fours of terms, and behind
    these the columns' sums in int32. The weight becomes a view of them, so that nothing else changes."""
    made: dict[int, Node] = {}
    found = [(node, _weight(node, width)) for node in topological(roots)]
    for node, weight in found:
        if weight is not None:
            if id(weight) not in made:
                made[id(weight)] = _view(weight, width, host)
            node.srcs = (node.srcs[0], made[id(weight)])


def _weight(node: Node, width: int) -> Node | None:
    """The weight of a product of integers, if it can be stored in panels of so many columns; else None."""
    if node.op != "matmul" or node.dtype is not dtypes.int32 or len(node.srcs[1].shape) != 2 or is_open(node.count):
        return None
    weight, left = without_casts(node.srcs[1]), without_casts(node.srcs[0])
    word: str | None = "i8"
    if weight.op == "binary" and weight.arg == "sub" and weight.srcs[1].op == "full":
        word = {0: "i8", 128: "u8"}.get(weight.srcs[1].arg)  # what is left is int8
        weight = without_casts(weight.srcs[0])
    if left.op == "binary" and left.arg == "sub":  # less its zero point
        left = without_casts(left.srcs[0])
    while left.op == "reshape":
        left = left.srcs[0]
    in_rows = left.dtype.bits == 8 and left.op not in ("permute", "expand", "slice")  # as the kernel reads them
    if not in_rows or weight.op != "data" or weight.word != word:
        return None
    terms, columns = weight.shape
    return weight if terms and not terms % FOUR and columns and not columns % width else None


def _view(weight: Node, width: int, host: Any) -> Node:
    """A node of int16 with a weight's values, of panels."""
    terms, columns = weight.shape
    fours, panels = terms // FOUR, columns // width
    data = bytes(weight.arg)
    q = host.from_bytes(data.translate(SIGNED) if weight.word == "u8" else data, dtypes.int8, weight.shape)
    parts = host.permute(host.reshape(q, (fours, FOUR, panels, width)), (2, 0, 3, 1))
    sums = host.reduce("sum", host.cast(q, dtypes.int32), (0,), False)
    sums = host.from_bytes(host.to_bytes(sums), dtypes.int8, (panels, 1, width, FOUR))
    whole = host.to_bytes(host.concat([parts, sums], 1))
    stored = Node("data", (), whole, dtypes.int8, (panels, fours + 1, width, FOUR), "i8")
    shape = (panels, fours, width, FOUR)
    cut = Node("slice", (stored,), ((0,) * 4, (1,) * 4), dtypes.int8, shape)
    moved = Node("permute", (cut,), ORDER, dtypes.int8, tuple([shape[a] for a in ORDER]))
    flat = Node("reshape", (moved,), None, dtypes.int8, weight.shape)
    return Node("cast", (flat,), True, dtypes.int16, weight.shape)
