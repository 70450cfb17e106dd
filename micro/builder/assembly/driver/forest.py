"""A whole ensemble of trees on the numbers of a list or an array, which are compared with thresholds as they are.

`trees` compares ranks, which `rank` finds for `put`; a number has to be looked for among all thresholds of its feature
to get one. This kernel keeps the numbers, as integers in the same order, beside the address of their thresholds, and
reads the one whose rank a branch says. So nothing is written to the model's input.

`drive` is given the address of four words for each feature: its number, where its thresholds are, the number that
stands for NaN, and one that nothing reads.
"""

from __future__ import annotations

from ...program import Program
from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, V6, V7
from .numbers import FIELDS, REFUSED, Numbers, negate, next_float, source
from .trees import begin_tree, end_tree, start

FRAME = Frame((*FIELDS.fields[:4], "q", "both"), ("float", "at", "state", "roots", "middle"))
"""As numbers.FIELDS, whose functions read it. q: where the trees are, in T; both: how many sums there are, and from bit
16 on how many trees; at: where the features are."""


def fields(program: Program) -> dict[str, int | str]:
    """The fields of a model that `is_forest`."""
    (step,) = program.steps
    layer, (port,) = step.layer, program.inputs
    y = step.places["o"] + step.output.origin
    both = {"q": 4 * step.places["to"], "both": layer.targets | len(layer.roots) << 16}  # type: ignore[attr-defined]
    return {"x": "i", "y": y, "count": len(port.cuts or ()), **both}


def forest(a: Numbers) -> Numbers:
    """The kernel. V0: where the numbers are, then the features; V1: the features, then the sums; V2: the trees; V4: a
    node."""
    f = FRAME
    a.begin()
    a.enter(f, {"y": "A", "q": "T"})
    source(a)
    a.put(V2, f["at"])
    a.copy(V1, V2)
    a.number(V6, 255)
    a.left(V6, 23)
    a.label("next")
    next_float(a, V3)
    a.left_from(V4, V3, 1)
    a.right_plain(V4, 1)
    a.go_if("lt", V6, V4, "missing", far=True)
    a.go_if_zero("ge", V3, "in order")
    negate(a, V4, V5)
    a.label("in order")
    a.store_word(V4, V1)
    a.step(V1, 16)
    a.count_down(f["count"], "next")

    a.get(V1, f["y"])
    a.get(V2, f["q"])
    a.get(V4, f["both"])
    a.right_plain_from(V5, V4, 16)
    a.put(V5, f["roots"])
    a.left(V4, 16)
    a.right_plain(V4, 16)
    start(a, f)
    a.get(V1, f["y"])
    a.get(V0, f["at"])
    begin_tree(a, f)
    a.right_plain_from(V7, V6, 16)
    a.left(V7, 4)
    a.plus(V7, V0)
    a.word(V3, V7)
    a.word(V7, V7, 4)
    a.left(V6, 16)
    a.right_plain(V6, 14)
    a.word_at(V7, V7, V6)
    a.go_if("ge", V7, V3, "low")
    end_tree(a, f)
    a.go("done")

    a.label("missing")
    a.word(V4, V1, 8)
    a.go("in order")
    a.label("refused")
    a.number(V7, REFUSED)
    a.to_state(V7, "answer")
    a.label("done")
    a.from_state(V4, "end")
    a.to_state(V4, "position")
    a.leave(f)
    return a
