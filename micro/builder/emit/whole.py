"""`predict` where a driver of assembly kernels converts the numbers and runs the model in one call."""

from __future__ import annotations

from ..program import Port, Program
from .inputs import has_grid

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


def whole_begin(program: Program) -> str:
    """What sets `_whole`: the driver, or a function that says that nothing was done."""
    return _GRID if has_grid(program) else _RANKS


def whole_predict(program: Program) -> str:
    """The function `predict`."""
    return _PREDICT.replace("RESULT", _result(program.outputs[0]))


def _result(port: Port) -> str:
    """What gives the numbers of an output."""
    if port.width == 1 == port.size and not port.sums:
        scale, zero = (1, port.integer) if port.integer is not None else (port.scale, port.zero)
        return f"[{scale!r} * (output[0] - {zero})]"
    return "get()"
