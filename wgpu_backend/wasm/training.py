"""Runs training steps (core/training_step) in WebAssembly. The values are bytes in Python's memory between steps."""

from emberlet.backend.axes import closed
from emberlet.backend.structure import assemble, leaves
from emberlet.sizes.questions import known_equal
from emberlet.tensor import Tensor

from ..planned import Planned
from ..record.node import Node
from ..run import storage
from ..training import RecordedEngine, arguments_of, new_values, refuse_open


class Engine(RecordedEngine):
    """The plans of a step. The current values are known by a list of their words."""

    def begin(self, count, states):
        """Start with `count` parameters, to be loaded, and the states; returns the values."""
        self.like = [None] * (count + len(states))
        values = [None] * len(self.like)
        for k in range(len(states)):
            self.load(values, count + k, states[k])
        return values

    def load(self, values, i, x):
        """Take the elements of x as value number i."""
        like = self.like[i] = self.like_of(x)
        values[i] = bytes(storage.widen(self.backend.to_bytes(x), x.dtype, x.size, like.word))

    def read(self, values, i):
        """Value number i."""
        n = self.like[i]
        return Tensor(Node("data", (), values[i], n.dtype, n.shape, n.word), n.dtype, n.shape, self.backend)

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
        arguments = arguments_of(engine, numbers, words, batch)
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
