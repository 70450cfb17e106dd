"""Runs the kernels of a program in this process: their bytecode dialect is plain Python."""

from __future__ import annotations

import ast
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from emberlet.micro.builder.emit.kernels import kernels_source
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.program import Program

SMALL = 1 << 30
"""MicroPython on 32-bit processors allocates an object for an integer that is not below this."""


def small(v: Any) -> Any:
    assert not isinstance(v, int) or -SMALL <= v < SMALL, f"{v} does not fit a word"
    return v


class _EveryResult(ast.NodeTransformer):
    """Passes the result of every operation to `small`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        call = ast.Call(ast.Name("small", ast.Load()), [node], [])
        return ast.copy_location(call, node)


def kernels_of(program: Program, within_words: bool = False) -> dict[str, Any]:
    """The names of the module of kernels. within_words: operations whose results are no small integers fail."""
    tree = ast.parse(kernels_source(program, "float32" if program.is_float else "bytecode"))
    if within_words:
        tree = ast.fix_missing_locations(_EveryResult().visit(tree))
    names: dict[str, Any] = {"small": small}
    exec(compile(tree, "kernels", "exec"), names)
    return names


def run_in_python(program: Program, arena: bytes, within_words: bool = False) -> Array:
    """The arena after the program ran in an arena that held `arena`: bytes, or floats where the program is float32."""
    bind: Callable[..., Callable[[], None]] = kernels_of(program, within_words)["bind"]
    constants = program.weight_bytes
    if program.is_float:
        numbers = array("f", arena)
        bind(numbers, array("f", constants), program.words)()
        return np.array(numbers, np.float32)
    whole = bytearray(arena)
    bind(whole, constants, program.words)()
    return np.frombuffer(whole, np.uint8)
