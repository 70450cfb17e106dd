"""Quantizes LSTM, GRU and plain recurrent layers to int8 and to 16-bit words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from emberlet.errors import UnsupportedError

from ..graph import Grid
from ..kernels.layer import Array, Layer
from ..kernels.recurrence import FINE, GATE, MIDDLE, Rows
from ..kernels.recurrent import GatedGru, Gru, Lstm, Rnn
from ..kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from ..kernels.sixteen import recurrent as words
from ..kernels.sixteen.recurrent import GatedGru16, Gru16, Lstm16, Rnn16, Sums16
from ..kernels.window import Window
from .grids import HIDDEN_GRID, HIDDEN_WORDS
from .reference import LIMIT, ZERO, Bytes, Floats, choose, dot_bounds, quantize_bias, quantize_weights
from .sixteen import MOST

BIAS_ROOM = LIMIT >> 3
"""The limit for a bias in steps of its accumulator, which leaves room for the products."""

SATURATED = 9.0
"""From here on tanh is 1 in float32."""

Recurrent = LstmFloat | GruFloat | GatedGruFloat | RnnFloat


def recurrent(layer: Recurrent, grids: Mapping[str, Grid]) -> Layer:
    """The layer in int8. Raises UnsupportedError."""
    _check_clip(layer)
    at = (layer.name, layer.inputs, layer.output, layer.steps, layer.hidden)
    how = (layer.reverse, layer.sequence, layer.keep)
    source = grids[layer.inputs[0]]
    if isinstance(layer, RnnFloat):
        own = grids[layer.output] if layer.relu else HIDDEN_GRID
        if layer.relu and (layer.keep or own.zero):
            raise UnsupportedError(
                f"{layer.name}: a recurrent layer with ReLU that keeps its state has no int8 form; "
                "build the model with --float"
            )
        steps = FINE / own.scale if layer.relu else GATE
        from_input = rows_of(layer.name, layer.weights_input, layer.bias_input, source, steps)
        from_state = rows_of(layer.name, layer.weights_state, layer.bias_state, own, steps)
        return Rnn(*at, from_input, from_state, *how, layer.relu)
    from_input = rows_of(layer.name, layer.weights_input, layer.bias_input, source)
    if isinstance(layer, GatedGruFloat):
        from_state = rows_of(layer.name, *layer.gates_of_state, HIDDEN_GRID)
        return GatedGru(*at, from_input, from_state, *how, rows_of(layer.name, *layer.candidate, HIDDEN_GRID))
    from_state = rows_of(layer.name, layer.weights_state, layer.bias_state, HIDDEN_GRID)
    return (Lstm if isinstance(layer, LstmFloat) else Gru)(*at, from_input, from_state, *how)


def _check_clip(layer: Recurrent) -> None:
    """Raises UnsupportedError for cells that are clipped where their tanh is not 1 yet: quantized ones end at ±16."""
    if isinstance(layer, LstmFloat) and 0 < layer.clip < SATURATED:
        raise UnsupportedError(
            f"{layer.name}: an LSTM that clips its cells to ±{layer.clip:g} is quantized only where the .tflite file "
            "is in int8; build the model with --float"
        )


def rows_of(name: str, weights: Array, bias: Array, grid: Grid, steps_of_one: float = GATE) -> Rows:
    """Rows of a layer whose input is on `grid`. steps_of_one: the number that stands for one in a sum."""
    bytes_, scale = quantize_weights(weights, np.abs(bias) / (grid.scale * BIAS_ROOM))
    sums = scale * grid.scale
    steps = quantize_bias(bias, sums, name)
    low, high = dot_bounds(bytes_, steps, grid.zero)
    bound = np.maximum(np.abs(low), np.abs(high))
    requant = choose(sums * steps_of_one, bound, MIDDLE, 0, 2 * MIDDLE - 1, what=name)
    return Rows(bytes_, steps, grid.zero, requant)


def recurrent16(layer: Recurrent, grids: Mapping[str, Grid]) -> Layer:
    """The layer on words. Raises UnsupportedError."""
    _check_clip(layer)
    at = (layer.name, layer.inputs, layer.output, layer.steps, layer.hidden)
    how = (layer.reverse, layer.sequence, layer.keep)
    source, relu = grids[layer.inputs[0]], isinstance(layer, RnnFloat) and layer.relu
    own = grids[layer.output] if relu else HIDDEN_WORDS
    steps = FINE / own.scale if relu else words.GATE

    def rows(weights: Array, bias: Array, grid: Grid = own) -> Sums16:
        return words_of(layer.name, weights, bias, grid, steps)

    from_input = rows(layer.weights_input, layer.bias_input, source)
    if isinstance(layer, GatedGruFloat):
        return GatedGru16(*at, from_input, rows(*layer.gates_of_state), *how, rows(*layer.candidate))  # type: ignore[arg-type]
    both = (from_input, rows(layer.weights_state, layer.bias_state))
    if isinstance(layer, RnnFloat):
        return Rnn16(*at, *both, *how, relu, own.zero)  # type: ignore[arg-type]
    return (Lstm16 if isinstance(layer, LstmFloat) else Gru16)(*at, *both, *how)  # type: ignore[arg-type]


def words_of(name: str, weights: Array, bias: Array, grid: Grid, steps_of_one: float) -> Sums16:
    """Rows of a layer whose input is words on `grid`. steps_of_one: the number that stands for one in a sum."""
    bytes_, scale = own_steps(weights)
    sums = scale * grid.scale
    steps = np.rint(bias.astype(np.float64) / sums).astype(np.int64)
    size = np.abs(bytes_.astype(np.int64) - ZERO).sum(1)
    bound = size * float(max(grid.zero, MOST - grid.zero)) + np.abs(steps)
    requant = words.sums_of(sums * steps_of_one, bound, name)
    rows, k = bytes_.shape
    at = (name, ("x",), "y", (2 * k,), Window((1, 1)), 1)
    made = Sums16(*at, bytes_.reshape(rows, 1, 1, k), steps, grid.zero, requant, ZERO)
    made.check()
    return made


def own_steps(weights: Array) -> tuple[Bytes, Floats]:
    """`quantize_weights`, except that a row whose weights are integer multiples of a number keeps that number as its
    scale."""
    w = np.asarray(weights, np.float64)
    scale = quantize_weights(w)[1]
    peak = np.abs(w).max(1, initial=0)
    of_one = w / np.where(peak > 0, peak, 1.0)[:, None]
    for most in range(127, 0, -1):
        exact = np.abs(of_one * most - np.rint(of_one * most)).max(1, initial=0) < 1e-3
        scale = np.where(exact & (peak > 0), peak / most, scale)
    return (np.clip(np.rint(w / scale[:, None]), -127, 127) + ZERO).astype(np.uint8), scale
