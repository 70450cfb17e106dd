"""`predict` where a driver of assembly kernels converts the numbers and runs the model in one call."""

from __future__ import annotations

import struct
from math import frexp

from ..assembly.driver import CHILDREN
from ..assembly.driver.calls import CONSTANTS, TOLD
from ..assembly.driver.converted import is_converted, told
from ..assembly.driver.predict import Answer
from ..assembly.driver.products import CARRIED
from ..assembly.variants import RV32, VFP
from ..kernels.trees import MIDDLE
from ..program import Port, Program
from .inputs import has_grid
from .outputs import FEW
from .trees import is_named

_GRID = """\
_whole = _direct and hasattr(_kernels, "whole") and _kernels.whole(_tables) or (lambda numbers, way: 1)
"""

_RANKS = """\
_whole = hasattr(_kernels, "whole") and _kernels.whole(input, output, _cuts, _starts, _nan) or (lambda numbers, way: 1)
"""

_PREDICT = '''
def predict(numbers):
    """The numbers of the first output, from the numbers of the input."""
    if _whole(numbers, 0):
        put(numbers)
        run()
    return RESULT
'''


_ANSWERING = """
if _whole is run:
    predict = _kernels.answering(predict, get, input, output, {step}, {zero})
"""

BINARY_OP, CALL, ALLOCATE = 18, 27, 52
"""Where MicroPython's table of functions has the product of two objects, calls, and what allocates memory
(gc_realloc), in MicroPython 1.23 and later."""

# A module's constants hold the address of MicroPython's table for viper code, which begins with three objects.
_ANSWERING_KERNELS = """\
@micropython.viper
def predict():
    pass

def answering(slow, get, x, y, step, zero):
    global told
    from array import array
    from sys import implementation
    from uctypes import addressof, bytearray_at

    def words(at, count):
        return array("I", bytearray_at(at, 4 * count))

    room = [None] * 5
    if implementation._mpy >> 8 & 3 < 3 or words(id(room), 3) != array("I", (id(list), 5, 5)):
        return slow
    _, context, _, code = words(id(drive), 4)
    at, due, table = words(context, 4)[3], array("I", (id(None), id(False), id(True))), 1
    while table & 3 or words(table, 3) != due:
        table = words(at, 1)[0]
        at += 4
    table, one = words(table, {most}), {one}
    told = array("I", ({told})) + array("I", {constants!r})
    bytearray_at(id(predict) + {children}, 4)[:] = bytes(array("I", (addressof(told),)))
    return predict
"""


def is_answered(program: Program) -> bool:
    """Whether machine code makes the list of `predict` too: of a few numbers, each a step times an integer."""
    if not program.outputs:
        return False
    port = program.outputs[0]
    if port.sums:
        return is_named(port) and port.sums.transform is None
    return port.width == 1 and port.size < FEW


def answer(program: Program, arch: str) -> Answer:
    """What the function `predict` does on an instruction set."""
    port = program.outputs[0]
    step, _ = _grid(port)
    computed = arch in VFP or 1e-28 < step < 1e28
    result = "whole" if isinstance(step, int) else "floats" if computed else "product"
    count = port.size // 4 if port.sums else port.size
    power = bool(port.sums) and frexp(step)[0] == 0.5
    return Answer(count, bool(port.sums), result, power, is_converted(program.inputs[0]))


def answering_source(program: Program, arch: str, family: str) -> str:
    """The functions of a module of kernels with which machine code makes the list of `predict`."""
    own = answer(program, arch)
    bits = "words(id(step), 2)[1]"
    words = {
        "drive": "id(drive)",
        "code": f"code | {0 if family == RV32 else 1}",
        "bytes": "addressof(y)",
        "zero": "zero",
        "list": "id(list)",
        "float": "words(id(0.5), 1)[0]",
        "allocate": f"table[{ALLOCATE}]",
        "get": "id(get)",
        "slow": "id(slow)",
        "call": f"table[{CALL}]",
        "step": "id(step)",
        "multiply": f"table[{BINARY_OP}]",
    }
    if own.result == "floats":
        words |= {"mantissa": "one & 0x7FFFFF | 0x800000", "exponent": f"(one >> 23) + {CARRIED - 1}", "bits": "one"}
    if own.converts:
        words |= {"input": "addressof(x)", "array": "id(array)"}
    constants = told(program.inputs[0], arch in VFP) if own.converts else {}
    return _ANSWERING_KERNELS.format(
        most=ALLOCATE + 1,
        one=bits if own.result == "floats" else 0,
        told=", ".join(words.get(name, "0") for name in TOLD),
        constants=struct.pack(f"<{len(CONSTANTS)}I", *(constants.get(name, 0) for name in CONSTANTS)),
        children=CHILDREN,
    )


def answering_line(program: Program) -> str:
    """What replaces `predict` by machine code, where it is possible."""
    step, zero = _grid(program.outputs[0])
    return _ANSWERING.format(step="_step" if program.outputs[0].sums else repr(step), zero=zero)


def _grid(port: Port) -> tuple[float, int]:
    """The step of an output's elements, and what stands for zero."""
    return (port.sums.step, MIDDLE) if port.sums else port.grid


def whole_begin(program: Program) -> str:
    """What sets `_whole`: the driver, or a function that says that nothing was done."""
    return _GRID if has_grid(program) else _RANKS


def whole_predict(program: Program) -> str:
    """The function `predict`."""
    return _PREDICT.replace("RESULT", _result(program.outputs[0]))


def _result(port: Port) -> str:
    """What gives the numbers of an output."""
    if port.width == 1 == port.size and not port.sums:
        scale, zero = port.grid
        return f"[{scale!r} * (output[0] - {zero})]"
    return "get()"
