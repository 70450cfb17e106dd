"""A whole ensemble of trees on the numbers of a list or an array, which are compared with thresholds as they are.

`trees` compares ranks, which `rank` finds for `put`; a number has to be looked for among all thresholds of its feature
to get one. This kernel keeps the numbers, as integers in the same order, beside the address of their thresholds, and
reads the one whose rank a branch says. So nothing is written to the model's input.

`drive` is given the address of four words for each feature: its number, where its thresholds are, the number that
stands for NaN, and one that nothing reads.
"""

from __future__ import annotations

from abc import abstractmethod

from ...program import Program
from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, V6, V7
from ..scalar_rv32 import REGISTERS
from ..thumb import R0, R3, R4, R6, R7
from ..thumb_dsp import ThumbDsp
from .numbers import FIELDS, REFUSED, Numbers, NumbersRv32, NumbersThumb, source
from .trees import start, walk


class Forest(Numbers):
    """The machine with what reads a branch."""

    @abstractmethod
    def read_branch(self) -> None:
        """V3: the number, V7: the threshold, that the node at V4 compares. V0: the features. Clobbers V6."""


class ForestThumb(NumbersThumb, Forest):
    def read_branch(self) -> None:
        self.ldrh(R6, R4)
        self.lsls(R6, R6, 2)
        self.ldrh(R7, R4, 2)
        self.lsls(R7, R7, 4)
        self.add(R7, R0)
        self.ldmia_over(R7, R3, R7)
        self.ldr_reg(R7, R7, R6)


class ForestDsp(ForestThumb, ThumbDsp):
    def read_branch(self) -> None:
        self.ldrh(R6, R4)
        self.ldrh(R7, R4, 2)
        self.add_w(R7, R0, R7, 4)
        self.ldrd(R3, R7, R7)
        self.ldr_index(R7, R7, R6, 2)


class ForestRv32(NumbersRv32, Forest):
    def read_branch(self) -> None:
        features, number, node, rank, place = (REGISTERS[v] for v in (V0, V3, V4, V6, V7))
        self.lhu(rank, node)
        self.slli(rank, rank, 2)
        self.lhu(place, node, 2)
        self.slli(place, place, 4)
        self.add(place, place, features)
        self.lw(number, place)
        self.lw(place, place, 4)
        self.add(place, place, rank)
        self.lw(place, place)


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


def forest(a: Forest) -> Forest:
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
    a.get(V3, f["way"])
    a.go_if_zero("ne", V3, "objects")
    a.label("next")
    a.word(V4, V0)
    a.step(V0, 4)
    _ordered(a, "")
    a.count_down(f["count"], "next")
    a.go("read")
    a.label("objects")
    a.get(V5, f["float"])
    a.get(V7, f["count"])
    a.label("next object")
    a.take_words(V0, (V2,))
    a.left_from(V3, V2, 30)
    a.go_if_not_zero_now(V3, "refused", far=True)
    a.take_words(V2, (V3, V4))
    a.go_if("ne", V3, V5, "refused", far=True)
    _ordered(a, " object")
    a.step(V7, -1)
    a.go_if_not_zero_now(V7, "next object")
    a.label("read")

    a.get(V1, f["y"])
    a.get(V2, f["q"])
    a.get(V4, f["both"])
    a.right_plain_from(V5, V4, 16)
    a.put(V5, f["roots"])
    a.left(V4, 16)
    a.right_plain(V4, 16)
    start(a, f)
    a.get(V1, f["y"])

    def compare() -> None:
        a.read_branch()
        a.go_if("ge", V7, V3, "low")

    walk(a, f, "at", compare)
    a.go("done")

    for which in ("", " object"):
        _rare(a, which)
    a.label("refused")
    a.number(V7, REFUSED)
    a.to_state(V7, "answer")
    a.label("done")
    a.from_state(V4, "end")
    a.to_state(V4, "position")
    a.leave(f)
    return a


def _ordered(a: Numbers, which: str) -> None:
    """Write the number with the bits in V4 for the feature at V1, which moves on. V6: the bits above which NaN is.
    which: of the labels."""
    a.go_if("lt", V6, V4, f"missing{which}", far=True)
    a.go_if_zero("lt", V4, f"negative{which}", far=True)
    a.label(f"in order{which}")
    a.store_word(V4, V1)
    a.step(V1, 16)


def _rare(a: Numbers, which: str) -> None:
    """What `_ordered` does with a number that is negative or NaN. Clobbers V3."""
    a.label(f"negative{which}")
    a.number(V3, 1)
    a.left(V3, 31)
    a.minus(V3, V4)
    a.copy(V4, V3)
    a.plus(V3, V6)
    a.go_if_zero("ge", V3, f"in order{which}")
    a.label(f"missing{which}")
    a.word(V4, V1, 8)
    a.go(f"in order{which}")
