"""Runs programs and modules on MicroPython, and reads the arena afterwards."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from emberlet.micro.builder.build import BuildResult
from emberlet.micro.builder.compile import compile_mpy
from emberlet.micro.builder.emit.inputs import integers
from emberlet.micro.builder.emit.kernels import kernels_source, machine_code
from emberlet.micro.builder.emit.model import model_source
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.program import Program
from emberlet.micro.builder.quantization.reference import quantize

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.random_networks import Batch
from tools.micropython import Port

_RUN = """
import sys
sys.path.insert(0, "{folder}")
{before}
import kernels


def read(name):
    with open("{folder}/" + name, "rb") as f:
        return f.read()


W, T = kernels.prepare(read("weights"), read("words"))
A = bytearray(read("arena"))
{floats}
import gc

run = kernels.bind(A, W, T)
allocated = 0  # a new name may make the module's dict grow
gc.collect()
gc.disable()
allocated = gc.mem_alloc()
run()
allocated = gc.mem_alloc() - allocated
gc.enable()
{check}
import binascii

print(str(binascii.b2a_base64(A), "ascii"))
"""

_FLOATS = "from array import array\nA = array('f', A)\n"


def architecture(port: Port) -> str:
    """mpy-cross's name of a port's instruction set."""
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
    before: str = "",
) -> Array:
    """The arena after the program ran in an arena that held `arena`: bytes, or floats where the program is float32.

    check: lines that run afterwards; `allocated` is how many bytes of the heap the program took. assembly: the
    instruction set, as mpy-cross calls it, whose assembly kernels are used. before: lines that run before the import.
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
    floats = _FLOATS if program.is_float else ""
    script = _RUN.format(folder=folder, floats=floats, check=check, before=before)
    files = [folder] if "Wasm" in port.name else []
    result = port.run(script, heap="64M", micropypath=[], files=files, timeout=300).check()
    return np.frombuffer(base64.b64decode(result.stdout), np.float32 if program.is_float else np.uint8)


def module_files(program: Program, arch: str) -> dict[str, bytes]:
    """The files of a program without weights, with assembly kernels for an instruction set."""
    name = program.name
    kernels, code = kernels_source(program, "viper", arch), machine_code(program, arch)
    files = {f"{name}_kernels.mpy": compile_mpy(kernels, f"{name}_kernels", arch, code=code)}
    for key, text in ((f"{name}_weights", "W = T = b''\n"), (name, model_source(program))):
        files[f"{key}.mpy"] = compile_mpy(text, key, arch)
    return files


def inputs_in_arena(program: Program, values: list[Array]) -> bytes:
    """An arena with the inputs in place, everything else garbage."""
    arena = np.full(program.arena, np.nan if program.is_float else 0xA5, np.float32 if program.is_float else np.uint8)
    for port, x in zip(program.inputs, values, strict=True):
        arena[port.place : port.place + port.size] = x.reshape(-1)
    return arena.tobytes()


def outputs_of(program: Program, arena: Array) -> list[Array]:
    """The outputs in an arena."""
    return [arena[p.place : p.place + p.size].reshape(p.shape) for p in program.outputs]


_ON_A_BOARD = """
import struct, kernels
W, T = kernels.prepare(memoryview(open("/rom/weights", "rb")), memoryview(open("/rom/words", "rb")))
with open("/rom/arena", "rb") as f:
    A = bytearray(f.read())
kernels.bind(A, W, T)()
due = memoryview(open("/rom/due", "rb"))
right = memoryview(open("/rom/right", "rb"))
arena = memoryview(A)
place = 0
for k in range(len(due) // 8):
    at, size = struct.unpack("<II", due[8 * k : 8 * k + 8])
    if arena[at : at + size] != right[place : place + size]:
        print(k, end=" ")
    place += size
"""


def wrong_on_board(
    board: EmulatedBoard, program: Program, arena: bytes, due: list[tuple[int, Array]], assembly: bool = True
) -> list[int]:
    """The indices of the outputs that are wrong after an emulated board has run a program."""
    own = board.arch if assembly else ""
    source, code = kernels_source(program, "viper", own), machine_code(program, own)
    files = {
        "kernels.mpy": compile_mpy(source, "kernels", board.arch, code=code),
        "weights": program.weight_bytes,
        "words": program.word_bytes,
        "arena": arena,
        "due": b"".join(struct.pack("<II", at, y.size) for at, y in due),
        "right": b"".join(y.tobytes() for _, y in due),
    }
    return [int(k) for k in board.run(_ON_A_BOARD, files).split()]


_BATCH = """
import struct, uctypes, kernels
{head}
with open("/rom/arena", "rb") as f:
    A = bytearray(f.read())
{floats}
run = kernels.bind(A, W, T)
arena = memoryview(uctypes.bytearray_at(uctypes.addressof(A), {size}))


def views(name):
    data = memoryview(open("/rom/" + name, "rb"))
    pairs = [struct.unpack("<II", data[8 * k : 8 * k + 8]) for k in range(len(data) // 8)]
    return [arena[at : at + size] for at, size in pairs]


inputs, outputs = views("inputs"), views("outputs")
given, due = memoryview(open("/rom/given", "rb")), memoryview(open("/rom/due", "rb"))
at = to = 0
for call in range({calls}):
    for x in inputs:
        x[:] = given[at : at + len(x)]
        at += len(x)
    run()
    for k, y in enumerate(outputs):
        if y != due[to : to + len(y)]:
            print(k, end=" ")
        to += len(y)
"""


def wrong_of_batch(board: EmulatedBoard, batch: Batch) -> list[int]:
    """The networks of a batch that give wrong bytes on an emulated board."""
    program, own = batch.program, "" if batch.program.is_float else board.arch
    source = kernels_source(program, "float32" if program.is_float else "viper", own)
    prepared = 'W, T = kernels.prepare(memoryview(open("/rom/weights", "rb")), memoryview(open("/rom/words", "rb")))'
    files = {
        "kernels.mpy": compile_mpy(source, "kernels", own or None, code=machine_code(program, own)),
        "weights": program.weight_bytes,
        "words": program.word_bytes,
        "arena": batch.arena,
        "inputs": b"".join(struct.pack("<II", *place) for place in batch.inputs),
        "outputs": b"".join(struct.pack("<II", *place) for place in batch.outputs),
        "given": b"".join(batch.calls),
        "due": b"".join(batch.due),
    }
    floats = _FLOATS if program.is_float else ""
    script = _BATCH.format(head=prepared, floats=floats, size=len(batch.arena), calls=len(batch.calls))
    return sorted({batch.networks[int(k)] for k in board.run(script, files).split()})


@dataclass(frozen=True)
class Counted:
    """An inference on an emulated board: instructions, bytes of the heap, and whether it is NumPy's."""

    instructions: int
    heap: int
    exact: bool


_COUNTED = """
import gc
import {name} as model
with open("/rom/input", "rb") as f:
    data = f.read()
model.input[:] = data
model.run()
model.input[:] = data
gc.collect()
gc.disable()
before = after = start = end = 0
before = gc.mem_alloc()
start = count()
model.run()
end = count()
after = gc.mem_alloc()
spent = gc.mem_alloc()
count()
count()
spent = gc.mem_alloc() - spent
print(end - start, after - before - spent, *model.output)
"""


def counted(board: EmulatedBoard, built: BuildResult, sample: Array) -> Counted:
    """Run a build for a board of its instruction set, weights in a ROMFS or frozen, on a sample of its first input."""
    program, graph = built.program, built.graph
    port = program.inputs[0]
    x = quantize(sample, port.scale, port.zero)
    expected = graph.run({graph.inputs[0]: x})[graph.outputs[0]].reshape(-1)
    files = {} if board.has_frozen else built.deployed[board.arch]
    out = board.run(_COUNTED.format(name=program.name), {**files, "input": x.tobytes()})
    instructions, heap, *found = map(int, out.split())
    return Counted(instructions, heap, found == expected.tolist())


_NETWORKS = """
import gc
before = 0
for name in {names!r}:
    model = __import__(name)
    with open("/rom/" + name + ".in", "rb") as f:
        data = f.read()
    with open("/rom/" + name + ".due", "rb") as f:
        due = f.read()
    size, out, taken = len(model.input), len(model.output), 0
    for k in range(len(data) // size):
        model.input[:] = data[k * size : (k + 1) * size]
        gc.collect()
        gc.disable()
        before = gc.mem_alloc()
        model.run()
        taken += gc.mem_alloc() - before
        gc.enable()
        if bytes(model.output) != due[k * out : (k + 1) * out]:
            print(name, "is wrong for sample", k)
    if taken:
        print(name, "takes", taken, "bytes of the heap")
"""


def complaints(board: EmulatedBoard, networks: Mapping[str, BuildResult], samples: Mapping[str, list[Array]]) -> str:
    """Run builds with weights in a ROMFS on an emulated board, each on one sample after the other (bytes for the first
    input). Returns the problems, or "" if every output is NumPy's and no run takes memory. networks: by the model's
    name."""
    files: dict[str, bytes] = {}
    for name, built in networks.items():
        graph, states = built.graph, dict[str, Any]()
        answers = [graph.run({graph.inputs[0]: x}, states)[graph.outputs[0]] for x in samples[name]]
        files |= built.deployed[board.arch]
        files[f"{name}.in"] = b"".join(x.tobytes() for x in samples[name])
        files[f"{name}.due"] = b"".join(y.astype(np.uint8).tobytes() for y in answers)
    return board.run(_NETWORKS.format(names=list(networks)), files)


_STACK = """
import machine, micropython, uctypes
import {name} as model


def taken(function, *arguments):
    start = machine.mem32[0] - micropython.stack_use() - 400
    below = uctypes.bytearray_at(start - 8000, 8000)
    for i in range(8000):
        below[i] = 0xA5
    before = micropython.stack_use()
    function(*arguments)
    i = 0
    while below[i] == 0xA5:
        i += 1
    return machine.mem32[0] - (start - 8000 + i) - before


sizes = [len(x) if hasattr(model, "input") else x[1] for x in model.inputs]
numbers = [[0.5] * n for n in sizes]
model.predict(*numbers)
print(taken(model.predict, *numbers))
"""


def stack_used(board: EmulatedBoard, built: BuildResult) -> int:
    """Bytes of the stack that `predict` takes on an emulated Cortex-M, whose first word is where its stack begins."""
    arch = board.arch if board.arch in built.deployed else ""
    return int(board.run(_STACK.format(name=built.program.name), built.deployed[arch]))


def numbers_for(program: Program) -> str:
    """What to give `predict`, in MicroPython: bytes for inputs of bytes, lists of a few numbers, else arrays of
    floats."""
    texts = []
    for which, port in enumerate(program.inputs):
        count = port.size // port.width
        if which in integers(program):
            texts.append(f"bytes({count})")
        else:
            is_list = port.columns is not None or port.cuts is not None
            texts.append(f"[0.5] * {count}" if is_list else f"array('f', [0.5] * {count})")
    return f"({', '.join(texts)},)"


_PREDICTED = """
import gc
from array import array
import {name} as model

numbers = {numbers}
model.predict(*numbers)
model.predict(*numbers)
gc.collect()
gc.disable()


def measured(count, call, *numbers):
    before = count()
    start = count()
    call(*numbers)
    return count() - start - (start - before)


def sixteen(run):
CALLS


def sixteen_of(predict, numbers):
GIVEN


def several(count, call, *numbers):  # a board's own timer may interrupt one of them
    return min([measured(count, call, *numbers) for _ in range(3)])


run = several(count, model.run)
if run < 100000:  # beside which the timer's steps, and what reading it takes, weigh
    run = several(count, sixteen, model.run) // 16
whole = several(count, model.predict, *numbers)
if whole < 100000 and len(numbers) == 1:  # a call with a star takes more than one that names its argument
    whole = several(count, sixteen_of, model.predict, numbers[0]) // 16
print(run, whole)
""".replace("CALLS", "\n".join(["    run()"] * 16)).replace("GIVEN", "\n".join(["    predict(numbers)"] * 16))


def counted_in_whole(board: EmulatedBoard, built: BuildResult) -> tuple[int, int]:
    """Instructions of `run`, and of `predict` with the conversion of numbers, on an emulated board."""
    name, files = built.program.name, built.deployed[board.arch]
    run, whole = board.run(_PREDICTED.format(name=name, numbers=numbers_for(built.program)), files).split()
    return int(run), int(whole)
