"""Long short-term memory (Hochreiter and Schmidhuber 1997), in one direction or both."""

from ..functional.recurrent.layers import lstm
from ..module import Module
from .gate import GateController, hidden_states, packed, time_major, unbatched, with_direction, without_direction


class LstmState:
    """cell, hidden: (batch, d_hidden); of a bidirectional layer (2, batch, d_hidden)."""

    def __init__(self, cell, hidden):
        self.cell = cell
        self.hidden = hidden


class _Steps:
    def _steps(self, x, directions, **options):
        """(the outputs of all steps, the last hidden and cell state) of gates for x (seq, batch, d_input)."""
        return lstm(x, *packed(self, directions), **options)


class Lstm(_Steps, Module):
    """x (batch, seq, d_input), or (seq, batch, d_input) if batch_first is False -> (the hidden states of all steps, in
    x's order of axes, the last LstmState). state: the initial LstmState, by default zeros.
    x, the outputs and the states may be without the batch.

    i, f, o = sigmoid of the input, forget and output gate, g = tanh of the cell gate (each a GateController);
    cell = f * cell + i * g; hidden = o * tanh(cell). reverse: from the last step to the first. clip: clamps the gates'
    inputs to ± clip. input_forget: f is 1 - i.
    """

    SHOWN = "d_input d_hidden bias"

    def __init__(
        self, d_input, d_hidden, bias=True, batch_first=True, reverse=False, clip=None, input_forget=False,
        dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        self.d_input = d_input
        self.d_hidden = d_hidden
        self.bias = bias
        self.batch_first = batch_first
        self.reverse = reverse
        self.clip = clip
        self.input_forget = input_forget
        arguments = (d_input, d_hidden, bias, dtype, backend, initializer)
        self.input_gate = GateController(*arguments)
        self.forget_gate = GateController(*arguments)
        self.output_gate = GateController(*arguments)
        self.cell_gate = GateController(*arguments)

    def gates(self):
        """The GateControllers in the order of `functional.lstm`: input, output, forget, cell."""
        return (self.input_gate, self.output_gate, self.forget_gate, self.cell_gate)

    def forward(self, x, state=None):
        """x and an LstmState, zeros if None -> (outputs, LstmState). Raises ShapeError if x does not fit."""
        if len(x.shape) == 2:
            return unbatched(self, x, state)
        x = time_major(x, self.batch_first, self.d_input, "Lstm")
        y, hidden, cell = self._steps(
            x, (self.gates(),), initial_h=with_direction(state and state.hidden),
            initial_c=with_direction(state and state.cell), direction="reverse" if self.reverse else "forward",
            clip=self.clip or 0.0, input_forget=self.input_forget,
        )  # fmt: skip
        return hidden_states(y, self.batch_first), LstmState(without_direction(cell), without_direction(hidden))


class BiLstm(_Steps, Module):
    """Two Lstm layers, one reading forwards and one backwards: the same inputs and outputs as Lstm, with hidden states
    of 2 * d_hidden (forward first) and a state of (2, batch, d_hidden)."""

    SHOWN = "d_input d_hidden bias"

    def __init__(
        self, d_input, d_hidden, bias=True, batch_first=True, clip=None, input_forget=False, dtype=None, backend=None,
        initializer=None,
    ):  # fmt: skip
        self.d_input = d_input
        self.d_hidden = d_hidden
        self.bias = bias
        self.batch_first = batch_first
        self.clip = clip
        self.input_forget = input_forget
        rest = (clip, input_forget, dtype, backend, initializer)
        self.forward_layer = Lstm(d_input, d_hidden, bias, batch_first, False, *rest)
        self.reverse_layer = Lstm(d_input, d_hidden, bias, batch_first, True, *rest)

    def forward(self, x, state=None):
        """x and an LstmState, zeros if None -> (outputs, LstmState). Raises ShapeError if x does not fit."""
        if len(x.shape) == 2:
            return unbatched(self, x, state)
        x = time_major(x, self.batch_first, self.d_input, "BiLstm")
        y, hidden, cell = self._steps(
            x, (self.forward_layer.gates(), self.reverse_layer.gates()),
            initial_h=state and state.hidden, initial_c=state and state.cell,
            direction="bidirectional", clip=self.clip or 0.0, input_forget=self.input_forget,
        )  # fmt: skip
        return hidden_states(y, self.batch_first), LstmState(cell, hidden)
