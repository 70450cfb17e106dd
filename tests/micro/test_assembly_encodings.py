"""Every instruction of the assemblers with random operands, compared with GNU's assembler."""

from __future__ import annotations

import inspect
import random
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from emberlet.micro.builder.assembly.assembler import Assembler
from emberlet.micro.builder.assembly.rv32 import Rv32
from emberlet.micro.builder.assembly.thumb import Thumb
from emberlet.micro.builder.assembly.thumb_dsp import ThumbDsp
from emberlet.micro.builder.assembly.thumb_vfp import ThumbVfp
from emberlet.micro.builder.assembly.xtensa import Xtensa
from support.draws import draw

from tools import components

DRAWS = 40
REGISTER = re.compile(r"[adhlmntu]")
NUMBERS: dict[str, Callable[[random.Random], int]] = {
    "offset": lambda rng: 4 * rng.randrange(256) if rng.random() < 0.5 else rng.randrange(4096),
    "imm8": lambda rng: rng.randrange(256),
    "imm5": lambda rng: rng.randrange(1, 32),
    "imm20": lambda rng: rng.randrange(1 << 20),
    "imm12": lambda rng: rng.randrange(-2048, 4096),
    "value": lambda rng: rng.randrange(-128, 256),
    "const": lambda rng: rng.randrange(128, 256) << rng.randrange(24) if rng.random() < 0.8 else rng.randrange(300),
    "pages": lambda rng: rng.randrange(-128, 128),
    "lsl": lambda rng: rng.randrange(4),
    **dict.fromkeys(("sd", "sn", "sm"), lambda rng: rng.randrange(32)),
    "ror": lambda rng: rng.choice([0, 8, 16, 24]),
    "bits": lambda rng: rng.randrange(1, 32),
    "size": lambda rng: 4 * rng.randrange(1, 300),
    "step": lambda rng: 4 * rng.randrange(1, 64) if rng.random() < 0.5 else rng.randrange(-255, 256),
}


def instructions(assembler: type[Assembler]) -> list[str]:
    """The names of the methods that append an instruction."""
    shared = {"register", "emit", "branch", "label", "listing", "code", "text"}
    return [n for n, _ in inspect.getmembers(assembler, inspect.isfunction) if n[0] != "_" and n not in shared]


def append(a: Assembler, method: str, rng: random.Random, registers: list[int]) -> None:
    """Call a method with random operands, redrawn if the instruction cannot encode them."""
    while True:
        before = len(a.instructions), a.size
        arguments: list[Any] = []
        options: dict[str, bool] = {}
        for name, parameter in inspect.signature(getattr(a, method)).parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                arguments += sorted(rng.sample(range(8), 3))
            elif parameter.kind is parameter.KEYWORD_ONLY:
                options[name] = rng.random() < 0.5
            elif parameter.default is not parameter.empty and rng.random() < 0.2:
                break
            elif name in NUMBERS:
                arguments.append(NUMBERS[name](rng))
            else:
                assert REGISTER.fullmatch(name), (method, name)
                arguments.append(rng.choice(registers))
        if len(arguments) > 2 and method[:4] in ("ldrd", "strd", "smul") and arguments[0] == arguments[1]:
            continue
        # Writing back to a register that is loaded or stored is unpredictable, and GNU refuses it.
        if "after" in method and arguments[-2] in arguments[:-2]:
            continue
        if method == "ldm" and arguments[0] in arguments[1:]:
            continue
        try:
            getattr(a, method)(*arguments, **options)
            return
        except ValueError:
            del a.instructions[before[0] :]
            a.size = before[1]


def assembled(listing: list[tuple[str, bytes]], options: list[str], head: str, tools: str, folder: Path) -> list[bytes]:
    """The bytes that GNU's assembler produces for each instruction of a listing."""
    lines = [head]
    for k, (text, _) in enumerate(listing):
        lines += [f"at{k}:", text]
    lines.append(f"at{len(listing)}:")
    (folder / "a.s").write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run([f"{tools}as", *options, "a.s", "-o", "a.o"], cwd=folder, check=True)
    subprocess.run([f"{tools}objcopy", "-O", "binary", "-j", ".text", "a.o", "a.bin"], cwd=folder, check=True)
    names = subprocess.run(
        [f"{tools}nm", "a.o"], cwd=folder, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout
    place = {line.split()[2]: int(line.split()[0], 16) for line in names.splitlines()}
    code = (folder / "a.bin").read_bytes()
    return [code[place[f"at{k}"] : place[f"at{k + 1}"]] for k in range(len(listing))]


def compare(a: Assembler, options: list[str], head: str, tools: str, folder: Path) -> None:
    listing = a.listing()
    expected = assembled(listing, options, head, tools, folder)
    wrong = [(t, c.hex(), e.hex()) for (t, c), e in zip(listing, expected, strict=True) if c != e]
    assert not wrong, wrong[:10]


LOW, ALL_BUT_SP = [*range(8)], [*range(13), 14]


def thumb_registers(method: str) -> list[int]:
    """Too many for most instructions of ARMv6-M, which then refuse them."""
    return [*range(8), 13] if method in ("ldr", "str_") else ALL_BUT_SP


def drawn(a: Assembler, skip: tuple[str, ...], registers: Callable[[str], list[int]]) -> Assembler:
    """Every instruction but branches, which BRANCHES draws, and those in `skip`."""
    rng = random.Random(20)
    for method in instructions(type(a)):
        if method in skip or "target" in inspect.signature(getattr(a, method)).parameters:
            continue
        for _ in range(DRAWS):
            append(a, method, rng, registers(method))
    return a


@pytest.mark.parametrize("kind", [Thumb, ThumbDsp, ThumbVfp])
def test_thumb_encodings_are_those_of_gnu_as(kind: type[Thumb], tmp_path: Path) -> None:
    components.require("arm-assembler")
    a = drawn(kind(), (), thumb_registers)
    branches(a, THUMB_BRANCHES if kind is Thumb else THUMB_BRANCHES + WIDE_BRANCHES)
    cpu = "cortex-m0plus" if kind is Thumb else "cortex-m7"
    head = ".syntax unified\n.thumb" + "\n.fpu fpv5-sp-d16" * (kind is ThumbVfp)
    compare(a, [f"-mcpu={cpu}", "-mthumb"], head, "arm-none-eabi-", tmp_path)


def test_risc_v_encodings_are_those_of_gnu_as(tmp_path: Path) -> None:
    components.require("board-compilers")
    a = drawn(Rv32(), (), lambda method: [*range(1, 18), *range(28, 32)])
    branches(a, [("j", ()), *(("b_if", (c, 10, 31)) for c in ("eq", "ne", "lt", "ge"))])
    head = ".option norvc\n.option norelax"
    compare(a, ["-march=rv32im", "-mabi=ilp32"], head, "riscv64-unknown-elf-", tmp_path)


def test_xtensa_encodings_are_those_of_gnu_as(tmp_path: Path) -> None:
    components.require("xtensa-assembler")
    # The available assembler is for a core without register windows.
    a = drawn(Xtensa(), ("entry", "retw"), lambda method: list(range(16)))
    branches(a, [("j", ()), *((m, (c, *n)) for m, n in (("b_if", (3, 14)), ("b_if_zero", (9,))) for c in CONDITIONS)])
    compare(a, ["--no-transform", "--no-target-align"], "", "xtensa-lx106-elf-", tmp_path)


def test_xtensa_frames_are_as_in_the_manual() -> None:
    a = Xtensa()
    a.entry(32)
    a.retw()
    assert a.code() == bytes.fromhex("364100 900000")


CONDITIONS = ("eq", "ne", "lt", "ge")
THUMB_CONDITIONS = ("eq", "ne", "cs", "cc", "mi", "pl", "hi", "ls", "ge", "lt", "gt", "le")
Branch = tuple[str, tuple[object, ...]]
THUMB_BRANCHES: list[Branch] = [("b", ()), ("bl", ()), *(("b_if", (c,)) for c in THUMB_CONDITIONS)]
WIDE_BRANCHES: list[Branch] = [("b_w", ()), *(("b_if_w", (c,)) for c in THUMB_CONDITIONS)]


def branches(a: Assembler, which: list[Branch]) -> None:
    """Each branch backward and forward, over a few instructions of all kinds."""
    some = a.instructions[:: max(1, len(a.instructions) // 8)][:8]
    for k, (method, arguments) in enumerate(which):
        a.label(f"back {k}")
        for one in some:
            a.emit(one.text, one.code)
        getattr(a, method)(*arguments, f"back {k}")
        getattr(a, method)(*arguments, f"forth {k}")
        for one in some:
            a.emit(one.text, one.code)
        a.label(f"forth {k}")


# -- what an instruction can hold -------------------------------------------------------------------------------------

BYTE, SIGNED_12, SHIFT = range(256), range(-2048, 2048), range(1, 32)
LIMITS: dict[type[Assembler], dict[str, dict[str, range]]] = {
    Thumb: {
        "imm8": dict.fromkeys(("movs", "adds_imm", "subs_imm", "cmp_imm"), BYTE),
        "imm5": dict.fromkeys(("lsls", "lsrs", "asrs"), SHIFT),
        "offset": {
            **dict.fromkeys(("ldr", "str_"), range(0, 128, 4)),
            **dict.fromkeys(("ldrb", "strb"), range(32)),
            "add_from_sp": range(0, 1024, 4),
        },
    },
    ThumbDsp: {
        "imm8": dict.fromkeys(("subs_w", "adc_w", "mov_w"), BYTE),
        "imm12": dict.fromkeys(("addw", "subw"), range(4096)),
        "imm5": dict.fromkeys(("lsl_w", "lsr_w", "asr_w", "lsrs_w"), SHIFT),
        "bits": {"usat": range(32)},
        "offset": {
            **dict.fromkeys(("ldr_w", "str_w", "strb_w"), range(4096)),
            **dict.fromkeys(("ldrd", "strd"), range(0, 1024, 4)),
        },
        "lsl": dict.fromkeys(("ldr_index", "strb_index", "strh_index"), range(4)),
        "step": {
            **dict.fromkeys(("ldr_after", "str_after", "ldrb_after", "strb_after", "strh_after"), range(-255, 256)),
            **dict.fromkeys(("ldrd_after", "strd_after"), range(0, 1024, 4)),
        },
    },
    Rv32: {
        "imm12": {"addi": SIGNED_12},
        "imm20": {"auipc": range(1 << 20)},
        "imm5": dict.fromkeys(("slli", "srli", "srai"), range(32)),
        "offset": dict.fromkeys(("lbu", "lw", "sb", "sw"), SIGNED_12),
    },
    Xtensa: {
        "imm5": {"slli": SHIFT, "srai": range(32)},
        "value": {"addi": range(-128, 128)},
        "pages": {"addmi": range(-128, 128)},
        "imm12": {"movi": SIGNED_12},
        "offset": {
            **dict.fromkeys(("l8ui", "s8i"), BYTE),
            **dict.fromkeys(("l32i", "s32i"), range(0, 1024, 4)),
        },
        "size": {"entry": range(0, 32768, 8)},
    },
}
"""The numbers that an instruction's field can hold, by the manuals."""
BRANCH_LIMITS: dict[type[Assembler], dict[str, range]] = {
    Thumb: {
        "b": range(-2044, 2051, 2),
        "b_if": range(-252, 259, 2),
        "bl": range(4 - 2**22, 4 + 2**22, 2),
    },
    ThumbDsp: {"b_if_w": range(4 - 2**20, 4 + 2**20, 2), "b_w": range(4 - 2**24, 4 + 2**24, 2)},
    Rv32: {"j": range(-(2**20), 2**20, 2), "b_if": range(-4096, 4096, 2)},
    Xtensa: {"j": range(4 - 2**17, 4 + 2**17), "b_if": range(-124, 132), "b_if_zero": range(-2044, 2052)},
}
"""The distances from a branch to its target, by the manuals."""


def takes(kind: type[Assembler], method: str, number: int, base: int = 2) -> bool:
    a, registers = kind(), iter((1, base, 3, 4))
    own = inspect.signature(getattr(a, method)).parameters
    arguments = [number if name in NUMBERS else next(registers) for name in own]
    try:
        getattr(a, method)(*arguments)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("kind", LIMITS)
def test_an_instruction_takes_what_its_field_can_hold(kind: type[Assembler]) -> None:
    for of_parameter in LIMITS[kind].values():
        for method, limits in of_parameter.items():
            tried: Sequence[int] = range(limits[0] - 9, limits[-1] + 10)
            if len(tried) > 10_000:  # both ends, and some between
                tried = [*tried[:20], *draw(method).sample(tried[20:-20], 2000), *tried[-20:]]
            assert [n for n in tried if takes(kind, method, n) is not (n in limits)] == [], method


@pytest.mark.parametrize("method", ["ldr", "str_"])
def test_an_offset_from_the_stack_pointer_is_longer(method: str) -> None:
    assert [n for n in range(1100) if takes(Thumb, method, n, 13)] == list(range(0, 1024, 4))


@pytest.mark.parametrize("method", ["add_sp", "sub_sp"])
def test_a_frame_of_any_size_is_taken_in_parts(method: str) -> None:
    for size in range(0, 2000, 4):
        a = Thumb()
        getattr(a, method)(size)
        parts = [int(text.partition("#")[2]) for text, _ in a.listing()]
        assert sum(parts) == size and all(part == 508 for part in parts[:-1])
        with pytest.raises(ValueError, match="a frame is"):
            getattr(a, method)(size + 2)


def far(kind: type[Assembler], method: str, distance: int, rng: random.Random, a: Assembler | None = None) -> bytes:
    """The code of a branch over a distance. Raises ValueError."""
    a = a or kind()
    conditions = THUMB_CONDITIONS if issubclass(kind, Thumb) else CONDITIONS
    label = f"far {len(a.instructions)}"
    a.labels[label] = a.size + distance
    own = list(inspect.signature(getattr(a, method)).parameters)[:-1]
    getattr(a, method)(
        *(rng.choice(conditions) if name == "condition" else rng.randrange(8, 16) for name in own), label
    )
    encode = a.instructions[-1].encode
    assert encode is not None
    return encode(distance)


@pytest.mark.parametrize("kind", BRANCH_LIMITS)
def test_a_branch_reaches_as_far_as_its_field(kind: type[Assembler]) -> None:
    for method, limits in BRANCH_LIMITS[kind].items():
        for end, beyond in ((limits[0], -limits.step), (limits[-1], limits.step)):
            far(kind, method, end, random.Random(0))
            with pytest.raises(ValueError, match=r"a branch is .* cannot encode"):
                far(kind, method, end + beyond, random.Random(0))
            if limits.step > 1:
                with pytest.raises(ValueError, match=r"a branch is .* cannot encode"):
                    far(kind, method, end - beyond // 2, random.Random(0))


TOOLS = {
    Thumb: ("arm-assembler", ["-mcpu=cortex-m0plus", "-mthumb"], ".syntax unified\n.thumb", "arm-none-eabi-"),
    ThumbDsp: ("arm-assembler", ["-mcpu=cortex-m7", "-mthumb"], ".syntax unified\n.thumb", "arm-none-eabi-"),
    Rv32: (
        "board-compilers",
        ["-march=rv32im", "-mabi=ilp32"],
        ".option norvc\n.option norelax",
        "riscv64-unknown-elf-",
    ),
    Xtensa: ("xtensa-assembler", ["--no-transform", "--no-target-align"], "", "xtensa-lx106-elf-"),
}


@pytest.mark.parametrize("kind", BRANCH_LIMITS)
def test_far_branches_are_those_of_gnu_as(kind: type[Assembler], tmp_path: Path) -> None:
    component, options, head, tools = TOOLS[kind]
    components.require(component)
    a, rng = kind(), random.Random(3)
    for method, limits in BRANCH_LIMITS[kind].items():
        for distance in (limits[0], limits[-1], *rng.sample(limits, 30)):
            far(kind, method, distance, rng, a)
    compare(a, options, head, tools, tmp_path)
