"""`predict` where a driver of assembly kernels converts the numbers and runs the model in one call."""

from __future__ import annotations

from ..assembly.driver import CHILDREN
from ..assembly.driver.predict import BINARY_OP, CALL, NEW_LIST
from ..assembly.variants import RV32
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
    predict = _kernels.answering(predict, output, {step!r}, {zero})
"""

# A module's constants hold the address of MicroPython's table for viper code, which begins with three objects.
_ANSWERING_KERNELS = """\
@micropython.viper
def predict():
    pass

def answering(slow, y, step, zero):
    global told
    from array import array
    from uctypes import addressof, bytearray_at

    def words(at, count):
        return array("I", bytearray_at(at, 4 * count))

    _, context, _, code = words(id(drive), 4)
    at, due, table = words(context, 4)[3], array("I", (id(None), id(False), id(True))), 1
    while table & 3 or words(table, 3) != due:
        table = words(at, 1)[0]
        at += 4
    table = words(table, {most})
    told = id(drive), code | {bit}, len(y) // {size}, addressof(y), zero, id(step), table[{product}], table[{new_list}]
    told = array("I", told + (id(slow), table[{call}]))
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


def answering_source(program: Program, family: str) -> str:
    """The functions of a module of kernels with which machine code makes the list of `predict`."""
    return _ANSWERING_KERNELS.format(
        most=CALL + 1,
        bit=0 if family == RV32 else 1,
        size=4 if program.outputs[0].sums else 1,
        product=BINARY_OP,
        new_list=NEW_LIST,
        call=CALL,
        children=CHILDREN,
    )


def answering(program: Program) -> str:
    """What replaces `predict` by machine code, where it is possible."""
    step, zero = _grid(program.outputs[0])
    return _ANSWERING.format(step=step, zero=zero)


def _grid(port: Port) -> tuple[float, int]:
    if port.sums:
        return port.sums.step, MIDDLE
    return (1, port.integer) if port.integer is not None else (port.scale, port.zero)


def whole_begin(program: Program) -> str:
    """What sets `_whole`: the driver, or a function that says that nothing was done."""
    return _GRID if has_grid(program) else _RANKS


def whole_predict(program: Program) -> str:
    """The function `predict`."""
    return _PREDICT.replace("RESULT", _result(program.outputs[0]))


def _result(port: Port) -> str:
    """What gives the numbers of an output."""
    if port.width == 1 == port.size and not port.sums:
        scale, zero = _grid(port)
        return f"[{scale!r} * (output[0] - {zero})]"
    return "get()"
