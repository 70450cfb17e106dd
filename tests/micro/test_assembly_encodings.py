"""Every instruction of the assemblers with random operands, compared with GNU's assembler."""

from __future__ import annotations

import inspect
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from emberlet.micro.builder.assembly.assembler import Assembler
from emberlet.micro.builder.assembly.rv32 import Rv32
from emberlet.micro.builder.assembly.thumb import Thumb, ThumbDsp
from emberlet.micro.builder.assembly.xtensa import Xtensa

from tools import components

DRAWS = 40
REGISTER = re.compile(r"[adnmt]2?|low|high")
NUMBERS: dict[str, Callable[[random.Random], int]] = {
    "offset": lambda rng: 4 * rng.randrange(256) if rng.random() < 0.5 else rng.randrange(4096),
    "imm8": lambda rng: rng.randrange(256),
    "imm5": lambda rng: rng.randrange(1, 32),
    "imm12": lambda rng: rng.randrange(-2048, 4096),
    "value": lambda rng: rng.randrange(-128, 256),
    "pages": lambda rng: rng.randrange(-128, 128),
    "lsl": lambda rng: rng.randrange(4),
    "ror": lambda rng: rng.choice([0, 8, 16, 24]),
    "bits": lambda rng: rng.randrange(1, 32),
    "size": lambda rng: 4 * rng.randrange(1, 128),
    "step": lambda rng: 4 * rng.randrange(1, 64) if rng.random() < 0.5 else rng.randrange(-255, 256),
}


def instructions(assembler: type[Assembler]) -> list[str]:
    """The names of the methods that append an instruction."""
    shared = {"emit", "branch", "label", "listing", "code", "text"}
    return [n for n, _ in inspect.getmembers(assembler, inspect.isfunction) if n[0] != "_" and n not in shared]


def append(a: Assembler, method: str, rng: random.Random, registers: list[int]) -> None:
    """Call a method with random operands, redrawn if the instruction cannot encode them."""
    while True:
        before = len(a.instructions), a.size
        arguments: list[Any] = []
        for name, parameter in inspect.signature(getattr(a, method)).parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                arguments += sorted(rng.sample(range(8), 3))
            elif parameter.kind is parameter.KEYWORD_ONLY:
                continue
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
            getattr(a, method)(*arguments)
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


ALL_BUT_SP = [*range(13), 14]


def drawn(a: Assembler, skip: tuple[str, ...], registers: Callable[[str], list[int]]) -> Assembler:
    """Every instruction but branches, which BRANCHES draws, and those in `skip`."""
    rng = random.Random(20)
    for method in instructions(type(a)):
        if method in skip or "target" in inspect.signature(getattr(a, method)).parameters:
            continue
        for _ in range(DRAWS):
            append(a, method, rng, registers(method))
    return a


@pytest.mark.parametrize("kind", [Thumb, ThumbDsp])
def test_thumb_encodings_are_those_of_gnu_as(kind: type[Thumb], tmp_path: Path) -> None:
    components.require("arm-assembler")
    a = drawn(kind(), (), lambda method: list(range(8)) if hasattr(Thumb, method) else ALL_BUT_SP)
    branches(a, THUMB_BRANCHES if kind is Thumb else THUMB_BRANCHES + WIDE_BRANCHES)
    cpu = "cortex-m0plus" if kind is Thumb else "cortex-m7"
    compare(a, [f"-mcpu={cpu}", "-mthumb"], ".syntax unified\n.thumb", "arm-none-eabi-", tmp_path)


def test_risc_v_encodings_are_those_of_gnu_as(tmp_path: Path) -> None:
    components.require("board-compilers")
    a = drawn(Rv32(), (), lambda method: [*range(1, 18), *range(28, 32)])
    branches(a, [("j", ()), *(("b_if", (c, 10, 31)) for c in ("eq", "ne", "lt", "ge"))])
    head = ".option norvc\n.option norelax"
    compare(a, ["-march=rv32im", "-mabi=ilp32"], head, "riscv64-unknown-elf-", tmp_path)


def test_xtensa_encodings_are_those_of_gnu_as(tmp_path: Path) -> None:
    components.require("xtensa-assembler")
    # The assembler at hand is for a core without register windows.
    a = drawn(Xtensa(), ("entry", "retw"), lambda method: list(range(16)))
    branches(a, [("j", ()), *((m, (c, *n)) for m, n in (("b_if", (3, 14)), ("b_if_zero", (9,))) for c in CONDITIONS)])
    compare(a, ["--no-transform", "--no-target-align"], "", "xtensa-lx106-elf-", tmp_path)


def test_xtensa_frames_are_as_in_the_manual() -> None:
    a = Xtensa()
    a.entry(32)
    a.retw()
    assert a.code() == bytes.fromhex("364100 900000")


CONDITIONS = ("eq", "ne", "lt", "ge")
Branch = tuple[str, tuple[object, ...]]
THUMB_BRANCHES: list[Branch] = [("b", ()), *(("b_if", (c,)) for c in ("eq", "cs", "hi", "le"))]
WIDE_BRANCHES: list[Branch] = [("b_w", ()), *(("b_if_w", (c,)) for c in ("ne", "cc", "ls", "gt"))]


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
