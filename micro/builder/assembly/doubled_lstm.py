"""The calls that compute what an LSTM of a .tflite file makes of its gates' sums."""

from __future__ import annotations

from collections.abc import Mapping

from ..kernels.doubled_lstm import GATE_BITS, DoubledLstm
from . import scalar_doubled_lstm
from .driver import Call, Kernel
from .scalar_doubled_lstm import CELLS, SQUASH, UNITS
from .variants import DSP, THUMB, scalar


def calls(layer: DoubledLstm, family: str, places: Mapping[str, int]) -> list[Call]:
    """The gates' functions, the cells, tanh of these, and the hidden state."""
    own = THUMB if family == DSP else family
    n, zo, cell = layer.hidden, places["zo"], places["st"] + layer.hidden
    q = 4 * layer.constants_at(places)

    def squashed(bits: int, tanh: bool, x: int, y: int, steps: tuple[int, int]) -> Call:
        name = f"{'tanh' if tanh else 'logistic'}_{bits}"
        kernel = Kernel(name, scalar(scalar_doubled_lstm.squash, own, bits, tanh), SQUASH)
        return Call(kernel, {"x": x, "y": y, "q": q, "xstep": steps[0], "ystep": steps[1], "count": n})

    gates = [squashed(GATE_BITS, k == 2, zo + 2 * k, zo + 2 * k, (8, 8)) for k in range(4)]
    low, high = layer.ends_of_cells
    limits = {"right": 29 + layer.cell, "low": low, "high": high, "count": n}
    cells = Call(Kernel("cells", scalar(scalar_doubled_lstm.cells, own), CELLS), {"x": zo, "c": cell, **limits})
    tanh = squashed(15 + layer.cell, True, cell, zo + 8 * n, (2, 2))
    m0, m1, m2 = layer.parts_of_multiplier
    numbers = {"x": zo + 6, "t": zo + 8 * n, "y": places["st"], "m0": m0, "m1": m1, "m2": m2}
    numbers |= {"right": -layer.shift - 1, "zero": layer.result, "mask": (1 << 15) - 1, "count": n}
    return [*gates, cells, tanh, Call(Kernel("hidden", scalar(scalar_doubled_lstm.units, own), UNITS), numbers)]
