"""LSTM, GRU and plain recurrent layers in int8, from those in float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from emberlet.errors import UnsupportedError

from ..graph import Grid
from ..kernels.layer import Array, Layer
from ..kernels.recurrent import FINE, GATE, MIDDLE, GatedGru, Gru, Lstm, Rnn, Rows
from ..kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from .grids import HIDDEN_GRID
from .reference import LIMIT, choose, dot_bounds, quantize_bias, quantize_weights

BIAS_ROOM = LIMIT >> 3
"""A bias is kept below this in steps of its accumulator, which leaves room for the products."""


def recurrent(layer: LstmFloat | GruFloat | GatedGruFloat | RnnFloat, grids: Mapping[str, Grid]) -> Layer:
    """The layer in int8. Raises UnsupportedError."""
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


def rows_of(name: str, weights: Array, bias: Array, grid: Grid, steps_of_one: float = GATE) -> Rows:
    """Rows of a layer whose input is on `grid`. steps_of_one: of a sum, for one unit."""
    bytes_, scale = quantize_weights(weights, np.abs(bias) / (grid.scale * BIAS_ROOM))
    sums = scale * grid.scale
    steps = quantize_bias(bias, sums, name)
    low, high = dot_bounds(bytes_, steps, grid.zero)
    bound = np.maximum(np.abs(low), np.abs(high))
    requant = choose(sums * steps_of_one, bound, MIDDLE, 0, 2 * MIDDLE - 1, what=name)
    return Rows(bytes_, steps, grid.zero, requant)
