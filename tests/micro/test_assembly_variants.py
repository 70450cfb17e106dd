"""The machine code of every variant of the assembly kernels: its size, the room it takes on the stack, and a digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from emberlet.micro.builder.assembly import dsp_depthwise, dsp_dot, scalar_depthwise, scalar_dot
from emberlet.micro.builder.assembly.assembler import Assembler
from emberlet.micro.builder.assembly.registry import ALL, DSP, SCALAR
from support.microcontrollers.described import digest
from support.recorded import assert_recorded

RECORDED = Path(__file__).with_name("recorded_assembly.txt")

BOTH, ROUNDING = (False, True), ("", "once", "twice")
WINDOWS = ((1, 1), (1, 2), (2, 1), (1, 4), (3, 3), (2, 5), (5, 3), (4, 4), (1, 16), (1, 17), (7, 7), (8, 8), (16, 4))

Made = tuple[str, int, Callable[[], Assembler]]


def variants(family: str) -> Iterator[Made]:
    if family == DSP:
        for gather, up, wide, how in product(BOTH, BOTH, BOTH, ROUNDING):
            name = f"dense {gather:d}{up:d}{wide:d} {how}"
            yield name, dsp_dot.DENSE.size, partial(dsp_dot.dense, gather, up, wide, how)
        for gather, up, how in product(BOTH, BOTH, ROUNDING):
            yield f"conv {gather:d}{up:d} {how}", dsp_dot.CONV.size, partial(dsp_dot.conv, gather, up, how)
        for (kh, kw), up, how in product(WINDOWS, BOTH, BOTH):
            size = dsp_depthwise.frame(kh * kw, how).size
            yield f"{kh}x{kw} {up:d}{how:d}", size, partial(dsp_depthwise.depthwise, kh, kw, up, how)
        return
    kind = SCALAR[family]
    for gather, few, split, wide, how in product(BOTH, BOTH, BOTH, BOTH, ROUNDING):
        name = f"conv {gather:d}{few:d}{split:d}{wide:d} {how}"
        yield name, scalar_dot.FRAME.size, partial(scalar_dot.conv, kind(), gather, few, split, wide, how)
    for (kh, kw), split, how in product(WINDOWS, BOTH, BOTH):
        size = scalar_depthwise.frame(kh * kw).size
        yield f"{kh}x{kw} {split:d}{how:d}", size, partial(scalar_depthwise.depthwise, kind(), kh, kw, split, how)


@pytest.mark.parametrize("family", ALL)
def test_the_code_of_every_variant(family: str) -> None:
    lines: list[str] = []
    for name, frame, make in variants(family):
        made = make()
        code = made.code()
        lines.append(f"{name}: {len(code)} (stack {frame}) {digest(code + made.text('f').encode())}")
    assert_recorded(RECORDED, family, "\n".join(lines))
