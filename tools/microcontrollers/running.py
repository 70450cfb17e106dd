"""Running programs and modules on MicroPython, and reading back what they left in the arena."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
from emberlet.micro.builder.compile import compile_mpy
from emberlet.micro.builder.emit_kernels import kernels_source, machine_code
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.program import Program

from tools.micropython import Port

_RUN = """
import sys
sys.path.insert(0, "{folder}")
import kernels


def read(name):
    with open("{folder}/" + name, "rb") as f:
        return f.read()


W, T = kernels.prepare(read("weights"), read("words"))
A = bytearray(read("arena"))
{floats}
import gc

gc.collect()
gc.disable()
allocated = gc.mem_alloc()
kernels.run(A, W, T)
allocated = gc.mem_alloc() - allocated
gc.enable()
{check}
import binascii

print(str(binascii.b2a_base64(A), "ascii"))
"""

_FLOATS = "from array import array\nA = array('f', A)\n"


def architecture(port: Port) -> str:
    """mpy-cross's name of the instruction set a port runs machine code of."""
    return "armv7emdp" if "armhf" in port.name else "x64"


def run_program(
    port: Port,
    program: Program,
    dialect: str,
    arena: bytes,
    folder: Path,
    precompiled: bool = True,
    check: str = "",
    assembly: str = "",
) -> Array:
    """The arena after the program ran in an arena that held `arena`: bytes, or floats where the program is float32.

    check: lines that run afterwards; `allocated` is how many bytes of the heap the program took. assembly: the
    instruction set, as mpy-cross calls it, whose assembly kernels are used.
    """
    source = kernels_source(program, dialect, assembly)
    for old in folder.glob("kernels.*"):
        old.unlink()
    if precompiled:
        arch = (assembly or architecture(port)) if dialect == "viper" else None
        code = machine_code(program, assembly)
        (folder / "kernels.mpy").write_bytes(compile_mpy(source, "kernels", arch, code=code))
    else:
        (folder / "kernels.py").write_text(source, encoding="utf-8")
    (folder / "weights").write_bytes(program.weight_bytes)
    (folder / "words").write_bytes(program.word_bytes)
    (folder / "arena").write_bytes(arena)
    script = _RUN.format(folder=folder, floats=_FLOATS if program.is_float else "", check=check)
    files = [folder] if "Wasm" in port.name else []
    result = port.run(script, heap="64M", micropypath=[], files=files, timeout=300).check()
    return np.frombuffer(base64.b64decode(result.stdout), np.float32 if program.is_float else np.uint8)


def inputs_in_arena(program: Program, values: list[Array]) -> bytes:
    """An arena with the inputs in place, everything else garbage."""
    arena = np.full(program.arena, np.nan if program.is_float else 0xA5, np.float32 if program.is_float else np.uint8)
    for port, x in zip(program.inputs, values, strict=True):
        arena[port.place : port.place + port.size] = x.reshape(-1)
    return arena.tobytes()


def outputs_of(program: Program, arena: Array) -> list[Array]:
    """The outputs in an arena."""
    return [arena[p.place : p.place + p.size].reshape(p.shape) for p in program.outputs]
