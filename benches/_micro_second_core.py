"""How much of an inference would run on an RP2040's second core, from instructions on an emulated Cortex-M0."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from emberlet.micro.builder.assembly.driver.second import FORK, JOIN, KERNEL
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.emit.kernels import driver_table
from emberlet.micro.builder.program import Program
from emberlet.micro.builder.quantization.reference import quantize

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.networks import NETWORKS, samples
from tools.microcontrollers.running import counted

_PARTS = """
import model, model_kernels as k
with open("/rom/input", "rb") as f:
    model.input[:] = f.read()
def spent(start, end):
    before = count()
    k.drive(k.a, k.w, k.t, k.l, start, end, 0)
    return count() - before
none, place = min([spent(0, 0) for _ in range(3)]), 0
for start, end in {parts}:
    spent(place, start)
    print(spent(start, end) - none)
    place = end
"""

HEAD = """
## An RP2040's second core

The networks of MLPerf Tiny, built with `--second-core`. Instructions on an emulated Cortex-M0: of an inference on one
core, and of the first core while the second one runs its half of each shared layer, or of that half where it takes
longer. What the two cores cost each other by reading the same memory is not counted, and nothing has run on an RP2040.

| network | calls shared | on one core | on two | faster |
|---|---:|---:|---:|---:|
"""


def _halves(program: Program, arch: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """For each shared call the parts of the table with the second core's half and with the first one's."""
    table = driver_table(program, arch)
    assert table
    found, place, marks = [], 0, list[int]()
    for call in table.calls(0, 1 << 30):
        before, place = place, place + 4 * len(call.entry(0))
        if call.kernel is not KERNEL:
            continue
        if call.numbers["what"] == FORK:
            marks = [place]
        elif call.numbers["what"] == JOIN:
            found.append(((marks[0], marks[1]), (marks[2], before)))
        else:
            marks += [before, place]
    return found


def second_core() -> dict[str, Any]:
    """Networks -> shared calls, and instructions on one core and on two."""
    board, out = EmulatedBoard("m0"), dict[str, Any]()
    for name, make in NETWORKS.items():
        graph = make()
        given, options = samples(graph), Options("model", "romfs", [BOARDS["rp2"]], method="minmax")
        one, two = build(graph, options, given), build(graph, replace(options, second_core=True), given)
        alone, both = (counted(board, built, given["x"][0]).instructions for built in (one, two))
        parts = _halves(two.program, board.arch)
        script = _PARTS.format(parts=[part for halves in parts for part in halves])
        port = two.program.inputs[0]
        files = {**two.deployed[board.arch], "input": quantize(given["x"][0], port.scale, port.zero).tobytes()}
        spent = [int(line) for line in board.run(script, files).split()]
        together = both - sum(min(halves) for halves in zip(spent[::2], spent[1::2], strict=True))
        out[name] = {"calls": len(parts), "one": alone, "two": together}
        print(f"{name}: {out[name]}", flush=True)
    return out


def second_core_text(rows: dict[str, Any]) -> str:
    """The section of the page."""
    lines = [
        f"| {name} | {e['calls']} | {e['one']:,} | {e['two']:,} | {e['one'] / e['two']:.2f}× |"
        for name, e in rows.items()
    ]
    return HEAD + "\n".join(lines) + "\n"
