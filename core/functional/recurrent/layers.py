"""Recurrent layers over whole sequences: ONNX RNN, GRU and LSTM, with weights in ONNX's layout.

x (steps, batch, d_input); w (directions, gates * d_hidden, d_input); r (directions, gates * d_hidden, d_hidden);
b (directions, 2 * gates * d_hidden) or None: the biases of x, then those of the state. Initial states (directions,
batch, d_hidden) or None for zeros. The gates are in the order i o f c (LSTM), z r h (GRU). Returned: y (steps,
directions, batch, d_hidden) and the last states. batch_first puts the batch first in x, y and states (ONNX's layout=1).

direction: "forward", "reverse" or "bidirectional". sequence_lens (batch,): steps beyond them give zeros and leave the
state unchanged. clip: the bound on the inputs of the gates' activations. activations: ONNX's names, or functions, for
each direction in turn; alphas and betas: their parameters, in order, for those that have any.

The products of all steps with w are computed at once. Both directions run as one batch if their activations are equal
and the backend does not want them apart.
"""

from ... import dtypes
from ...backend import operation
from ...errors import ShapeError
from ..elementwise.activations import sigmoid
from ..elementwise.activations_by_name import activation
from ..elementwise.arithmetic import clip as clip_
from ..elementwise.transcendental import tanh
from ..movement.rearranging import flip, narrow, permute_dims, reshape
from ..operands import astype, floating, like, tensor
from ..overriding import composite

_default_functions = {}  # activation names -> functions


def _are(a, b):
    """Whether a and b are one function. CPython wraps a public function once somebody has asked for it."""
    return getattr(a, "__wrapped__", a) is getattr(b, "__wrapped__", b)


_REVERSED = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def _functions(options, directions):
    """A tuple of functions for each direction, or one tuple if the directions do not differ."""
    activations, alphas, betas, defaults = options
    if not (activations or alphas or betas):
        if defaults not in _default_functions:
            _default_functions[defaults] = tuple([activation(name) for name in defaults])
        return [_default_functions[defaults]]
    names = list(activations) if activations else [name for _ in range(directions) for name in defaults]
    if len(names) != len(defaults) * directions:
        raise ShapeError("expected {} activations, found {}".format(len(defaults) * directions, names))
    alphas, betas = list(alphas), list(betas)
    found = [activation(name, alphas, betas) for name in names]
    each = [tuple(found[i * len(defaults) : (i + 1) * len(defaults)]) for i in range(directions)]
    return each[:1] if each[0] == each[-1] else each


def _check(what, x, w, r, b, gates, directions):
    hidden = r.shape[-1]
    fits = x.ndim == 3 and w.ndim == 3 and w.shape == (directions, gates * hidden, x.shape[2])
    fits = fits and r.shape == (directions, gates * hidden, hidden)
    if not fits or (b is not None and b.shape != (directions, 2 * gates * hidden)):
        raise ShapeError(
            "{}: input {} does not fit weights {}, {} and bias {} of {} direction(s)".format(
                what, x.shape, w.shape, r.shape, None if b is None else b.shape, directions
            )
        )


def _part(x, first, count):
    """Directions `first` to `first` + `count` of x (directions, …)."""
    return x if count == x.shape[0] else narrow(x, 0, first, count)


class Layer:
    """The operands of one call, in the layout (directions, …), and the loop over the steps."""

    def __init__(self, what, x, w, r, b, gates, initial, sequence_lens, direction, batch_first, functions):
        if direction not in _REVERSED:
            raise ShapeError("{}: direction is forward, reverse or bidirectional, found {!r}".format(what, direction))
        self.turned = _REVERSED[direction]
        self.functions = _functions(functions, len(self.turned))
        self.named = not [f for f in functions[0] or () if not isinstance(f, str)]
        x = floating(x)
        self.batch_first = batch_first
        self.x = permute_dims(x, (1, 0, 2)) if batch_first else x
        self.w, self.r = self.weights(w, r)
        self.b = None if b is None else like(b, x)
        _check(what, self.x, self.w, self.r, self.b, gates, len(self.turned))
        shape = (len(self.turned), self.x.shape[1], self.r.shape[2])
        self.initial = [self._state(what, s, shape) for s in initial]
        self.lengths = None
        if sequence_lens is not None:
            lengths = astype(tensor(sequence_lens, x.backend), dtypes.int32)
            self.lengths = reshape(lengths, (1, shape[1], 1))

    def weights(self, w, r):
        """w and r as tensors of x's dtype."""
        return like(w, self.x), like(r, self.x)

    def project(self, x, first, count):
        """x (rows, d_input) @ w of `count` directions, starting at the first: (count, rows, gates * d_hidden)."""
        backend = x.backend
        w = permute_dims(_part(self.w, first, count), (0, 2, 1))
        return backend.matmul(reshape(x, (1,) + x.shape), w)

    def _state(self, what, state, shape):
        if state is None:
            return self.x.backend.full(shape, 0, self.x.dtype)
        state = like(state, self.x)
        state = permute_dims(state, (1, 0, 2)) if self.batch_first else state
        if state.shape != shape:
            raise ShapeError("{}: an initial state of shape {}, expected {}".format(what, state.shape, shape))
        return state

    def peephole_weights(self, peepholes):
        """(directions, 1, 3 * d_hidden), or None."""
        if peepholes is None:
            return None
        peepholes, shape = like(peepholes, self.x), (len(self.turned), 3 * self.r.shape[2])
        if peepholes.shape != shape:
            raise ShapeError("lstm: peepholes {}, expected {}".format(peepholes.shape, shape))
        return reshape(peepholes, (shape[0], 1, shape[1]))

    def run(self, make_cell):
        """(y, the last states). make_cell(functions, transposed r, biases of x, biases of the state, which directions)
        returns cell(part, states) -> new states, each (directions, batch, …)."""
        directions = len(self.turned)
        apart = operation(self.x.backend, "directions_apart")
        if len(self.functions) == 1 and not (directions > 1 and apart and apart(self.r)):
            parts = [self._run(make_cell, self.functions[0], 0, directions)]
        else:
            parts = [self._run(make_cell, self.functions[d % len(self.functions)], d, 1) for d in range(directions)]
        backend = self.x.backend
        y = backend.concat([p[0] for p in parts], 1) if len(parts) > 1 else parts[0][0]
        states = [backend.concat([p[1][i] for p in parts], 0) if len(parts) > 1 else parts[0][1][i]
                  for i in range(len(self.initial))]  # fmt: skip
        if self.batch_first:
            y, states = permute_dims(y, (2, 0, 1, 3)), [permute_dims(s, (1, 0, 2)) for s in states]
        return (y,) + tuple(states)

    def _run(self, make_cell, functions, first, count):
        backend = self.x.backend
        steps, batch, width = self.x.shape
        r = _part(self.r, first, count)
        gates, hidden = r.shape[1:]
        bias_x = bias_h = None
        if self.b is not None:
            b = reshape(_part(self.b, first, count), (count, 1, 2 * gates))
            bias_x, bias_h = narrow(b, 2, 0, gates), narrow(b, 2, gates, gates)
        cell = make_cell(functions, permute_dims(r, (0, 2, 1)), bias_x, bias_h, first, count)
        part = self.project(reshape(self.x, (steps * batch, width)), first, count)
        if cell.bias is not None:
            part = backend.binary("add", part, cell.bias)
        part = reshape(part, (count, steps, batch, gates))
        # A single reverse direction counts backwards; of two directions, the second is flipped.
        backwards = self.turned[first : first + count]
        if count == 2:
            part = backend.concat((narrow(part, 0, 0, 1), flip(narrow(part, 0, 1, 1), 1)), 0)
        states = [_part(s, first, count) for s in self.initial]
        if type(steps) is not int and self.named:  # a length that a plan leaves open
            own = operation(backend, "recurrent_steps")
            found = own(cell, part, states, backwards == (True,), self.lengths) if own else None
            if found:
                return self._in_order(found[0], count), found[1]
        fast = cell.all_steps() if steps and self.lengths is None else None
        if fast:
            y, states = fast(part, states, backwards == (True,))
            return self._in_order(y, count), states
        hint = operation(backend, "steps_one_by_one") if steps > 1 else None
        if hint:
            hint(steps, self.x)
        outputs = [None] * steps
        for step in range(steps):
            at = steps - 1 - step if backwards == (True,) else step
            new = cell(reshape(narrow(part, 1, at, 1), (count, batch, gates)), states)
            if self.lengths is None:
                out = new[0]
            else:
                alive = self._alive(at, steps, count)
                out = backend.where(alive, new[0], backend.full((), 0, self.x.dtype))
                new = [backend.where(alive, n, s) for n, s in zip(new, states)]
            states = new
            outputs[at] = reshape(out, (1, count, batch, hidden))
        if not steps:
            return backend.full((0, count, batch, hidden), 0, self.x.dtype), states
        return self._in_order(backend.concat(outputs, 0) if steps > 1 else outputs[0], count), states

    def _in_order(self, y, count):
        """y (steps, directions, …) with the second of two directions in the order of x's steps."""
        if count == 1:
            return y
        return y.backend.concat((narrow(y, 1, 0, 1), flip(narrow(y, 1, 1, 1), 0)), 1)

    def _alive(self, at, steps, count):
        """bool (count, batch, 1): whether a sequence has step `at`; the second of two directions counts backwards."""
        backend = self.x.backend
        wanted = [at] if count == 1 else [at, steps - 1 - at]
        return backend.binary("lt", backend.from_list(wanted, dtypes.int32, (count, 1, 1)), self.lengths)


class _Cell:
    """One step of the recurrence; `bias` has been added to the products with x beforehand.

    matrices: the matrices that `times` multiplies states with; own: weights of single units, (directions, 1, hidden).
    Apart from `times`, each unit is computed from its own gates and states, so that a backend may compute unit by unit.
    """

    def __init__(self, layer, r, clip):
        self.backend = layer.x.backend
        self.dtype = layer.x.dtype
        self.r = r
        self.matrices = [r]
        self.own = []
        self.hidden = r.shape[1]
        self.clip = clip
        self.bias = None

    def gate(self, x, i, count=1):
        """Gates i to i + count of x (directions, batch, gates * hidden)."""
        return narrow(x, 2, i * self.hidden, count * self.hidden)

    def times(self, x, i):
        """x (directions, batch, hidden) @ matrix i."""
        return self.backend.matmul(x, self.matrices[i])

    def bounded(self, x):
        return clip_(x, -self.clip, self.clip) if self.clip else x

    def all_steps(self):
        """The backend's kernel for all steps at once: a function of (products with x, states, whether backwards), or
        None."""

    def one_minus(self, x):
        return self.backend.binary("sub", self.backend.full((), 1, self.dtype), x)


def _sum(a, b):
    return b if a is None else a if b is None else a.backend.binary("add", a, b)


class _RnnCell(_Cell):
    def __init__(self, layer, clip, functions, r, bias_x, bias_h):
        _Cell.__init__(self, layer, r, clip)
        self.bias = _sum(bias_x, bias_h)
        self.f = functions[0]

    def all_steps(self):
        fast = operation(self.backend, "rnn_steps")
        if fast is None or self.clip or not _are(self.f, tanh):
            return None
        return lambda part, states, backwards: fast(part, self.r, states, backwards)

    def __call__(self, part, states):
        backend = self.backend
        return [self.f(self.bounded(backend.binary("add", part, self.times(states[0], 0))))]


class _GruCell(_Cell):
    def __init__(self, layer, clip, functions, r, bias_x, bias_h, linear_before_reset):
        _Cell.__init__(self, layer, r, clip)
        self.f, self.g = functions
        self.linear_before_reset = linear_before_reset
        self.bias = bias_x
        if bias_x is not None:
            n = self.hidden
            # With linear_before_reset the reset gate multiplies this bias too, so it is kept apart.
            shared = 2 * n if linear_before_reset else 3 * n
            rest = [narrow(bias_x, 2, shared, n)] if linear_before_reset else []
            self.bias = self.backend.concat(
                [self.backend.binary("add", narrow(bias_x, 2, 0, shared), narrow(bias_h, 2, 0, shared))] + rest, 2
            )
            self.own = [narrow(bias_h, 2, 2 * n, n)] if linear_before_reset else []
        if not linear_before_reset:
            self.matrices = [self.gate(r, 0, 2), self.gate(r, 2)]

    def all_steps(self):
        fast = operation(self.backend, "gru_steps")
        if fast is None or self.clip or not (_are(self.f, sigmoid) and _are(self.g, tanh)):
            return None
        rest = (self.own[0] if self.own else None, self.linear_before_reset)
        return lambda part, states, backwards: fast(part, self.r, states, backwards, *rest)

    def __call__(self, part, states):
        backend, h = self.backend, states[0]
        back = self.times(h, 0)
        gates = self.f(self.bounded(backend.binary("add", self.gate(part, 0, 2), self.gate(back, 0, 2))))
        update, reset = self.gate(gates, 0), self.gate(gates, 1)
        if self.linear_before_reset:
            back = backend.binary("mul", reset, _sum(self.gate(back, 2), self.own[0] if self.own else None))
        else:
            back = self.times(backend.binary("mul", reset, h), 1)
        new = self.g(self.bounded(backend.binary("add", self.gate(part, 2), back)))
        return [
            backend.binary("add", backend.binary("mul", self.one_minus(update), new), backend.binary("mul", update, h))
        ]


class LstmCell(_Cell):
    def __init__(self, layer, clip, functions, r, bias_x, bias_h, peepholes, input_forget):
        _Cell.__init__(self, layer, r, clip)
        self.bias = _sum(bias_x, bias_h)
        self.f, self.g, self.h = functions
        self.input_forget = input_forget
        self.own = [] if peepholes is None else [self.gate(peepholes, i) for i in range(3)]

    def plain(self):
        """Whether the cell has the usual functions and no option, as backends compute it."""
        if self.clip or self.input_forget or self.own:
            return False
        return _are(self.f, sigmoid) and _are(self.g, tanh) and _are(self.h, tanh)

    def all_steps(self):
        fast = operation(self.backend, "lstm_steps")
        if fast is None or not self.plain():
            return None
        return lambda part, states, backwards: fast(part, self.r, states, backwards)

    def back(self, h):
        """The state's contribution to all gates."""
        return self.times(h, 0)

    def _seen(self, z, i, c):
        """Gate i of z plus its peephole on the cell state."""
        return self.backend.binary("add", self.gate(z, i), self.backend.binary("mul", self.own[i], c))

    def __call__(self, part, states):
        backend = self.backend
        h, c = states
        z = backend.binary("add", part, self.back(h))
        if not self.own:
            gates = self.f(self.bounded(self.gate(z, 0, 3)))
            enter, leave, keep = [self.gate(gates, i) for i in range(3)]
        else:
            enter = self.f(self.bounded(self._seen(z, 0, c)))
            keep = None if self.input_forget else self.f(self.bounded(self._seen(z, 2, c)))
        if self.input_forget:
            keep = self.one_minus(enter)
        new = self.g(self.bounded(self.gate(z, 3)))
        c = backend.binary("add", backend.binary("mul", keep, c), backend.binary("mul", enter, new))
        if self.own:
            leave = self.f(self.bounded(self._seen(z, 1, c)))
        return [backend.binary("mul", leave, self.h(c)), c]


#: function; ONNX RNN -> tuple[Tensor, Tensor]
@composite
def rnn(
    x, w, r, b=None, *, initial_h=None, sequence_lens=None, direction="forward", activations=None, alphas=(), betas=(),
    clip=0.0, batch_first=False,
):  # fmt: skip
    """h = tanh(x @ wᵀ + h @ rᵀ + biases). Returns (y, last h); see the head of this file for shapes and options.

    activations: one per direction, by default ("Tanh",). Raises ShapeError if the shapes do not match.
    """
    functions = (activations, alphas, betas, ("Tanh",))
    layer = Layer("rnn", x, w, r, b, 1, [initial_h], sequence_lens, direction, batch_first, functions)
    return layer.run(lambda fs, r, bias_x, bias_h, first, count: _RnnCell(layer, clip, fs, r, bias_x, bias_h))


#: function; ONNX GRU -> tuple[Tensor, Tensor]
@composite
def gru(
    x, w, r, b=None, *, initial_h=None, sequence_lens=None, direction="forward", activations=None, alphas=(), betas=(),
    clip=0.0, linear_before_reset=False, batch_first=False,
):  # fmt: skip
    """z, r = sigmoid of their gates; n = tanh(x @ wᵀ + (r * h) @ rᵀ); h = (1 - z) * n + z * h. Returns (y, last h).

    linear_before_reset: n = tanh(x @ wᵀ + r * (h @ rᵀ + bias)), as in PyTorch and cuDNN. activations: two per
    direction, by default ("Sigmoid", "Tanh"). Shapes and options: at the head of this file.
    """
    functions = (activations, alphas, betas, ("Sigmoid", "Tanh"))
    layer = Layer("gru", x, w, r, b, 3, [initial_h], sequence_lens, direction, batch_first, functions)
    return layer.run(
        lambda fs, r, bias_x, bias_h, first, count: _GruCell(layer, clip, fs, r, bias_x, bias_h, linear_before_reset)
    )


#: function; ONNX LSTM -> tuple[Tensor, Tensor, Tensor]
@composite
def lstm(
    x, w, r, b=None, *, initial_h=None, initial_c=None, peepholes=None, sequence_lens=None, direction="forward",
    activations=None, alphas=(), betas=(), clip=0.0, input_forget=False, batch_first=False,
):  # fmt: skip
    """i, o, f = sigmoid of their gates; c = f * c + i * tanh(its gate); h = o * tanh(c). Returns (y, last h, last c).

    peepholes (directions, 3 * d_hidden): the weights of c in the gates i o f. input_forget: f is 1 - i. activations:
    three per direction, by default ("Sigmoid", "Tanh", "Tanh"). Shapes and options: at the head of this file.
    """
    functions = (activations, alphas, betas, ("Sigmoid", "Tanh", "Tanh"))
    layer = Layer("lstm", x, w, r, b, 4, [initial_h, initial_c], sequence_lens, direction, batch_first, functions)
    peepholes = layer.peephole_weights(peepholes)

    def make_cell(fs, r, bias_x, bias_h, first, count):
        seen = None if peepholes is None else _part(peepholes, first, count)
        return LstmCell(layer, clip, fs, r, bias_x, bias_h, seen, input_forget)

    return layer.run(make_cell)
