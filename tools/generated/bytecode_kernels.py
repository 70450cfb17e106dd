"""Generates micro's bytecode kernels from the viper ones: the same code without types and machine code.

`python3 dev.py check` compares them, `check --fix` writes them.
"""

from __future__ import annotations

import re

from ..paths import ROOT

VIPER = "_kernels_viper.py"
BYTECODE = "_kernels_bytecode.py"


def bytecode_of(viper: str, name: str) -> str:
    """The text of NAME_kernels_bytecode.py, from that of NAME_kernels_viper.py."""
    machine = f", in machine code. {name}{BYTECODE} is the same for every port."
    text = viper.replace(machine, f", for every port; `check --fix` makes them from {name}{VIPER}.", 1)
    text = re.sub(r"^(# ruff: .*|# mypy: .*|import micropython|@micropython\.viper)\n", "", text, flags=re.M)
    text = re.sub(r"^def [^)]*\).*:$", lambda found: _without_types(found[0]), text, flags=re.M)
    text = re.sub(r"ptr(8|16|32)\(int\((\w+)\) \+ (.+)\)$", _slice, text, flags=re.M)
    head, *functions = re.split(r"\n+(?=def )", text)
    head = re.sub(r"\n{2,}", "\n\n", head).rstrip()
    return head + "".join("\n\n\n" + function.rstrip() for function in functions) + "\n"


def _slice(pointer: re.Match[str]) -> str:
    """What a pointer by an offset in bytes is in bytecode, where the base has to be a memoryview."""
    bits, base, offset = pointer[1], pointer[2], pointer[3]
    shift = {"8": 0, "16": 1, "32": 2}[bits]
    if offset.isdigit():
        return f"{base}[{int(offset) >> shift}:]"
    return f"{base}[{offset}{f' >> {shift}' if shift else ''} :]"


def _without_types(signature: str) -> str:
    """It fits a line."""
    line = re.sub(r",?\n\)", ")", re.sub(r"\n    +", " ", signature)).replace("( ", "(")
    return re.sub(r": (ptr8|ptr16|ptr32|int|uint|bool|object)\b|(?<=\)) -> \w+(?=:$)", "", line)


def drifted(fix: bool) -> list[str]:
    """The bytecode kernels that do not match the viper ones; with `fix` they are rewritten."""
    found = []
    for viper in sorted((ROOT / "micro").glob("*" + VIPER)):
        name = viper.name.removesuffix(VIPER)
        bytecode = viper.with_name(name + BYTECODE)
        wanted = bytecode_of(viper.read_text(encoding="utf-8"), name)
        if not bytecode.exists() or bytecode.read_text(encoding="utf-8") != wanted:
            found.append(bytecode.name)
            if fix:
                bytecode.write_text(wanted, encoding="utf-8")
    return found
