"""All steps of a recurrent layer as one node, for plans that leave their number open (core/functional/recurrent).

A kernel computes unit by unit. What it computes for a unit is recorded from the layer's own cell, on tensors of one
unit: `Unit` has the graph, with placeholders for what the kernel provides.
"""

from ..kernels.recurrence import serves
from .node import is_inline, topological


class Unit:
    """One step of one hidden unit. part: the placeholders of its gates' shares of x, states: of its states; own: of its
    own weights; products: for each product with a state, (the node that is multiplied, the placeholders of the unit's
    columns); results: the nodes of its new states. backwards: whether steps are taken from the last to the first."""

    def __init__(self, backend, cell, gates, states, backwards):
        self.backend = backend
        self.dtype = cell.dtype
        self.backwards = backwards
        self.products = []
        self._columns = [m.shape[2] // m.shape[1] for m in cell.matrices]
        given = [self._given() for _ in range(gates)]
        self.part = [x.data for x in given]
        before = [self._given() for _ in range(states)]
        self.states = [x.data for x in before]
        own = [self._given() for _ in cell.own]
        self.own = [x.data for x in own]
        cell.own, cell.hidden, cell.times = own, 1, self._times
        self.results = [x.data for x in cell(self._joined(given), before)]

    def _given(self):
        return self.backend._tensor("input", (), "unit", self.dtype, (1, 1, 1))

    def _joined(self, tensors):
        return self.backend.concat(tensors, 2) if len(tensors) > 1 else tensors[0]

    def _times(self, x, i):
        columns = [self._given() for _ in range(self._columns[i])]
        self.products.append((x.data, [c.data for c in columns]))
        return self._joined(columns)

    def computable(self):
        """Whether a kernel can compute it: apart from the placeholders nothing is read."""
        known = self.part + self.states + self.own
        for _, columns in self.products:
            known = known + columns
        roots = self.results + [x for x, _ in self.products]
        return not [n for n in topological(roots) if n not in known and not is_inline(n)]


def recurrent_steps(backend, cell, part, states, backwards, lengths):
    """(y (steps, directions, batch, hidden), [the last states]) of all steps of `cell`, whose number is open; None if
    no kernel serves them. part (directions, steps, batch, gates * hidden): the shares of x; states: as in the cell's
    call; lengths (1, batch, 1): the lengths of the sequences, or None. The cell is used up."""
    directions, steps, batch, width = part.shape
    hidden = int(cell.hidden)  # the kernel is made for it
    if not cell.matrices or not serves(steps, hidden, cell.matrices, backend.options):
        return None
    tensors = [part] + list(states) + list(cell.matrices) + list(cell.own) + ([] if lengths is None else [lengths])
    unit = Unit(backend, cell, width // hidden, len(states), backwards)
    if not unit.computable():
        return None
    shape = (steps + len(states), directions, batch, hidden)  # the last states after the steps
    srcs = tuple([x.data for x in tensors])
    whole = backend._tensor("recurrence", srcs, (unit, lengths is not None), part.dtype, shape)
    ones = (1, 1, 1, 1)
    y = backend.slice(whole, (0, 0, 0, 0), (steps,) + shape[1:], ones)
    last = []
    for i in range(len(states)):
        x = backend.slice(whole, (steps + i, 0, 0, 0), (1,) + shape[1:], ones)
        last.append(backend.reshape(x, shape[1:]))
    return y, last
