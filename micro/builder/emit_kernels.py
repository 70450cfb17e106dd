"""The module of a model's kernels, and `run`, which calls them in order."""

from __future__ import annotations

import re

from .functions import FROM_MATH
from .kernels.recurrent import HIDDEN, MIDDLE
from .kernels.writer import Writer
from .program import Program

_PREPARE = {
    "viper": """\
def prepare(W, T):
    import uctypes

    return W, T if uctypes.addressof(T) & 3 == 0 else bytearray(T)
""",
    "bytecode": """\
def prepare(W, T):
    from array import array

    return W, array("I", bytes(T))
""",
    "float32": """\
def prepare(W, T):
    import uctypes

    address = uctypes.addressof(W)
    order = uctypes.LITTLE_ENDIAN if address & 3 else uctypes.NATIVE
    floats = {"w": (uctypes.ARRAY | 0, uctypes.FLOAT32 | len(W) // 4)}
    return uctypes.struct(address, floats, order).w, T
""",
}


def kernels_source(program: Program, dialect: str) -> str:
    """The source of `run(A, W, T)` and of the kernels it needs; layers with equal kernels share one.

    dialect: "viper", "bytecode" or "float32", as in kernels/writer.py.

    A: the arena, bytearray (float32: array of floats); W: weights; T: words (viper: aligned bytes; else array 'I').
    `reset(A)` sets what the model remembers to zero. `prepare(W, T)` turns the bytes of both into what `run` takes, in
    place where they are aligned.
    """
    names: dict[str, str] = {}
    functions: list[str] = []
    calls: list[str] = []

    def name(writer: Writer) -> str:
        body = writer.source("_")
        if body not in names:
            names[body] = f"{step.layer.kind}_{len(names)}"
            functions.append(writer.source(names[body]))
        return names[body]

    for step in program.steps:
        calls += step.layer.calls(name, dialect, step.inputs, step.output, step.places)
    text = "\n\n".join(functions)
    run = "def run(A, W, T):\n" + ("\n".join("    " + line for line in calls) or "    pass") + "\n"
    return "\n\n".join([_imports(text, dialect), text, run, _reset(program), _PREPARE[dialect]]).lstrip("\n")


def _imports(text: str, dialect: str) -> str:
    if dialect == "viper":
        return "import micropython\n"
    used = [name for name in FROM_MATH if re.search(rf"\b{name}\(", text)]
    return f"from math import {', '.join(used)}\n" if used else ""


def _reset(program: Program) -> str:
    lines = ["def reset(A):"]
    for place, size in program.states:
        if program.is_float:
            lines += [f"    for i in range({place}, {place + size}):", "        A[i] = 0.0"]
            continue
        middle = place + size
        lines += [f"    for i in range({place}, {middle}):", f"        A[i] = {HIDDEN}"]
        lines += [f"    for i in range({middle}, {place + 3 * size}, 2):", "        A[i] = 0"]
        lines += [f"        A[i + 1] = {MIDDLE >> 8}"]
    return "\n".join(lines if program.states else [*lines, "    pass"]) + "\n"
