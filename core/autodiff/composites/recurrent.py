"""The loops of LSTM, GRU and RNN over all steps: part (directions, steps, batch, gates * d_hidden) is the contribution
of x and of the biases, r (directions, d_hidden, gates * d_hidden) that of the state.

The backward pass keeps the results alone. It computes the gates of all steps again, by one product, and every factor of
the chain rule for all steps at once; its loop does what is left, a product and a few operations for each step. The
gradients of r take one product over all steps.
"""

from ...backend import operation
from ..arithmetic import add, call, cut, mul, number, reshaped, sub, total, unary


class _Loop:
    """The loop of a call. Tensors of several steps are (steps, directions, batch, …), those of one (1, …)."""

    def __init__(self, part, r, y, h, backwards):
        directions, steps, batch, _ = part.shape
        self.backend = part.backend
        self.shape = (directions, batch, y.shape[3])
        self.steps = list(range(steps))
        if not backwards:
            self.steps.reverse()
        self.part = self.backend.permute(part, (1, 0, 2, 3))
        self.r = reshaped(r, (1,) + r.shape)
        # The state in front of each step.
        self.before = self.shifted(y, h, backwards)

    def shifted(self, y, first, backwards):
        """The state in front of each step, from that after it and the initial one."""
        first = reshaped(first, (1,) + self.shape)
        n = y.shape[0] - 1
        parts = [cut(y, 0, 1, n), first] if backwards else [first, cut(y, 0, 0, n)]
        return self.backend.concat(parts, 0) if n else first

    def gate(self, x, i, count=1):
        n = self.shape[2]
        return cut(x, 3, i * n, count * n)

    def times(self, x, w):
        """x @ w for every step."""
        return self.backend.matmul(x, w)

    def given(self, y, g):
        """The gradients of y and of the last state h, or zeros."""
        of_y = g.get(0)
        of_h = g.get(1)
        return of_y, self.backend.full((1,) + self.shape, 0, y.dtype) if of_h is None else self.one(of_h)

    def one(self, state):
        return reshaped(state, (1,) + self.shape)

    def at(self, x, step):
        return cut(x, 0, step, 1)

    def joined(self, parts):
        """The tensors of the steps, in the order in which the loop met them, as one."""
        ordered = [None] * len(parts)
        for step, x in zip(self.steps, parts):
            ordered[step] = x
        return self.backend.concat(ordered, 0) if len(ordered) > 1 else ordered[0]

    def of_part(self, x):
        return self.backend.permute(x, (1, 0, 2, 3))

    def of_weight(self, x, g):
        """The gradient of w where g is that of x @ w."""
        x, g = self.rows(x), self.rows(g)
        return self.backend.matmul(self.backend.permute(x, (0, 2, 1)), g)

    def rows(self, x):
        steps, directions, batch, width = x.shape
        return reshaped(self.backend.permute(x, (1, 0, 2, 3)), (directions, steps * batch, width))


def _turned(x):
    return x.backend.permute(x, (0, 1, 3, 2))


def _rest(x):
    """1 - x."""
    return sub(number(1, x), x)


def _slope(y):
    """The derivative of sigmoid, from its value."""
    return mul(y, _rest(y))


def _tanh_slope(y):
    return sub(number(1, y), mul(y, y))


def _unrolled(part, states, backwards, cell):
    """(y, states) by a step after the other, where the backend has no loop of its own."""
    directions, steps, batch, _ = part.shape
    y = [None] * steps
    for i in range(steps):
        at = steps - 1 - i if backwards else i
        states = cell(reshaped(cut(part, 1, at, 1), (directions, batch, part.shape[3])), states)
        y[at] = reshaped(states[0], (1,) + states[0].shape)
    return (part.backend.concat(y, 0) if steps > 1 else y[0]), states


def lstm_steps(part, r, states, backwards):
    """Gates i o f c; see functional/recurrent/layers.py."""
    own = operation(part.backend, "lstm_steps")
    h, c = states
    n = r.shape[1]

    def cell(x, states):
        z = add(x, part.backend.matmul(states[0], r))
        gates = call("sigmoid", cut(z, 2, 0, 3 * n))
        enter, leave, keep = [cut(gates, 2, i * n, n) for i in range(3)]
        c = add(mul(keep, states[1]), mul(enter, unary("tanh", cut(z, 2, 3 * n, n))))
        return [mul(leave, unary("tanh", c)), c]

    if own:
        y, last = own(part, r, states, backwards)
    else:
        y, last = _unrolled(part, states, backwards, cell)

    def pull(g):
        loop = _Loop(part, r, y, h, backwards)
        z = add(loop.part, loop.times(loop.before, loop.r))
        gates, new = call("sigmoid", loop.gate(z, 0, 3)), unary("tanh", loop.gate(z, 3))
        enter, leave, keep = [loop.gate(gates, i) for i in range(3)]
        gain, cells, at = mul(enter, new), [], loop.one(c)
        for step in reversed(loop.steps):
            at = add(mul(loop.at(keep, step), at), loop.at(gain, step))
            cells.append(at)
        cells.reverse()
        cell = loop.joined(cells)
        squashed = unary("tanh", cell)
        of_cell = mul(leave, _tanh_slope(squashed))
        # What the gradients of c (of h for the gate o) are multiplied with.
        factors = loop.backend.concat(
            [mul(new, _slope(enter)), mul(squashed, _slope(leave)), mul(loop.shifted(cell, c, backwards), _slope(keep)),
             mul(enter, _tanh_slope(new))], 3,
        )  # fmt: skip
        of_y, of_h = loop.given(y, g)
        of_c = number(0, y) if g.get(2) is None else loop.one(g[2])
        back, found = _turned(loop.r), []
        for step in loop.steps:
            if of_y is not None:
                of_h = add(of_h, loop.at(of_y, step))
            of_c = add(of_c, mul(of_h, loop.at(of_cell, step)))
            found.append(mul(loop.backend.concat([of_c, of_h, of_c, of_c], 3), loop.at(factors, step)))
            of_h = loop.times(found[-1], back)
            of_c = mul(of_c, loop.at(keep, step))
        of_z = loop.joined(found)
        of_states = [reshaped(of_h, h.shape), reshaped(of_c, h.shape)]
        return [loop.of_part(of_z), loop.of_weight(loop.before, of_z)] + of_states

    return (y, list(last)), pull


def gru_steps(part, r, states, backwards, bias_new, linear_before_reset):
    """Gates z r h; see functional/recurrent/layers.py."""
    own = operation(part.backend, "gru_steps")
    h, n = states[0], r.shape[1]
    r_gates, r_new = cut(r, 2, 0, 2 * n), cut(r, 2, 2 * n, n)

    def cell(x, states):
        before = states[0]
        matmul = part.backend.matmul
        gates = call("sigmoid", add(cut(x, 2, 0, 2 * n), matmul(before, r_gates)))
        update, reset = cut(gates, 2, 0, n), cut(gates, 2, n, n)
        if linear_before_reset:
            seen = matmul(before, r_new)
            seen = mul(reset, seen if bias_new is None else add(seen, bias_new))
        else:
            seen = matmul(mul(reset, before), r_new)
        new = unary("tanh", add(cut(x, 2, 2 * n, n), seen))
        return [add(new, mul(update, sub(before, new)))]

    if own:
        y, last = own(part, r, states, backwards, bias_new, linear_before_reset)
    else:
        y, last = _unrolled(part, states, backwards, cell)

    def pull(g):
        loop = _Loop(part, r, y, h, backwards)
        w_gates, w_new = loop.gate(loop.r, 0, 2), loop.gate(loop.r, 2)
        gates = call("sigmoid", add(loop.gate(loop.part, 0, 2), loop.times(loop.before, w_gates)))
        update, reset = loop.gate(gates, 0), loop.gate(gates, 1)
        if linear_before_reset:
            seen = loop.times(loop.before, w_new)
            seen = seen if bias_new is None else add(seen, bias_new)
            new = unary("tanh", add(loop.gate(loop.part, 2), mul(reset, seen)))
        else:
            held = mul(reset, loop.before)
            new = unary("tanh", add(loop.gate(loop.part, 2), loop.times(held, w_new)))
        of_new = mul(_rest(update), _tanh_slope(new))
        of_update = mul(sub(loop.before, new), _slope(update))
        of_y, of_h = loop.given(y, g)
        join, each, news = loop.backend.concat, [], []
        if linear_before_reset:  # everything that the product gives has a gradient linear in that of h
            factors = join([of_update, mul(of_new, mul(seen, _slope(reset))), mul(of_new, reset)], 3)
            back = _turned(loop.r)
        else:
            factors = join([of_update, mul(loop.before, _slope(reset))], 3)
            back, back_new = _turned(w_gates), _turned(w_new)
        for step in loop.steps:
            if of_y is not None:
                of_h = add(of_h, loop.at(of_y, step))
            news.append(mul(of_h, loop.at(of_new, step)))
            rest = mul(of_h, loop.at(update, step))
            if linear_before_reset:
                each.append(mul(join([of_h, of_h, of_h], 3), loop.at(factors, step)))
            else:
                of_held = loop.times(news[-1], back_new)
                each.append(mul(join([of_h, of_held], 3), loop.at(factors, step)))
                rest = add(rest, mul(of_held, loop.at(reset, step)))
            of_h = add(rest, loop.times(each[-1], back))
        each, news = loop.joined(each), loop.joined(news)
        of_part = loop.of_part(join([loop.gate(each, 0, 2), news], 3))
        if linear_before_reset:
            of_r = loop.of_weight(loop.before, each)
        else:
            of_r = join([loop.of_weight(loop.before, each), loop.of_weight(held, news)], 2)
        found = [of_part, of_r, reshaped(of_h, h.shape)]
        if bias_new is not None:
            found.append(reshaped(total(loop.gate(each, 2), (0, 2), False), bias_new.shape))
        return found

    return (y, list(last)), pull


def rnn_steps(part, r, states, backwards):
    """h = tanh(part + h @ r); see functional/recurrent/layers.py."""
    h = states[0]
    y, last = _unrolled(part, states, backwards, lambda x, s: [unary("tanh", add(x, part.backend.matmul(s[0], r)))])

    def pull(g):
        loop = _Loop(part, r, y, h, backwards)
        slope, back, found = _tanh_slope(y), _turned(loop.r), []
        of_y, of_h = loop.given(y, g)
        for step in loop.steps:
            if of_y is not None:
                of_h = add(of_h, loop.at(of_y, step))
            found.append(mul(of_h, loop.at(slope, step)))
            of_h = loop.times(found[-1], back)
        of_z = loop.joined(found)
        return [loop.of_part(of_z), loop.of_weight(loop.before, of_z), reshaped(of_h, h.shape)]

    return (y, list(last)), pull
