"""Runs training steps (core/training_step) in WebAssembly. The values are bytes in Python's memory between steps."""

from emberlet import dtypes
from emberlet.backend.axes import closed
from emberlet.backend.structure import assemble, leaves
from emberlet.backend.tracing import ValueNeeded
from emberlet.sizes.questions import known_equal
from emberlet.tensor import Tensor

from ..planned import Planned
from ..record.node import Node
from ..record.tracing import trace
from ..run import storage
from ..training import new_values, refuse_open


class Engine:
    """The plans of a step. The current values are known by a list of their words."""

    CUT = ValueNeeded
    NUMBERS = dtypes.float32

    def __init__(self, backend):
        self.backend = backend
        self.drawing = backend.host
        self.like = []  # a Node of each value's dtype and shape

    def begin(self, count, states):
        """Start with `count` parameters, to be loaded, and the states; returns the values."""
        self.like = [None] * (count + len(states))
        values = [None] * len(self.like)
        for k in range(len(states)):
            self.load(values, count + k, states[k])
        return values

    def load(self, values, i, x):
        """Take the elements of x as value number i."""
        like = self.like[i] = Node("input", (), None, x.dtype, x.shape, self.backend.given(x.dtype))
        values[i] = bytes(storage.widen(self.backend.to_bytes(x), x.dtype, x.size, like.word))

    def read(self, values, i):
        """Value number i."""
        n = self.like[i]
        return Tensor(Node("data", (), values[i], n.dtype, n.shape, n.word), n.dtype, n.shape, self.backend)

    def values(self, values):
        """Tensors of the dtypes and shapes of all values."""
        return [Tensor(n, n.dtype, n.shape, self.backend) for n in self.like]

    def trace(self, function, arguments, opening):
        """Trace the function without making a plan of it."""
        trace(function, arguments, self.backend, None if opening is None else opening.shapes)

    def plan(self, function, arguments, opening):
        """The plan of a StepFunction."""
        return StepPlan(function, arguments, self, opening)

    def run(self, plan, values, numbers, words, batch, atoms):
        """(what the loss function returned, the new values). atoms: the values of the Opening's."""
        return plan.step(self, values, numbers, words, batch, atoms)


class StepPlan(Planned):
    """The plan of a step."""

    def __init__(self, function, arguments, engine, opening):
        self.function = function
        first = 1 + len(function.draws)
        self.positions = {first + i: i for i in range(len(engine.like))}  # argument -> number of the value
        Planned.__init__(self, function, arguments, engine.backend, {}, opening=opening)
        self.states = new_values(self.structure, function, self.roots, engine.like)
        found = leaves(self.structure[1][0])
        refuse_open(found)
        self._given = [k for kind, k in found if kind == "tensor"]

    def __repr__(self):
        return "{} kernels{}".format(len(self.plan.steps), " for batches of every length" if self.opening else "")

    def step(self, engine, values, numbers, words, batch, atoms):
        """(what the loss function returned, the new values)."""
        host = engine.backend.host
        arguments = [host.from_list([float(n) for n in numbers], dtypes.float32, (len(numbers),))] + words
        arguments += [None] * len(values) + batch
        sizes = None if atoms is None else tuple(atoms[: len(self.opening.names)])
        data = self.words(arguments, sizes, self.positions)
        for k in range(len(self.arguments)):
            i = self.positions.get(self.arguments[k].arg)
            if i is not None:
                data[k] = values[i]
        found = self.program.run(data, sizes)
        tensors, new = [None] * len(self.roots), list(values)
        at = 0
        words = {}
        for k in range(len(self.roots)):
            empty = known_equal(self.roots[k].count, 0)
            words[k] = b"" if empty else found[at]
            at += 0 if empty else 1
        for k in self._given:
            r = self.roots[k]
            shape = closed(r.shape, atoms)
            tensors[k] = Tensor(Node("data", (), words[k], r.dtype, shape, r.word), r.dtype, shape, engine.backend)
        for k, i in self.states:
            new[i] = words[k]
        return assemble(self.structure[1][0], tensors), new
