"""The cycles of a Cortex-M0+ for what an emulated Cortex-M0 executes: each instruction's, as Arm publishes them.

Memory has no wait states, and the multiplier takes one cycle, as on an RP2040. Counted is machine code that MicroPython
has loaded into memory. MicroPython itself lies in an RP2040's flash, and takes longer where the cache misses.

Source: Cortex-M0+ Technical Reference Manual (DDI 0484C), table 3.1.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tools.boards_in_qemu import EmulatedBoard

MEMORY = "0x20000000+0x800000"
"""The memory of the emulated board below its payload."""


def cycles(opcode: int, *, taken: bool) -> int:
    """Those of an instruction, from its first 16 bits. taken: of a conditional branch."""
    group, listed = opcode >> 12, (opcode & 0xFF).bit_count()
    if opcode >> 11 >= 0x1D:
        return 3  # BL, MRS, MSR, DMB
    if opcode & 0xFE00 == 0xB400:
        return 1 + (opcode & 0x1FF).bit_count()  # PUSH
    if opcode & 0xFE00 == 0xBC00:
        return 4 + listed if opcode & 0x100 else 1 + listed  # POP, with PC in the list or without
    if group == 0xC:
        return 1 + listed  # LDM, STM
    if group == 0xD:
        return 2 if taken else 1
    jumps = opcode >> 11 == 0x1C or opcode & 0xFF00 == 0x4700 or opcode & 0xFD87 == 0x4487
    return 2 if jumps or 5 <= group <= 9 or opcode >> 11 == 9 else 1  # loads and stores


class Executed(Counter[tuple[int, int]]):
    """How often an instruction was followed by which: addresses. opcodes: of addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.opcodes: dict[int, int] = {}

    def read(self, log: Path) -> None:
        """QEMU's log, while it is written."""
        before, opcodes = 0, self.opcodes
        with log.open("rb") as lines:
            for line in lines:
                if line.startswith(b"Trace"):
                    address = int(line.split(b"/", 2)[1], 16)
                    self[before, address] += 1
                    before = address
                elif line.startswith(b"0x"):
                    address_text, code = line.split(None, 2)[:2]
                    opcodes[int(address_text[:-1], 16)] = int(code[:4], 16)

    def totals(self) -> tuple[int, int]:
        """Instructions and cycles."""
        instructions = spent = 0
        for (address, following), times in self.items():
            if address in self.opcodes:
                instructions += times
                spent += times * cycles(self.opcodes[address], taken=following != address + 2)
        return instructions, spent


def executed(script: str, files: Mapping[str, bytes]) -> Executed:
    """What the emulated Cortex-M0 executes of the code in its memory, from its start on: a model's kernels."""
    found = Executed()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        os.mkfifo(log)
        reader = threading.Thread(target=found.read, args=(log,), daemon=True)
        reader.start()
        options = ("-singlestep", "-d", "in_asm,exec,nochain", "-dfilter", MEMORY, "-D", str(log))
        EmulatedBoard("m0").run(script, files, options=options)
        reader.join()
    return found


def spent(script: str, files: Mapping[str, bytes]) -> tuple[int, int]:
    """Instructions and cycles of a script's `turn()` in memory: those of two calls less those of one."""
    script += "\nfor _ in range({}):\n    turn()\n"
    once, twice = (executed(script.format(count), files).totals() for count in (1, 2))
    return twice[0] - once[0], twice[1] - once[1]
