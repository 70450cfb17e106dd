"""Runs training steps (core/training_step) on the GPU: one submission each.

Parameters and states have two buffers each: a step reads one and computes the new value into the other, and the next
step does the reverse. Nothing is read back: results are tensors in the GPU's memory.
"""

from emberlet import dtypes
from emberlet.backend.axes import closed
from emberlet.backend.structure import assemble, leaves
from emberlet.backend.tracing import ValueNeeded
from emberlet.sizes.polynomial import at
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open
from emberlet.tensor import Tensor
from emberlet.training_step.function import loss_in

from .planned import Planned
from .record.node import Node
from .record.tracing import trace
from .run.carried import Call, copy_pages
from .run.open_program import OpenProgram
from .run.runtime import Program

AHEAD = 16  # steps that are submitted before Python waits for the GPU


class RecordedEngine:
    """What engines share whose steps are recorded. like: a Node of each value's dtype and shape."""

    CUT = ValueNeeded
    NUMBERS = dtypes.float32

    def __init__(self, backend):
        self.backend = backend
        self.drawing = backend.host
        self.like = []

    def values(self, _):
        """Tensors of the dtypes and shapes of all values."""
        return [Tensor(n, n.dtype, n.shape, self.backend) for n in self.like]

    def trace(self, function, arguments, opening):
        """Trace the function without making a plan of it."""
        trace(function, arguments, self.backend, None if opening is None else opening.shapes)

    def like_of(self, x):
        """The Node of a value like x."""
        return Node("input", (), None, x.dtype, x.shape, self.backend.given(x.dtype))


def arguments_of(engine, numbers, words, batch):
    """The arguments of a StepFunction, None for the values."""
    first = engine.backend.host.from_list([float(n) for n in numbers], dtypes.float32, (len(numbers),))
    return [first] + words + [None] * len(engine.like) + batch


class Engine(RecordedEngine):
    """The memory of the parameters and states of a step, and its plans. They are known by the side, 0 or 1, that holds
    the current values."""

    def __init__(self, backend):
        RecordedEngine.__init__(self, backend)
        self.sides = ([], [])  # Allocations
        self.generation = 0  # of the allocations
        self._submitted = 0

    def begin(self, count, states):
        """Start with `count` parameters, to be loaded, and copies of the states; returns the side."""
        self.sides = ([None] * count, [None] * count)
        self.like = [None] * count
        for x in states:
            for values in self.sides + (self.like,):
                values.append(None)
            self.load(0, len(self.like) - 1, x)
        return 0

    def load(self, side, i, x):
        """Take the elements of x as value number i."""
        backend, device = self.backend, self.backend.device
        like = self.like[i]
        if like is None or like.dtype is not x.dtype or like.shape != x.shape:
            like = self.like[i] = self.like_of(x)
            self.sides[0][i] = self.sides[1][i] = device.allocate(like.nbytes)
            self.generation += 1
        if x.data.op not in ("data", "buffer"):
            backend.realize(x)
        if x.data.op == "data" and x.data.word == like.word:
            device.write(self.sides[side][i], x.data.arg)
        elif x.data.op == "buffer" and x.data.word == like.word:
            self._copy([(x.data.buffer, self.sides[side][i])])
        else:
            from .run import storage

            words = storage.widen(backend.to_bytes(x), x.dtype, x.size, like.word)
            device.write(self.sides[side][i], words)

    def _copy(self, pairs):
        device = self.backend.device
        device.enter()
        try:
            encoder = device.raw.create_command_encoder()
            for source, target in pairs:
                copy_pages(encoder, source, target)
            device.queue.submit([encoder.finish()])
        finally:
            device.leave()

    def read(self, side, i):
        """A copy of value number i, in the GPU's memory."""
        like = self.like[i]
        found = _buffer(like, self.backend)
        self._copy([(self.sides[side][i], found.buffer)])
        return Tensor(found, like.dtype, like.shape, self.backend)

    def plan(self, function, arguments, opening):
        """The plan of a StepFunction."""
        plan = StepPlan(function, arguments, self, opening)
        device = self.backend.device
        pairs = []
        for _, i in plan.states:
            if self.sides[0][i] is self.sides[1][i]:  # the first plan that changes it
                self.sides[1][i] = device.allocate(self.like[i].nbytes)
                pairs.append((self.sides[0][i], self.sides[1][i]))
                self.generation += 1
        if pairs:
            self._copy(pairs)
        return plan

    def run(self, plan, side, numbers, words, batch, values):
        """(what the loss function returned, the side of the new values). values: those of the atoms of the Opening."""
        out = plan.step(self, side, numbers, words, batch, values)
        self._submitted += 1
        if self._submitted % AHEAD == 0:
            self.backend.device.read(loss_in(out).data.buffer, 4)
        return out, 1 - side


def _buffer(like, backend, values=None):
    """A node of the same kind with a buffer of its own. values: those of the atoms of an open shape."""
    node = Node("buffer", (), None, like.dtype, closed(like.shape, values), like.word)
    node.buffer = backend.device.allocate(node.nbytes)
    return node


class StepPlan(Planned):
    """The plan of a step. states: (number of the root, number of the value) of each value that changes."""

    def __init__(self, function, arguments, engine, opening):
        self.function = function
        self.engine = engine
        self.first = 1 + len(function.draws)
        self.positions = {self.first + i: i for i in range(len(engine.like))}  # argument -> number of the value
        self._generation = None
        self._programs = [None, None]
        self._capacity = None
        Planned.__init__(self, function, arguments, engine.backend, {}, opening=opening)
        refuse_open(leaves(self._out()))

    def __repr__(self):
        return "{} dispatches{}".format(len(self.plan.steps), " for batches of every length" if self.opening else "")

    def _program(self, kept, inputs, results, owner):
        self._kept = kept
        self._inputs = inputs
        self._numbers = {}  # number of a root -> number of its buffer
        at = 0
        for k in range(len(self.roots)):
            if not known_equal(self.roots[k].count, 0):
                self._numbers[k] = self.plan.outputs[at]
                at += 1
        self.states = new_values(self.structure, self.function, self.roots, self.engine.like)
        used = list(self._numbers.values())
        self._read = {}  # number of a buffer -> number of the value that it is
        self._written = {}  # the same, of new values
        for k in range(len(self.arguments)):
            i = self.positions.get(self.arguments[k].arg)
            if i is not None:
                self._read[inputs[k][0]] = i
        self._copied = []  # (number of a buffer, number of the value)
        for root, i in self.states:
            number = self._numbers[root]
            if used.count(number) == 1 and self.plan.buffers[number].kind == "output":
                self._written[number] = i
            else:
                self._copied.append((number, i))
        self._own = {}
        if not self.opening:
            self._allocate(())
        roots = [root for root, _ in self.states]
        self._given = [k for k in range(len(self.roots)) if k not in roots or ("tensor", k) in leaves(self._out())]
        return None

    def _open_program(self, arguments, kept, inputs, results, owner):
        return self._program(kept, inputs, results, owner)

    def _allocate(self, values):
        """Allocate the buffers that are neither constants nor values. values: those of the atoms of open sizes."""
        device = self.engine.backend.device
        for number in range(len(self.plan.buffers)):
            if number not in self._kept and number not in self._read and number not in self._written:
                nbytes = at(self.plan.buffers[number].nbytes, values)
                self._own[number] = device.allocate(max(4, nbytes))

    def _out(self):
        """The structure of what the loss function returned."""
        return self.structure[1][0]

    def _bound(self, side, sizes):
        engine = self.engine
        if sizes and (self._capacity is None or sizes[0] > self._capacity[0]):
            self._capacity = sizes
            self._programs = [None, None]
            self._own = {}
            self._allocate(self.plan.counts.values(sizes))
        if self._generation != engine.generation:
            self._generation = engine.generation
            self._programs = [None, None]
        if self._programs[side] is None:
            allocations = dict(self._kept)
            allocations.update(self._own)
            for number in self._read:
                allocations[number] = engine.sides[side][self._read[number]]
            for number in self._written:
                allocations[number] = engine.sides[1 - side][self._written[number]]
            device, plan, inputs = engine.backend.device, self.plan, self._inputs
            if sizes:
                self._programs[side] = OpenProgram(device, plan, allocations, inputs, [], self._capacity)
            else:
                self._programs[side] = Program(device, plan, allocations, inputs, [])
        return self._programs[side]

    def step(self, engine, side, numbers, words, batch, values):
        """Submit the step from the values of one side to the other; returns what the loss function returned."""
        arguments = arguments_of(engine, numbers, words, batch)
        there = {}  # argument in the GPU's memory -> its Allocation
        for node in self.arguments:
            x = arguments[node.arg] if node.arg not in self.positions else None
            if x is not None and x.backend is engine.backend and x.data.op == "buffer" and x.data.word == node.word:
                there[node.arg] = x.data.buffer
        kept = dict(self.positions)
        kept.update(there)
        sizes = None if values is None else tuple(values[: len(self.opening.names)])
        data = self.words(arguments, sizes, kept)
        program = self._bound(side, sizes)
        call = _Call(self, program, side, there, values)
        program.submit_only(data, call, sizes)
        return assemble(self._out(), call.tensors)


class _Call(Call):
    """One submission, with what `Program` expects of `carried`."""

    def __init__(self, plan, program, side, there, values):
        self.plan = plan
        self.values = values
        self.program = program
        self.side = side
        self.there = there
        self.inputs = {}
        for k in range(len(plan.arguments)):
            argument = plan.arguments[k].arg
            if argument in plan.positions or argument in there:
                self.inputs[k] = argument
        self.tensors = [None] * len(plan.roots)
        self.out = None

    def restore(self, encoder):
        """Record the copies of arguments that are in the GPU's memory."""
        for k in self.inputs:
            source = self.there.get(self.inputs[k])
            if source is not None:
                copy_pages(encoder, source, self.program.allocations[self.program.inputs[k][0]])

    def save(self, encoder):
        """Record the copies of the results, and of values that are not computed where they are kept."""
        plan, engine = self.plan, self.plan.engine
        for k in plan._given:
            root = plan.roots[k]
            node = _buffer(root, engine.backend, self.values)
            if k in plan._numbers:
                copy_pages(encoder, self.program.allocations[plan._numbers[k]], node.buffer)
            self.tensors[k] = Tensor(node, root.dtype, node.shape, engine.backend)
        new = engine.sides[1 - self.side]
        old = engine.sides[self.side]
        for number, i in plan._copied:
            copy_pages(encoder, self.program.allocations[number], new[i])
        changed = [i for _, i in plan.states]
        for i in range(len(new)):
            if new[i] is not old[i] and i not in changed:
                copy_pages(encoder, old[i], new[i])


def new_values(structure, function, roots, like):
    """[(number of the root, number of the value)] of the values that a step changes. Raises ValueNeeded if one becomes
    of another dtype or shape."""
    out = []
    parts = [p for _, group in structure[1][1:] for p in group]
    for (kind, root), i in zip(parts, function.places()):
        new = roots[root] if kind == "tensor" else None
        if new is None or (new.dtype, new.word, new.shape) != (like[i].dtype, like[i].word, like[i].shape):
            raise ValueNeeded("a parameter or a state becomes of another dtype or shape")
        out.append((root, i))
    return out


def refuse_open(parts):
    """Raise ValueNeeded if the loss function returned an open size, of which a plan has no number."""
    if any(kind == "value" and is_open(x) for kind, x in parts):
        raise ValueNeeded("the loss function returns the number of items")
