"""MicroPython's firmware for the boards that QEMU emulates, built from Debian's source package and kept in the cache.

`ports/qemu` of MicroPython is made for tests. It is built here for four processors, with a heap for whole models:

| name   | processor  | emulated board               |
|--------|------------|------------------------------|
| `m7`   | Cortex-M7  | MPS2 with AN500              |
| `m4`   | Cortex-M4  | MPS2 with AN386              |
| `m0`   | Cortex-M0  | BBC micro:bit, with more RAM |
| `rv32` | RV32IMAC   | QEMU's own, "virt"           |

A fifth, `m4c`, is `m4` with floats in objects' own words (MicroPython's REPR_C, as on Arduino's Portenta H7).

Beside the firmware a board gets a `payload`, a block of bytes in memory that no program of its own uses.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..paths import CACHE
from ..steps import install_lock, run
from . import fetch

FOLDER = CACHE / "firmware"

_ARM = "QEMU_ARCH = arm\nSRC_BOARD_O = shared/runtime/gchelper_native.o shared/runtime/gchelper_{helper}.o\n"
_MPS2 = (
    _ARM.format(helper="thumb2") + "QEMU_MACHINE = {machine}\nLDSCRIPT = mcu/arm/mps2.ld\n"
    "CFLAGS += -mthumb -mcpu={cpu} -mfpu={fpu} -mfloat-abi=hard -DQEMU_SOC_MPS2\n"
)
# MicroPython leaves out its native emitter and its inline assembler here; the RP2040's firmware has both.
_MICROBIT = (
    _ARM.format(helper="thumb1") + "QEMU_MACHINE = microbit\nLDSCRIPT = $(BOARD_DIR)/nrf51.ld\n"
    "CFLAGS += -mthumb -mcpu=cortex-m0 -mfloat-abi=soft -DQEMU_SOC_NRF51\n"
    "CFLAGS += -DMICROPY_EMIT_THUMB=1 -DMICROPY_EMIT_THUMB_ARMV7M=0\n"
    "CFLAGS += -DMICROPY_EMIT_INLINE_THUMB=1 -DMICROPY_EMIT_INLINE_THUMB_FLOAT=0\n"
)
# Debian's picolibc is found for rv32imac only, whose instructions for control registers then belong to the base.
_VIRT = (
    "QEMU_ARCH = riscv32\nQEMU_MACHINE = virt\nLDSCRIPT = mcu/rv32/virt.ld\n"
    "RV32_ARCH = rv32imac\nAFLAGS += -misa-spec=2.2\nCFLAGS += -DQEMU_SOC_VIRT\n"
    "SRC_BOARD_O += shared/runtime/gchelper_native.o shared/runtime/gchelper_rv32i.o\n"
)
_NAME = "CFLAGS += -DMICROPY_HW_MCU_NAME='\"{cpu}\"'\n"
# The floating-point unit is off after a reset.
_FPU = "    #if defined(__ARM_FP)\n    *(volatile unsigned int *)0xE000ED88 |= 0xF << 20;\n    #endif\n"


@dataclass(frozen=True)
class Board:
    """An emulated board.

    Attributes:
        arch: mpy-cross's name for the instruction set.
        command: The command line of QEMU, without the kernel.
        payload: The address of the payload.
        clock: Instructions (nanoseconds of virtual time) per step of the timer: SysTick, which counts down, or the low
            word of RISC-V's timer."""

    name: str
    title: str
    arch: str
    make: str
    heap: int
    command: tuple[str, ...]
    payload: int
    clock: float
    counts_down: bool = True

    @property
    def recipe(self) -> str:
        """The board's file for MicroPython's makefile."""
        return self.make + _NAME.format(cpu=self.title)

    @property
    def elf(self) -> Path:
        """The firmware, whether it is there or not."""
        fingerprint = hashlib.sha256(f"{self.recipe}{self.heap}{_FPU}".encode()).hexdigest()
        return FOLDER / f"{self.name}-{fingerprint[:12]}.elf"


_QEMU_ARM = ("qemu-system-arm", "-machine")
BOARDS = {
    board.name: board
    for board in (
        Board(
            "m7",
            "Cortex-M7",
            "armv7emdp",
            _MPS2.format(machine="mps2-an500", cpu="cortex-m7", fpu="fpv5-d16"),
            2_000_000,
            (*_QEMU_ARM, "mps2-an500"),
            0x6000_0000,
            40,
        ),
        Board(
            "m4",
            "Cortex-M4",
            "armv7emsp",
            _MPS2.format(machine="mps2-an386", cpu="cortex-m4", fpu="fpv4-sp-d16"),
            2_000_000,
            (*_QEMU_ARM, "mps2-an386"),
            0x2100_0000,
            40,
        ),
        Board(
            "m0",
            "Cortex-M0",
            "armv6m",
            _MICROBIT,
            2_000_000,
            (
                *_QEMU_ARM,
                "microbit",
                "-global",
                "nrf51-soc.flash-size=1048576",
                "-global",
                "nrf51-soc.sram-size=33554432",
            ),
            0x2080_0000,
            62.5,
        ),
        Board(
            "rv32",
            "RV32IMAC",
            "rv32imc",
            _VIRT,
            1_500_000,
            ("qemu-system-riscv32", "-bios", "none", "-machine", "virt"),
            0x8200_0000,
            100,
            False,
        ),
    )
}

FLOATS_IN_WORDS = replace(BOARDS["m4"], name="m4c", make=BOARDS["m4"].make + "CFLAGS += -DMICROPY_OBJ_REPR=2\n")
EVERY = BOARDS | {FLOATS_IN_WORDS.name: FLOATS_IN_WORDS}
"""Those that benchmarks take, and the one for what depends on how objects are stored."""

FAMILIES = {name: board for name, board in BOARDS.items() if name != "m4"}
"""One board for each family of instructions: an M4 runs the machine code of an M7."""
KINDS = FAMILIES | {FLOATS_IN_WORDS.name: FLOATS_IN_WORDS}
"""One for each family and for each way to store objects."""

KEPT = 4
"""How many builds with frozen modules the cache keeps of a board."""


def missing() -> list[Board]:
    """The boards whose firmware is not in the cache."""
    return [board for board in EVERY.values() if not board.elf.exists()]


def build(board: Board) -> None:
    """Put a board's firmware into the cache.

    Raises:
        FetchError: The source could not be fetched.
        StepError: It did not compile.
    """
    _make(board, "", board.elf)


def frozen(board: Board, files: Mapping[str, bytes]) -> Path:
    """Firmware of a board with modules in it, from the cache if it was built before.

    Args:
        files: A manifest.py and the .mpy files that it names.

    Raises:
        FetchError: The source could not be fetched.
        StepError: It did not compile.
    """
    digest = hashlib.sha256(board.elf.name.encode())
    for name, data in sorted(files.items()):
        digest.update(f"{name} {len(data)} ".encode() + data)
    elf = FOLDER / f"frozen-{board.name}-{digest.hexdigest()[:12]}.elf"
    with install_lock("firmware"):
        if not elf.exists():
            with tempfile.TemporaryDirectory() as folder:
                for name, data in files.items():
                    Path(folder, name).write_bytes(data)
                _make(board, f"{folder}/manifest.py", elf)
        made = sorted(FOLDER.glob(f"frozen-{board.name}-*.elf"), key=lambda path: path.stat().st_mtime)
        for old in made[:-KEPT]:
            old.unlink()
    return elf


def _make(board: Board, manifest: str, elf: Path) -> None:
    """Build `elf` with the modules of a manifest, if there is one. What was compiled is kept: with other modules it is
    only linked again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    source = next(FOLDER.glob("micropython-*"), None) or fetch.fetch_source(FOLDER)
    port = source / "ports" / "qemu"
    startup = port / "mcu" / "arm" / "startup.c"
    text = startup.read_text(encoding="utf-8")
    if _FPU not in text:
        startup.write_text(
            text.replace("    mp_semihosting_init();\n", _FPU + "    mp_semihosting_init();\n", 1), encoding="utf-8"
        )
    home = port / "boards" / f"EMBERLET_{board.name.upper()}"
    home.mkdir(exist_ok=True)
    (home / "mpconfigboard.mk").write_text(board.recipe, encoding="utf-8")
    layout = (port / "mcu" / "arm" / "nrf51.ld").read_text(encoding="utf-8")
    (home / "nrf51.ld").write_text(layout.replace("LENGTH = 256K", "LENGTH = 4096K"), encoding="utf-8")
    nothing = FOLDER / "manifest.py"
    nothing.touch()
    out = port / f"build-{board.elf.stem}"
    (out / "frozen_content.c").unlink(missing_ok=True)
    command = [
        "make",
        f"-j{os.cpu_count() or 1}",
        f"BOARD={home.name}",
        f"BUILD={out.name}",
        f"FROZEN_MANIFEST={manifest or nothing}",
        f"MICROPY_HEAP_SIZE={board.heap}",
        f"MPY_LIB_DIR={source}",  # a folder with a README.md; no manifest here needs the library
        f"MICROPY_MPYCROSS={sys.executable}",  # a file that exists; manifests here name compiled modules only
    ]
    # MicroPython's tools write what Python warns of into the C file of frozen modules.
    run(command, cwd=port, env={"PYTHONWARNDEFAULTENCODING": ""})
    partial = elf.with_suffix(f".{os.getpid()}")
    shutil.copy(out / "firmware.elf", partial)
    partial.replace(elf)


def build_missing() -> None:
    """Put every board's firmware into the cache.

    Raises:
        FetchError: The source could not be fetched.
        StepError: It did not compile.
    """
    with install_lock("firmware"):
        for board in missing():
            build(board)
