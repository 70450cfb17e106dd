"""Whole ensembles of trees on the scalar machine, as kernels/trees.py says them. Cortex-M4 and M7 run the code of
Cortex-M0."""

from __future__ import annotations

from ...kernels.trees import MIDDLE
from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, V6, V7, Scalar

FRAME = Frame(("x", "y", "q", "targets", "roots"), ("low", "middle"))
"""The places of the ranks, of the sums and of the table, and how many sums and trees there are. low: a mask."""


def _split_words(a: Scalar, value: int, base: int, spare: int) -> None:
    """Store a word, which may be unaligned; clobbers it."""
    for k in range(4):
        a.store_byte(value, base, k)
        if k < 3:
            a.number(spare, 8)
            a.right(value, spare)


def start(a: Scalar, f: Frame) -> None:
    """Store the sums to begin with. V1: where; V2: the table, which moves on to the trees; V4: how many."""
    a.number(V3, 1)
    a.left(V3, MIDDLE.bit_length() - 1)
    a.put(V3, f["middle"])
    a.label("base")
    a.word(V3, V2)
    a.step(V2, 4)
    _split_words(a, V3, V1, V5)
    a.step(V1, 4)
    a.step(V4, -1)
    a.go_if_not_zero_now(V4, "base")


def begin_tree(a: Scalar, f: Frame) -> None:
    """The next tree of V2, up to the part that compares: V4: a node, whose first word has a feature, and in the low
    half a rank; V5: how far behind it the other branch is."""
    a.label("tree")
    a.word(V4, V2)
    a.step(V2, 4)
    a.left(V4, 2)
    a.get(V5, f["q"])
    a.plus(V4, V5)
    a.go("node")
    a.label("low")
    a.step(V4, 8)
    a.label("node")
    a.word(V5, V4, 4)
    a.go_if_zero("eq", V5, "leaf")


def _leaf(a: Scalar, f: Frame) -> None:
    """Add what the leaf in V4 says. V1: the sums. Clobbers V3 to V7."""
    a.word(V5, V4)
    a.go_if_zero("eq", V5, "added")
    a.label("add")
    a.step(V4, 8)
    a.word(V6, V4)
    a.left(V6, 2)
    a.plus(V6, V1)
    a.byte(V7, V6, 3)
    for k in (2, 1, 0):
        a.left(V7, 8)
        a.byte(V3, V6, k)
        a.plus(V7, V3)
    a.word(V3, V4, 4)
    a.plus(V7, V3)
    a.get(V3, f["middle"])
    a.minus(V7, V3)
    _split_words(a, V7, V6, V3)
    a.step(V5, -1)
    a.go_if_not_zero_now(V5, "add")
    a.label("added")


def end_tree(a: Scalar, f: Frame) -> None:
    """The other branch, and the leaf, after which the next tree follows."""
    a.left(V5, 2)
    a.plus(V4, V5)
    a.go("node")
    a.label("leaf")
    _leaf(a, f)
    a.count_down(f["roots"], "tree", far=True)


def trees(a: Scalar, wide: bool) -> Scalar:
    """The kernel. V0: the ranks; V1: the sums; V2: the table; V4: a node. wide: ranks of two bytes."""
    f = FRAME
    a.enter(f, {"x": "A", "y": "A", "q": "T"})
    a.number(V3, 255)
    a.left(V3, 8)
    a.step(V3, 255)
    a.put(V3, f["low"])
    a.get(V0, f["x"])
    a.get(V1, f["y"])
    a.get(V2, f["q"])
    a.get(V4, f["targets"])
    start(a, f)
    a.get(V1, f["y"])
    begin_tree(a, f)
    a.word(V6, V4)
    a.copy(V7, V6)
    a.number(V3, 16)
    a.right(V7, V3)
    if wide:
        a.left(V7, 1)
        a.plus(V7, V0)
        a.byte(V3, V7, 1)
        a.byte(V7, V7)
        a.left(V3, 8)
        a.plus(V7, V3)
    else:
        a.byte_at(V7, V0, V7)
    a.get(V3, f["low"])
    a.bitwise_and(V6, V3)
    a.go_if("ge", V6, V7, "low")
    end_tree(a, f)
    a.leave(f)
    return a
