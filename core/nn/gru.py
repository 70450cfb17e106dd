"""Gated recurrent units (Cho et al. 2014), in one direction or both."""

from ..functional.recurrent.layers import gru
from ..module import Module
from .gate import GateController, hidden_states, packed, time_major, unbatched, with_direction, without_direction


class Gru(Module):
    """x (batch, seq, d_input), or (seq, batch, d_input) if batch_first is False -> (the hidden states of all steps, in
    x's order of axes, the last one (batch, d_hidden)). state: the initial (batch, d_hidden), by default zeros.
    x, the outputs and the states may be without the batch.

    z, r = sigmoid of the update and reset gate; n = tanh of the new gate, in which r multiplies the hidden transform's
    output (reset_after, as in PyTorch) or else its input; hidden = (1 - z) * n + z * hidden. reverse: from the last
    step to the first. clip: clamps the gates' inputs to ± clip.
    """

    SHOWN = "d_input d_hidden bias reset_after"

    def __init__(
        self, d_input, d_hidden, bias=True, reset_after=True, batch_first=True, reverse=False, clip=None,
        dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        self.d_input = d_input
        self.d_hidden = d_hidden
        self.bias = bias
        self.reset_after = reset_after
        self.batch_first = batch_first
        self.reverse = reverse
        self.clip = clip
        arguments = (d_input, d_hidden, bias, dtype, backend, initializer)
        self.update_gate = GateController(*arguments)
        self.reset_gate = GateController(*arguments)
        self.new_gate = GateController(*arguments)

    def gates(self):
        """The GateControllers in the order of `functional.gru`: update, reset, new."""
        return (self.update_gate, self.reset_gate, self.new_gate)

    def forward(self, x, state=None):
        """x and `state` (batch, d_hidden), zeros if None -> (outputs, last state). Raises ShapeError if x does not
        fit."""
        if len(x.shape) == 2:
            return unbatched(self, x, state)
        x = time_major(x, self.batch_first, self.d_input, "Gru")
        y, hidden = gru(
            x, *packed(self, (self.gates(),)), initial_h=with_direction(state),
            direction="reverse" if self.reverse else "forward", clip=self.clip or 0.0,
            linear_before_reset=self.reset_after,
        )  # fmt: skip
        return hidden_states(y, self.batch_first), without_direction(hidden)


class BiGru(Module):
    """Two Gru layers, one reading forwards and one backwards: the same inputs and outputs as Gru, with hidden states of
    2 * d_hidden (forward first) and a state of (2, batch, d_hidden)."""

    SHOWN = "d_input d_hidden bias reset_after"

    def __init__(
        self, d_input, d_hidden, bias=True, reset_after=True, batch_first=True, clip=None, dtype=None, backend=None,
        initializer=None,
    ):  # fmt: skip
        self.d_input = d_input
        self.d_hidden = d_hidden
        self.bias = bias
        self.reset_after = reset_after
        self.batch_first = batch_first
        self.clip = clip
        rest = (clip, dtype, backend, initializer)
        self.forward_layer = Gru(d_input, d_hidden, bias, reset_after, batch_first, False, *rest)
        self.reverse_layer = Gru(d_input, d_hidden, bias, reset_after, batch_first, True, *rest)

    def forward(self, x, state=None):
        """x and `state` (2, batch, d_hidden), zeros if None -> (outputs, last state). Raises ShapeError if x does not
        fit."""
        if len(x.shape) == 2:
            return unbatched(self, x, state)
        x = time_major(x, self.batch_first, self.d_input, "BiGru")
        y, hidden = gru(
            x, *packed(self, (self.forward_layer.gates(), self.reverse_layer.gates())), initial_h=state,
            direction="bidirectional", clip=self.clip or 0.0, linear_before_reset=self.reset_after,
        )  # fmt: skip
        return hidden_states(y, self.batch_first), hidden
