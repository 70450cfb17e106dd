"""What is written for layers drawn at random: each kernel's size and a digest of its text, for every instruction set.

A kernel that is slower or larger still computes the same, so no other test would notice. `UPDATE_SNAPSHOTS=1 pytest` on
this file records what is written now; the difference shows which layers and instruction sets a change concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from emberlet.micro.builder.assembly.registry import FAMILIES
from emberlet.micro.builder.cost import cost
from emberlet.micro.builder.emit.kernels import assembly_kernels, kernels_source
from emberlet.micro.builder.program import Program
from support.microcontrollers import edge_float_layers, edge_layers
from support.microcontrollers.described import digest
from support.microcontrollers.float_layers import float_cases, float_program, function_cases
from support.recorded import assert_recorded

from tools.microcontrollers.random_layers import Case, assembly_cases, cases, large_cases, program_of, word_cases

RECORDED = Path(__file__).with_name("recorded_kernels.txt")
ARCHITECTURES = ("armv6m", "armv7em", "rv32imc", "xtensa", "xtensawin")

DRAWS: dict[str, Callable[[], Iterator[Case]]] = {
    "every kind": lambda: cases(31, 192),
    "large": lambda: iter(large_cases()),
    "words": lambda: word_cases(32, 60),
    "assembly": lambda: assembly_cases(33, 144),
    "floats": lambda: iter([*float_cases(34, 104), *function_cases(), *edge_float_layers.float_layers()]),
    **edge_layers.BYTES,
}


def described(program: Program, dialects: tuple[str, ...], architectures: tuple[str, ...] = ()) -> list[str]:
    """Sizes of the constants; lines and digest of the kernels in each dialect; the estimated work."""
    layer = program.steps[-1].layer
    constants = "" if program.is_float else f" {digest(program.weight_bytes + program.word_bytes)}"
    what = [f"constants {program.weights.size} {len(program.words)}{constants}"]
    for dialect in dialects:
        text = kernels_source(program, dialect)
        what.append(f"{dialect} {text.count(chr(10))} {digest(text)}")
    flags = " ".join(name for name in ("in_place", "takes_borders", "remembers") if getattr(layer, name))
    what.append(flags or "plain")
    what.append(f"room {layer.scratch} {layer.state}, work {cost(program, {}, 'file', 0).work:g}")
    lines = [f"{layer.name}: {'; '.join(what)}"]
    for arch in architectures:
        kernels = assembly_kernels(program, arch)
        if kernels:
            codes = {name: k.assembled().code() for name, k in kernels.items()}
            sizes = ", ".join(f"{name} {len(codes[name])} (stack {k.frame.size})" for name, k in kernels.items())
            whole = digest(b"".join(codes.values()) + kernels_source(program, "viper", arch).encode())
            lines.append(f"  {FAMILIES[arch]}: {sizes}; {whole}; work {cost(program, {}, 'file', 0, arch).work:g}")
    return lines


@pytest.mark.parametrize("what", DRAWS)
def test_what_is_written_for_a_layer(what: str) -> None:
    lines: list[str] = []
    for case in DRAWS[what]():
        if what == "floats":
            lines += described(float_program([case])[0], ("float32",))
        else:
            architectures = ARCHITECTURES[:2] if what in edge_layers.BYTES else ARCHITECTURES
            lines += described(program_of([case])[0], ("viper", "bytecode"), architectures)
    assert_recorded(RECORDED, what, "\n".join(lines))
