"""The converter of LSTM layers, which keep their state until the next inference, as LiteRT's do."""

from __future__ import annotations

from math import frexp
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType

from ..importer.layout import StoredTensor
from ..kernels.doubled_lstm import LEAST, MOST, DoubledLstmFloat, FileNumbers
from ..kernels.recurrent_float import LstmFloat
from .reading import FileOperator, FileTensor, values
from .table import Inputs, converts

if TYPE_CHECKING:
    from .importing import Converting

Array = npt.NDArray[Any]

TANH = 4
"""The number of tanh among fused activations."""

INPUT_WEIGHTS, STATE_WEIGHTS, BIASES = (range(k, k + 4) for k in (1, 5, 12))
"""The places of the gates' constants among the operator's inputs: input, forget, cell and output gate."""

STATE, CELL, RESULT = 18, 19, 4
"""The places of the hidden state and of the cell, and of the hidden state's result among the intermediate results."""

OTHERS = {9: "peepholes", 10: "peepholes", 11: "peepholes", 16: "a projection", 20: "layer normalization"}
OTHERS |= {21: "layer normalization", 22: "layer normalization", 23: "layer normalization"}


@converts("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(t: Converting, op: FileOperator, _: Inputs) -> Argument:
    """Raises Problem for peepholes, projections, coupled gates, layer normalization, and activations of 16 bits."""
    _check(op)
    source = t.argument(op.inputs[0])
    shape = t.dims(source)
    if len(shape) != 3 or shape[0 if not op.options.get("TimeMajor") else 1] != 1:
        raise Problem(f"the input has shape {shape}, expected one sequence of rows")
    constants = [[t.file.tensors[op.inputs[k]] for k in places] for places in (INPUT_WEIGHTS, STATE_WEIGHTS, BIASES)]
    weights, recurrent, bias = ([_real(tensor) for tensor in tensors] for tensors in constants)
    hidden, features = recurrent[0].shape[-1], shape[2]
    for part, due in ((weights, (hidden, features)), (recurrent, (hidden, hidden)), (bias, (hidden,))):
        if any(x.shape != due for x in part):
            raise Problem(f"its constants have shapes {[x.shape for x in part]}, expected {due}")
    importer, steps = t.importer, shape[0] * shape[1]
    held = importer.ordered(importer.of(source), (0, 1, 2))
    held = importer.shaped(held, (steps, features))
    label = t._unused(t._label("lstm"))
    name = importer.layout.fresh(label)
    importer.layout.shapes[name] = steps, hidden
    at = (label, (held.name,), name, steps, hidden, _by_unit(weights), _by_unit(recurrent))
    clip = _clip(op)
    how = (_by_unit(bias).reshape(-1), np.zeros(4 * hidden), False, True, True)
    grid = t.grid(t._tensor(op.inputs[0]))
    float_ = grid is None
    if float_:
        importer.add(LstmFloat(*at, *how, clip=clip))
    else:
        importer.add(DoubledLstmFloat(*at, *how, _numbers(t, op, constants, clip), clip=clip))
    made = Argument(t._fresh(label), TensorType(t.real, (*shape[:2], hidden)))
    importer.layout.held[made.name] = importer.shaped(StoredTensor(name, (*shape[:2], hidden), (0, 1, 2)))
    t.known[made.name] = made
    return made


def _check(op: FileOperator) -> None:
    if len(op.inputs) not in (20, 24):
        raise Problem(f"it has {len(op.inputs)} inputs, expected 20 or 24")
    found = sorted({what for k, what in OTHERS.items() if k < len(op.inputs) and op.inputs[k] >= 0})
    if op.inputs[1] < 0:
        found.append("coupled gates")
    if found:
        raise Problem(f"an LSTM with {' and '.join(found)} is not supported")
    if min(op.inputs[k] for k in (0, *INPUT_WEIGHTS, *STATE_WEIGHTS, *BIASES, STATE, CELL)) < 0:
        raise Problem("a required input is missing")
    if op.integer("FusedActivationFunction") != TANH:
        raise Problem("an LSTM without tanh is not supported")


def _real(tensor: FileTensor) -> Array:
    """The numbers of a constant. Raises Problem."""
    if len(tensor.scales) > 1 or any(tensor.zeros):
        raise Problem("an LSTM needs one scale for each tensor, and constants without a zero point")
    stored = values(tensor, f"tensor {tensor.name!r}").astype(np.float64)
    return stored * tensor.scales[0] if tensor.scales else stored


def _by_unit(gates: list[Array]) -> Array:
    """(4 * hidden, …), the gates of a unit side by side."""
    return np.stack(gates, 1).reshape(4 * len(gates[0]), -1)


def _clip(op: FileOperator) -> float:
    """What the cells are clipped to, or 0. Raises Problem."""
    clip = op.options.get("CellClip", 0.0)
    if not isinstance(clip, float) or not 0 <= clip < 1e30:
        raise Problem(f"the cell is clipped at {clip}")
    return clip


def _numbers(t: Converting, op: FileOperator, constants: list[list[FileTensor]], clip: float) -> FileNumbers:
    """Raises Problem."""
    weights, recurrent, bias = constants
    if {x.dtype for x in (*weights, *recurrent)} != {"INT8"} or {x.dtype for x in bias} != {"INT32"}:
        raise Problem("an LSTM with int8 activations needs weights of int8 and biases of int32")
    state, cell, source = (t.file.tensors[op.inputs[k]] for k in (STATE, CELL, 0))
    if len(op.intermediates) <= RESULT or {source.dtype, state.dtype} != {"INT8"} or cell.dtype != "INT16":
        raise Problem("an LSTM on bytes needs int8 activations, a cell of int16, and five intermediate results")
    if any(len(x.scales) != 1 or any(x.zeros) or not 0 < x.scales[0] < 1e30 for x in (*weights, *recurrent, cell)):
        raise Problem("an LSTM on bytes needs one scale for each tensor, and a cell without a zero point")
    fraction, exponent = frexp(cell.scales[0])
    if fraction != 0.5 or not LEAST <= exponent - 1 <= MOST:
        raise Problem(
            f"the cell has a scale of {cell.scales[0]:g}, expected a power of two from 2**{LEAST} to 2**{MOST}"
        )
    kept, result = (t.grid(x) for x in (state, t._tensor(op.intermediates[RESULT])))
    if kept is None or result is None:
        raise Problem("the hidden state has no scale")
    return FileNumbers(
        _by_unit([values(x, "weights").view(np.uint8) ^ 128 for x in weights]),
        _by_unit([values(x, "weights").view(np.uint8) ^ 128 for x in recurrent]),
        _by_unit([values(x, "a bias").astype(np.int64) for x in bias]).reshape(-1),
        tuple(x.scales[0] for x in weights),
        tuple(x.scales[0] for x in recurrent),
        kept,
        result,
        exponent - 1,
        min(int(clip / cell.scales[0]), 32767),
    )
