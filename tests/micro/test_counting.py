"""The statements of viper kernels that are counted in their source are those that run."""

from __future__ import annotations

import ast
import sys
from types import CodeType, FrameType
from typing import Any

from emberlet.micro.builder.counting import counted
from emberlet.micro.builder.emit.kernels import kernels_source
from emberlet.micro.builder.program import Program
from support.draws import draw

from tools.microcontrollers.random_layers import program_of, viper_cases


def statements_run(program: Program, arena: bytes) -> int:
    """How many simple statements of kernels are executed."""
    source = kernels_source(program, "bytecode")
    simple = {n.lineno for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Assign | ast.AugAssign)}
    code: CodeType = compile(source, "kernels", "exec")
    module: dict[str, Any] = {}
    exec(code, module)
    found = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal found
        if frame.f_code.co_filename != "kernels" or frame.f_code.co_name in ("bind", "run"):
            return None
        found += event == "line" and frame.f_lineno in simple
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        module["bind"](bytearray(arena), *module["prepare"](program.weight_bytes, program.word_bytes))()
    finally:
        sys.settrace(before)
    return found


def test_statements_are_counted_as_they_run() -> None:
    seed = draw(__name__).randrange(1 << 31)
    print(f"seed {seed}")
    for case in viper_cases(seed, 60):
        program, arena, _ = program_of([case])
        run, found = statements_run(program, arena), counted(program, "")["line"]
        assert run / 1.5 - 20 < found < 1.5 * run + 20, (case.layer, run, found)
