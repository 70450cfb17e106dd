"""The gates of recurrent layers, and their weights in the layout of emberlet.functional's recurrent functions."""

from ..errors import ShapeError
from ..module import Module
from .initializer import XavierNormal
from .kept import kept
from .linear import Linear


class GateController(Module):
    """input_transform(x) + hidden_transform(h): a gate before its activation.

    x (…, d_input), h (…, d_hidden) -> (…, d_hidden). Both transforms are Linear layers, initialized by XavierNormal
    unless an `initializer` is given.
    """

    SHOWN = "d_input d_hidden bias"

    def __init__(self, d_input, d_hidden, bias=True, dtype=None, backend=None, initializer=None):
        initializer = initializer or XavierNormal()
        self.d_input = d_input
        self.d_hidden = d_hidden
        self.bias = bias
        self.input_transform = Linear(d_input, d_hidden, bias, dtype, backend, initializer)
        self.hidden_transform = Linear(d_hidden, d_hidden, bias, dtype, backend, initializer)

    def forward(self, x, hidden):
        """x (batch, d_input), hidden (batch, d_hidden) -> (batch, d_hidden)."""
        return self.input_transform(x) + self.hidden_transform(hidden)


def packed(module, directions, joined=None):
    """(w, r, b) for `functional.lstm`, `gru` and `rnn`: the gates' weights stacked by rows, the input and recurrent
    biases concatenated (None without biases).

    directions: the GateControllers of each direction, in order; joined: another function that joins their weights.
    The module keeps them until the data of a Param changes.
    """
    sources = []
    for gates in directions:
        for gate in gates:
            x, h = gate.input_transform, gate.hidden_transform
            sources += _data(x.weight) + _data(h.weight)
            if gate.bias:
                sources += (x.bias.val().data, h.bias.val().data)
    return kept(module, "_packed", sources, lambda: (joined or _joined)(directions))


def _data(weight):
    """The data of a weight's Params."""
    if hasattr(weight, "values"):  # a QuantizedWeight's
        return [param.val().data for param in weight.params()]
    return [weight.val().data]


def _joined(directions):
    w = stacked([[gate.input_transform.weight.val().mT for gate in gates] for gates in directions])
    r = stacked([[gate.hidden_transform.weight.val().mT for gate in gates] for gates in directions])
    return w, r, joined_biases(directions)


def joined_biases(directions):
    """The input and recurrent biases of each direction's gates, (directions, 2 * gates * d_hidden), or None."""
    if not directions[0][0].bias:
        return None
    biases = []
    for gates in directions:
        layers = [gate.input_transform for gate in gates] + [gate.hidden_transform for gate in gates]
        biases.append([layer.bias.val() for layer in layers])
    return stacked(biases)


def stacked(rows, axis=0):
    """Lists of tensors, each list joined along an axis and all lists stacked before the first."""
    backend = rows[0][0].backend
    joined = [backend.concat(row, axis) for row in rows]
    joined = [backend.reshape(x, (1,) + x.shape) for x in joined]
    return joined[0] if len(joined) == 1 else backend.concat(joined, 0)


def unbatched(layer, x, state):
    """A layer's results for x (seq, d_input), without the axis of the batch. Raises ShapeError for another shape."""
    if x.shape[1] != layer.d_input:
        time_major(x, layer.batch_first, layer.d_input, type(layer).__name__)
    from .unbatched import recurrent

    return recurrent(layer, x, state)


def time_major(x, batch_first, d_input, name):
    """x as (seq, batch, d_input). Raises ShapeError if it has another shape."""
    if len(x.shape) != 3 or x.shape[2] != d_input:
        order = "(batch, seq, {})" if batch_first else "(seq, batch, {})"
        raise ShapeError("{} needs {}, found shape {}".format(name, order.format(d_input), x.shape))
    return x.permute_dims((1, 0, 2)) if batch_first else x


def hidden_states(y, batch_first):
    """y (seq, directions, batch, d_hidden) as (batch, seq, directions * d_hidden), or with seq first."""
    seq, directions, batch, d = y.shape
    if directions == 1:
        y = y.backend.reshape(y, (seq, batch, d))
        return y.backend.permute(y, (1, 0, 2)) if batch_first else y
    if batch_first:
        return y.permute_dims((2, 0, 1, 3)).reshape((batch, seq, directions * d))
    return y.permute_dims((0, 2, 1, 3)).reshape((seq, batch, directions * d))


def with_direction(state):
    """(batch, d_hidden) -> (1, batch, d_hidden); None stays None."""
    return None if state is None else state.reshape((1,) + tuple(state.shape))


def without_direction(state):
    """(1, batch, d_hidden) -> (batch, d_hidden)."""
    return state.backend.reshape(state, state.shape[1:])
