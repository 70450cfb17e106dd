"""Whole ensembles of trees on the scalar machine, as kernels/trees.py says them. Cortex-M4 and M7 run the code of
Cortex-M0. The sums lie at whole words, as all buffers do that kernels in assembly write (plan.WORD)."""

from __future__ import annotations

from collections.abc import Callable

from ...kernels.trees import MIDDLE
from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, V6, V7, Scalar

FRAME = Frame(("x", "y", "q", "targets", "roots"), ("low", "middle"))
"""The places of the ranks, of the sums and of the table, and how many sums and trees there are. low: a mask."""


def start(a: Scalar, f: Frame) -> None:
    """Store the sums to begin with. V1: where; V2: the table, which moves on to the trees; V4: how many."""
    a.number(V3, 1)
    a.left(V3, MIDDLE.bit_length() - 1)
    a.put(V3, f["middle"])
    a.label("base")
    a.take_words(V2, (V3,))
    a.put_words(V1, (V3,))
    a.step(V4, -1)
    a.go_if_not_zero_now(V4, "base")


def walk(a: Scalar, f: Frame, source: str, compare: Callable[[], None]) -> None:
    """Go through the trees of V2, and add what the leaves say to the sums at V1.

    source: the field of what V0 then is the address of; compare: goes to "low" where the number that the node at V4
    compares is not above its threshold. A node's first word has a feature, and in the low half a rank; the second one
    says how far behind it the other branch is. V5, bytes of that, has to be kept.
    """
    a.label("tree")
    a.take_words(V2, (V4,))
    a.left(V4, 2)
    a.get(V5, f["q"])
    a.plus(V4, V5)
    a.get(V0, f[source])
    a.go("node")
    a.label("low")
    a.step(V4, 8)
    a.label("node")
    a.word(V5, V4, 4)
    a.left(V5, 2)
    a.go_if_zero_now(V5, "leaf")
    a.label("compare")
    compare()
    a.plus(V4, V5)
    a.word(V5, V4, 4)
    a.left(V5, 2)
    a.go_if_not_zero_now(V5, "compare")
    a.label("leaf")
    _leaf(a, f)
    a.count_down(f["roots"], "tree", far=True)


def _leaf(a: Scalar, f: Frame) -> None:
    """Add what the leaf in V4 says. Clobbers all but V1 and V2."""
    a.word(V5, V4)
    a.go_if_zero("eq", V5, "added")
    a.step(V4, 8)
    a.get(V3, f["middle"])
    a.label("add")
    a.take_words(V4, (V6, V7))
    a.left(V6, 2)
    a.plus(V6, V1)
    a.minus(V7, V3)
    a.word(V0, V6)
    a.plus(V7, V0)
    a.store_word(V7, V6)
    a.step(V5, -1)
    a.go_if_not_zero_now(V5, "add")
    a.label("added")


def trees(a: Scalar, wide: bool) -> Scalar:
    """The kernel. V0: the ranks; V1: the sums; V2: the table; V4: a node. wide: ranks of two bytes."""
    f = FRAME
    a.enter(f, {"x": "A", "y": "A", "q": "T"})
    a.number(V3, 255)
    a.left(V3, 8)
    a.step(V3, 255)
    a.put(V3, f["low"])
    a.get(V1, f["y"])
    a.get(V2, f["q"])
    a.get(V4, f["targets"])
    start(a, f)
    a.get(V1, f["y"])
    walk(a, f, "x", lambda: _compare(a, f, wide))
    a.leave(f)
    return a


def _compare(a: Scalar, f: Frame, wide: bool) -> None:
    a.word(V6, V4)
    a.right_by(V7, V6, 16)
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
