"""Generates micro's kernels in assembly, as functions that MicroPython's inline assembler takes on every Cortex-M.

The instructions are numbers: their names would take ten times the memory while a board compiles them.
`python3 dev.py check` compares them, `check --fix` writes them.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping

from emberlet.micro.builder.assembly import mfcc
from emberlet.micro.builder.assembly.thumb import Thumb

from ..paths import ROOT
from . import keep

FILE = ROOT / "micro" / "mfcc_kernels_thumb.py"

_HEAD = '''\
"""The kernels of mfcc_kernels_viper.py in assembly, for every Cortex-M; `check --fix` makes them from
builder/assembly/mfcc, which has the instructions by name. The argument is the address of a block of words."""

# ruff: noqa
# fmt: off
# mypy: ignore-errors

import micropython


@micropython.asm_thumb
def address(r0):
    data(2, 0x46C0)
'''

_FUNCTION = """

@micropython.asm_thumb
def {name}(r0):
{data}
"""


def text(kernels: Mapping[str, Callable[[], Thumb]] = mfcc.KERNELS) -> str:
    """The module."""
    return _HEAD + "".join(_FUNCTION.format(name=name, data=_data(make().code())) for name, make in kernels.items())


def _data(code: bytes) -> str:
    halves = [code[k] | code[k + 1] << 8 for k in range(0, len(code), 2)]
    return textwrap.fill(
        "data(2, " + ", ".join(map(str, halves)) + ")", 118, initial_indent="    ", subsequent_indent="        "
    )


if __name__ == "__main__":
    sys.exit(keep(FILE, text(), sys.argv[1:]))
