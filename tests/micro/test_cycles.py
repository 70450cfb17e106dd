"""Cycles of a Cortex-M0+ are those that Arm publishes, and the estimate of a build is near their count."""

from __future__ import annotations

from dataclasses import replace

import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build

from tools.microcontrollers.cycles import cycles, spent
from tools.microcontrollers.networks import SMALL, samples

PUBLISHED = [
    ("movs r0, #1", 0x2001, 1), ("muls r0, r1", 0x4348, 1), ("mov pc, r0", 0x4687, 2), ("add pc, r0", 0x4487, 2),
    ("ldr r0, [pc, #4]", 0x4801, 2), ("ldrsb r0, [r1, r2]", 0x5688, 2), ("ldr r0, [r1]", 0x6808, 2),
    ("strb r0, [r1]", 0x7008, 2), ("ldrh r0, [r1]", 0x8808, 2), ("str r0, [sp, #4]", 0x9001, 2),
    ("add r0, sp, #4", 0xA801, 1), ("push {r4-r7, lr}", 0xB5F0, 6), ("uxtb r0, r1", 0xB2C8, 1),
    ("pop {r4-r7}", 0xBCF0, 5), ("pop {r4-r7, pc}", 0xBDF0, 8), ("stmia r0!, {r1-r3}", 0xC00E, 4),
    ("ldmia r0!, {r1-r3}", 0xC80E, 4), ("b", 0xE000, 2), ("bx lr", 0x4770, 2), ("blx r3", 0x4798, 2), ("bl", 0xF000, 3),
    ("dmb", 0xF3BF, 3),
]  # fmt: skip
"""Instructions, their first 16 bits, and table 3.1 of Arm's manual, DDI 0484C; for lists of N registers it says 1 + N,
and 3 + N if they include PC."""


@pytest.mark.parametrize(("name", "opcode", "due"), PUBLISHED)
def test_an_instruction_takes_its_published_cycles(name: str, opcode: int, due: int) -> None:
    assert {cycles(opcode, taken=taken) for taken in (False, True)} == {due}, name


def test_a_conditional_branch_takes_two_cycles_if_it_is_taken() -> None:
    assert [cycles(0xD100, taken=taken) for taken in (False, True)] == [1, 2]


@pytest.mark.needs("emulated-boards")
def test_the_cycles_of_an_instruction_that_estimates_take_are_near_those_of_a_network() -> None:
    """Those of the kernels of a recurrent layer."""
    graph = replace(SMALL["GRU 8 → 8, 24 steps"](), name="model")
    built = build(graph, Options("model", "romfs", [BOARDS["rp2"]], method="minmax"), samples(graph))
    script = "import model\n\n\ndef turn():\n    model.run()\n"
    instructions, found = spent(script, built.deployed["armv6m"])
    print(instructions, found)
    assert found / instructions == pytest.approx(BOARDS["rp2"].cycles, rel=0.05)
