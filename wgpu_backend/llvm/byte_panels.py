"""Reorders constant weights of 8 bits for the kernels that multiply bytes (wasm/kernels/stored_panels.py) or pairs of
int16 (wasm/kernels/integers.py): once, when a plan is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberlet import dtypes
from emberlet.sizes.size import is_open

from ..plan.narrowing import SIGNED
from ..record.node import Node, topological
from ..wasm.kernels.integers import ORDER, PAIR
from ..wasm.kernels.stored_panels import FOUR, without_casts


def store_panels(roots: Sequence[Node], width: int, bytewise: bool, host: Any) -> None:
    """Store the constant matrices of products as int8 in panels: for each of `width` columns pairs of terms; or if
    `bytewise` fours of terms, and behind these the columns' sums in int32. The weight becomes a view of them, so that
    nothing else changes."""
    made: dict[int, Node] = {}
    together = FOUR if bytewise else PAIR
    found = [(node, _weight(node, width, together)) for node in topological(roots)]
    for node, weight in found:
        if weight is not None:
            if id(weight) not in made:
                made[id(weight)] = _view(weight, width, together, host)
            node.srcs = (node.srcs[0], made[id(weight)])


def _weight(node: Node, width: int, together: int) -> Node | None:
    """The weight of a product of integers, if it can be stored in panels of so many columns and fours or pairs of
    terms; else None."""
    if node.op != "matmul" or node.dtype is not dtypes.int32 or len(node.srcs[1].shape) != 2 or is_open(node.count):
        return None
    weight = without_casts(node.srcs[1])
    word: str | None = "i8"
    if weight.op == "binary" and weight.arg == "sub" and weight.srcs[1].op == "full":
        word = {0: "i8", 128: "u8"}.get(weight.srcs[1].arg)  # what is left is int8
        weight = without_casts(weight.srcs[0])
    if weight.op != "data" or weight.word != word or (together == FOUR and not _in_rows(node.srcs[0])):
        return None
    terms, columns = weight.shape
    return weight if terms and not terms % together and columns and not columns % width else None


def _in_rows(left: Node) -> bool:
    """Whether a left operand lies in memory as the kernel reads bytes."""
    left = without_casts(left)
    if left.op == "binary" and left.arg == "sub":  # less its zero point
        left = without_casts(left.srcs[0])
    while left.op == "reshape":
        left = left.srcs[0]
    return left.dtype.bits == 8 and left.op not in ("permute", "expand", "slice")


def _view(weight: Node, width: int, together: int, host: Any) -> Node:
    """A node of int16 with a weight's values, of panels."""
    terms, columns = weight.shape
    lines, panels = terms // together, columns // width
    data = bytes(weight.arg)
    q = host.from_bytes(data.translate(SIGNED) if weight.word == "u8" else data, dtypes.int8, weight.shape)
    parts = host.permute(host.reshape(q, (lines, together, panels, width)), (2, 0, 3, 1))
    shape = (panels, lines, width, together)
    if together == FOUR:
        sums = host.reduce("sum", host.cast(q, dtypes.int32), (0,), False)
        sums = host.from_bytes(host.to_bytes(sums), dtypes.int8, (panels, 1, width, FOUR))
        parts = host.concat([parts, sums], 1)
    found = Node("data", (), host.to_bytes(parts), dtypes.int8, parts.shape, "i8")
    if together == FOUR:
        found = Node("slice", (found,), ((0,) * 4, (1,) * 4), dtypes.int8, shape)
    moved = Node("permute", (found,), ORDER, dtypes.int8, tuple([shape[a] for a in ORDER]))
    flat = Node("reshape", (moved,), None, dtypes.int8, weight.shape)
    return Node("cast", (flat,), True, dtypes.int16, weight.shape)
