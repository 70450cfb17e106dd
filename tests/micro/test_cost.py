"""A build needs as much memory as its report says, and if it does not fit, the report says how much is missing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.boards import BOARDS, KB, board
from emberlet.micro.builder.build import Options
from emberlet.micro.builder.compile import compile_mpy
from emberlet.micro.builder.cost import OBJECTS, frames, report, shortfalls, size_text
from emberlet.micro.builder.emit.kernels import kernels_source, machine_code

from tools.microcontrollers.models import build_digits, deployed, desktop_boards
from tools.micropython import Port

MEASURE = """
import gc, json, os, sys
sys.path[:] = ["{folder}"]
import digits_kernels

gc.collect()
size = lambda n: (n + 31) // 32 * 32
before = gc.mem_alloc()
import digits
gc.collect()
used = gc.mem_alloc() - before
print(json.dumps([len(digits.A), used]))
"""


@pytest.mark.parametrize("weights", ["module", "file"])
def test_arena_flash_and_memory_are_as_predicted(weights: str, unix_port: Port, tmp_path: Path) -> None:
    boards = desktop_boards()
    built = build_digits(weights, boards=boards)
    folder = deployed(built, Options("digits", weights, boards), tmp_path, unix_port.name)  # type: ignore[arg-type]
    cost = built.costs["x64"]
    measured = json.loads(unix_port.run(MEASURE.format(folder=folder), micropypath=[]).check().stdout)
    assert measured[0] == cost.arena
    files = [f for f in folder.iterdir() if f.suffix in (".mpy", ".bpk", ".py")]
    assert sum(f.stat().st_size for f in files) == cost.flash
    # The heap that importing takes besides machine code: arena, weights, and the module's objects.
    predicted = cost.arena + cost.weights_in_ram
    assert predicted <= measured[1] <= predicted + 8 * KB


def test_flash_of_a_romfs_is_the_image(tmp_path: Path) -> None:
    boards = desktop_boards()
    built = build_digits("romfs", boards=boards)
    folder = deployed(built, Options("digits", "romfs", boards), tmp_path, "x64")  # type: ignore[arg-type]
    assert (folder / "digits.romfs").stat().st_size == built.costs["x64"].flash
    assert built.costs["x64"].weights_in_ram == 0


def test_stack_holds_the_largest_frame() -> None:
    """The stack frame that machine code allocates on entry, and the registers it saves."""
    built = build_digits(boards=[board("stm32f4")], kernels="viper")
    text = kernels_source(built.program, "viper")
    sizes = []
    for kernel in re.findall(r"@micropython.viper\ndef .*?(?=\n\n|\Z)", text, re.DOTALL):
        code = compile_mpy("import micropython\n" + kernel + "\n", "k", "armv7emsp")
        at = code.find(bytes.fromhex("feb5"))  # push {r1-r7, lr}
        assert at >= 0
        immediate = code[at + 2] | code[at + 3] << 8
        assert immediate >> 7 == 0b101100001  # sub sp, #
        sizes.append(4 * (immediate & 0x7F) + 32)
    assert max(sizes) <= frames(built.program)[0] <= 2 * max(sizes)


def test_stack_holds_the_largest_frame_in_assembly() -> None:
    built = build_digits(boards=[board("stm32f4")])
    (code,) = machine_code(built.program, "armv7emsp").values()
    assert code[:2] == bytes.fromhex("f0b5")  # push {r4-r7, lr}; r8 to r11 follow
    immediate = next(
        half for half in (code[k] | code[k + 1] << 8 for k in range(0, 40, 2)) if half >> 7 == 0b101100001
    )  # sub sp, #
    size = 4 * (immediate & 0x7F) + 36
    assert size <= frames(built.program, "armv7emsp")[0] <= 2 * size


def test_the_report_says_it_is_an_estimate() -> None:
    built = build_digits(boards=[board("rp2")])
    text = "\n".join(report("digits", built.costs["armv6m"], [board("rp2")], "file"))
    assert "86,848 multiply-accumulates" in text
    assert "rp2 (Raspberry Pi Pico, RP2040): fits" in text
    assert "an estimate that no board has confirmed" in text


def test_what_does_not_fit_says_how_much_is_missing_and_what_to_do() -> None:
    built = build_digits(boards=[board("rp2")])
    cost = built.costs["armv6m"]
    small = replace(board("rp2"), heap=cost.ram - 1000, flash=cost.flash - 2000)
    memory, flash = shortfalls(cost, small, "file")
    assert memory.startswith("1,000 B more memory needed; leave the weights in flash (--weights romfs or frozen)")
    assert flash.startswith("2,000 B more flash needed; put it beside your own firmware")
    tight = replace(board("rp2"), heap=cost.arena + OBJECTS + KB)
    assert "freeze weights and code into your own firmware (--weights frozen)" in shortfalls(cost, tight, "file")[0]
    full = replace(small, room=cost.flash)
    assert "prune or narrow" in shortfalls(cost, full, "file")[1]
    in_flash = replace(cost, weights_in_ram=0, code=0, arena=300 * KB, peak="conv2")
    assert "layer 'conv2' narrower" in shortfalls(in_flash, board("rp2"), "frozen")[0]
    floats = build_digits(floats=True)
    assert "int8 (--calibration" in shortfalls(floats.costs[""], replace(small, heap=1000), "file")[0]


@pytest.mark.parametrize("weights", ["file", "module", "romfs"])
def test_the_ways_out_of_a_shortfall_lead_out(weights: str) -> None:
    boards = [board("rp2")]
    costs = {w: build_digits(w, boards=boards).costs["armv6m"] for w in ("file", "module", "romfs", "frozen")}
    rng = np.random.default_rng(0)
    named = 0
    for _ in range(400):
        heap, flash, room = (int(v * KB) for v in rng.uniform([2, 5, 5], [30, 40, 60]))
        drawn = replace(boards[0], heap=heap, flash=flash, room=room)
        for problem in shortfalls(costs[weights], drawn, weights):
            for way in re.findall(r"--weights ([a-z ]+)\)", problem):
                for choice in way.split(" or "):
                    named += 1
                    assert shortfalls(costs[choice], drawn, choice) == [], (problem, drawn)
    assert named > 20


def test_frozen_and_romfs_are_measured_by_the_flash_of_the_chip() -> None:
    drawn = replace(board("rp2"), flash=KB)
    for weights in ("file", "romfs", "frozen"):
        cost = build_digits(weights, boards=[drawn]).costs["armv6m"]
        assert bool(shortfalls(cost, drawn, weights)) == (weights == "file")
        where = size_text(drawn.flash if weights == "file" else drawn.room)
        assert f"flash {size_text(cost.flash)} of {where}" in "\n".join(report("digits", cost, [drawn], weights))


def test_boards_are_known_by_name() -> None:
    assert {"rp2", "rp2350", "esp32", "esp32s3", "stm32f4"} <= set(BOARDS)
    with pytest.raises(UnsupportedError, match="known boards: rp2"):
        board("pico9")
    assert board("pico") is BOARDS["rp2"] and board("RPI_PICO2") is BOARDS["rp2350"]
