"""Recurrent layers over a sequence, in ONNX's layout of weights.

x (steps, batch, d_input), w (directions, gates · d_hidden, d_input), r (directions, gates · d_hidden, d_hidden),
b (directions, 2 · gates · d_hidden) or None: input bias, then recurrent bias. Gates lie in the order i o f c (LSTM) and
z r h (GRU). direction: "forward", "reverse" or "bidirectional". Outputs: y (steps, directions, batch, d_hidden), and the
last state(s) (directions, batch, d_hidden). activations: functions, per direction, replacing the usual ones.
"""

from .activations import sigmoid
from .arithmetic import clip as clip_
from .joining import stack
from .movement import narrow, reshape
from .operands import like, tensor
from .transcendental import tanh


def _directions(direction):
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]


def _one(x, i):
    """Slice i of axis 0, without it."""
    return reshape(narrow(x, 0, i, 1), x.shape[1:])


def _turn(x):
    k = x.backend
    return k.permute(x, tuple(range(x.ndim - 2)) + (x.ndim - 1, x.ndim - 2))


def _run(x, w, r, b, states, gates, cell, reverse, lengths):
    """One direction: (list of outputs by step, last states). cell(x part, states, r, recurrent bias) -> new states."""
    k = x.backend
    steps, batch = x.shape[:2]
    hidden = r.shape[-1]
    # All steps meet the input weights in one product.
    flat = reshape(x, (steps * batch, x.shape[2]))
    part = k.matmul(flat, _turn(w))
    recurrent_bias = None
    if b is not None:
        half = gates * hidden
        part = k.binary("add", part, narrow(b, 0, 0, half))
        recurrent_bias = narrow(b, 0, half, half)
    part = reshape(part, (steps, batch, gates * hidden))
    r = _turn(r)
    outputs = [None] * steps
    for step in range(steps - 1, -1, -1) if reverse else range(steps):
        new = cell(_one(part, step), states, r, recurrent_bias)
        if lengths is not None:
            # A sequence that is over keeps its state; its outputs are zeros.
            alive = k.binary("gt", lengths, k.full((), step, lengths.dtype))
            outputs[step] = k.where(alive, new[0], k.full((), 0, x.dtype))
            states = [k.where(alive, n, s) for n, s in zip(new, states)]
        else:
            outputs[step] = new[0]
            states = new
    return outputs, states


def _recurrent(x, w, r, b, initial, lengths, direction, gates, make_cell):
    w, r = like(w, x), like(r, x)
    b = None if b is None else like(b, x)
    k = x.backend
    hidden = r.shape[-1]
    batch = x.shape[1]
    if lengths is not None:
        lengths = reshape(tensor(lengths, k), (batch, 1))
    count = len(initial)
    all_outputs, all_states = [], []
    turns = _directions(direction)
    for d in range(len(turns)):
        states = []
        for s in initial:
            states.append(k.full((batch, hidden), 0, x.dtype) if s is None else _one(like(s, x), d))
        outputs, states = _run(
            x, _one(w, d), _one(r, d), None if b is None else _one(b, d), states, gates, make_cell(d), turns[d], lengths
        )
        all_outputs.append(outputs)
        all_states.append(states)
    y = stack([stack([o[step] for o in all_outputs]) for step in range(x.shape[0])])
    return (y,) + tuple([stack([s[i] for s in all_states]) for i in range(count)])


def _cut(x, limit):
    return x if not limit else clip_(x, -limit, limit)


def rnn(x, w, r, b=None, initial_h=None, sequence_lens=None, direction="forward", activations=None, clip=0.0):
    """h = tanh(x·wᵀ + h·rᵀ + biases). Returns (y, y_h)."""
    x = tensor(x)
    k = x.backend

    def make_cell(d):
        f = activations[d] if activations else tanh

        def cell(part, states, r, bias):
            z = k.binary("add", part, k.matmul(states[0], r))
            return [f(_cut(z if bias is None else k.binary("add", z, bias), clip))]

        return cell

    return _recurrent(x, w, r, b, [initial_h], sequence_lens, direction, 1, make_cell)


def gru(
    x,
    w,
    r,
    b=None,
    initial_h=None,
    sequence_lens=None,
    direction="forward",
    activations=None,
    clip=0.0,
    linear_before_reset=False,
):
    """z, r gates by sigmoid, candidate by tanh; h = (1 - z) * candidate + z * h. Returns (y, y_h).

    linear_before_reset: the reset gate multiplies h·rᵀ + bias (PyTorch's way) instead of h alone (the paper's).
    activations: pairs (gates, candidate), one per direction.
    """
    x = tensor(x)
    k = x.backend

    def make_cell(d):
        f, g = activations[d] if activations else (sigmoid, tanh)

        def cell(part, states, r, bias):
            h = states[0]
            n = h.shape[1]
            r_gates, r_new = narrow(r, 1, 0, 2 * n), narrow(r, 1, 2 * n, n)
            gates = k.binary("add", narrow(part, 1, 0, 2 * n), k.matmul(h, r_gates))
            if bias is not None:
                gates = k.binary("add", gates, narrow(bias, 0, 0, 2 * n))
            gates = f(_cut(gates, clip))
            update, reset = narrow(gates, 1, 0, n), narrow(gates, 1, n, n)
            if linear_before_reset:
                back = k.matmul(h, r_new)
                if bias is not None:
                    back = k.binary("add", back, narrow(bias, 0, 2 * n, n))
                back = k.binary("mul", reset, back)
            else:
                back = k.matmul(k.binary("mul", reset, h), r_new)
                if bias is not None:
                    back = k.binary("add", back, narrow(bias, 0, 2 * n, n))
            new = g(_cut(k.binary("add", narrow(part, 1, 2 * n, n), back), clip))
            # new + update * (h - new)
            return [k.binary("add", new, k.binary("mul", update, k.binary("sub", h, new)))]

        return cell

    return _recurrent(x, w, r, b, [initial_h], sequence_lens, direction, 3, make_cell)


def lstm(
    x,
    w,
    r,
    b=None,
    initial_h=None,
    initial_c=None,
    peepholes=None,
    sequence_lens=None,
    direction="forward",
    activations=None,
    clip=0.0,
    input_forget=False,
):
    """c = f * c + i * candidate; h = o * tanh(c). Returns (y, y_h, y_c).

    peepholes (directions, 3 · d_hidden): weights of c on the gates, in the order i o f. activations: triples
    (gates, candidate, output), one per direction. input_forget: f = 1 - i.
    """
    x = tensor(x)
    k = x.backend
    peep_all = None if peepholes is None else like(peepholes, x)

    def make_cell(d):
        f, g, h_ = activations[d] if activations else (sigmoid, tanh, tanh)
        peep = None if peep_all is None else _one(peep_all, d)

        def cell(part, states, r, bias):
            h, c = states
            n = h.shape[1]
            z = k.binary("add", part, k.matmul(h, r))
            if bias is not None:
                z = k.binary("add", z, bias)
            enter, leave = narrow(z, 1, 0, n), narrow(z, 1, n, n)
            forget, new = narrow(z, 1, 2 * n, n), narrow(z, 1, 3 * n, n)
            if peep is not None:
                enter = k.binary("add", enter, k.binary("mul", c, narrow(peep, 0, 0, n)))
                forget = k.binary("add", forget, k.binary("mul", c, narrow(peep, 0, 2 * n, n)))
            enter = f(_cut(enter, clip))
            if input_forget:
                forget = k.binary("sub", k.full((), 1, x.dtype), enter)
            else:
                forget = f(_cut(forget, clip))
            c = k.binary("add", k.binary("mul", forget, c), k.binary("mul", enter, g(_cut(new, clip))))
            if peep is not None:
                leave = k.binary("add", leave, k.binary("mul", c, narrow(peep, 0, n, n)))
            return [k.binary("mul", f(_cut(leave, clip)), h_(c)), c]

        return cell

    return _recurrent(x, w, r, b, [initial_h, initial_c], sequence_lens, direction, 4, make_cell)
