"""Plain recurrent layers (Elman 1990), in one direction or both."""

from ..functional.recurrent.layers import rnn
from ..module import Module
from .gate import GateController, hidden_states, packed, time_major, unbatched, with_direction, without_direction


class RnnState:
    """hidden: (batch, d_hidden); of a bidirectional layer (2, batch, d_hidden)."""

    def __init__(self, hidden):
        self.hidden = hidden


class Rnn(Module):
    """x (batch, seq, d_input), or (seq, batch, d_input) if batch_first is False -> (the hidden states of all steps, in
    x's order of axes, the last RnnState). state: the initial RnnState, by default zeros.
    x, the outputs and the states may be without the batch.

    hidden = activation of the gate (a GateController). hidden_activation: "Tanh", "Relu", "Sigmoid", "Softsign" or
    another of ONNX's names. reverse: from the last step to the first. clip: clamps the activation's input to ± clip.
    """

    SHOWN = "d_input d_hidden bias"

    def __init__(
        self, d_input, d_hidden, bias=True, batch_first=True, reverse=False, clip=None, hidden_activation="Tanh",
        dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        self.d_input = d_input
        self.d_hidden = d_hidden
        self.bias = bias
        self.batch_first = batch_first
        self.reverse = reverse
        self.clip = clip
        self.hidden_activation = hidden_activation
        self.gate = GateController(d_input, d_hidden, bias, dtype, backend, initializer)

    def gates(self):
        """The only GateController, in a list for `functional.rnn`."""
        return (self.gate,)

    def forward(self, x, state=None):
        """x and an RnnState, zeros if None -> (outputs, RnnState). Raises ShapeError if x does not fit."""
        if len(x.shape) == 2:
            return unbatched(self, x, state)
        x = time_major(x, self.batch_first, self.d_input, "Rnn")
        y, hidden = rnn(
            x, *packed(self, (self.gates(),)), initial_h=with_direction(state and state.hidden),
            direction="reverse" if self.reverse else "forward", clip=self.clip or 0.0,
            activations=(self.hidden_activation,),
        )  # fmt: skip
        return hidden_states(y, self.batch_first), RnnState(without_direction(hidden))


class BiRnn(Module):
    """Two Rnn layers, one reading forwards and one backwards: the same inputs and outputs as Rnn, with hidden states of
    2 * d_hidden (forward first) and a state of (2, batch, d_hidden)."""

    SHOWN = "d_input d_hidden bias"

    def __init__(
        self, d_input, d_hidden, bias=True, batch_first=True, clip=None, hidden_activation="Tanh", dtype=None,
        backend=None, initializer=None,
    ):  # fmt: skip
        self.d_input = d_input
        self.d_hidden = d_hidden
        self.bias = bias
        self.batch_first = batch_first
        self.clip = clip
        self.hidden_activation = hidden_activation
        rest = (clip, hidden_activation, dtype, backend, initializer)
        self.forward_layer = Rnn(d_input, d_hidden, bias, batch_first, False, *rest)
        self.reverse_layer = Rnn(d_input, d_hidden, bias, batch_first, True, *rest)

    def forward(self, x, state=None):
        """x and an RnnState, zeros if None -> (outputs, RnnState). Raises ShapeError if x does not fit."""
        if len(x.shape) == 2:
            return unbatched(self, x, state)
        x = time_major(x, self.batch_first, self.d_input, "BiRnn")
        y, hidden = rnn(
            x, *packed(self, (self.forward_layer.gates(), self.reverse_layer.gates())),
            initial_h=state and state.hidden, direction="bidirectional", clip=self.clip or 0.0,
            activations=(self.hidden_activation,) * 2,
        )  # fmt: skip
        return hidden_states(y, self.batch_first), RnnState(hidden)
