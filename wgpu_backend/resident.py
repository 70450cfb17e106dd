"""Runs the steps of a Session (core/session) on the GPU: the states stay in its memory between steps.

A growing state is in a buffer with room behind it (core/session/room.py); the plan writes new elements there
(record/appending.py), and nothing else moves. Every other state is copied twice per step on the GPU, in the same
submission: into the plan's input before it, and out of the plan's result after it. So several sessions, and plans for
several sizes, share one model. Steps return new states; states that callers still hold do not change.
"""

from emberlet.backend.axes import closed
from emberlet.backend.opening import rooms_of
from emberlet.session.room import LEAST, Growing, Room
from emberlet.shapes import size
from emberlet.sizes.polynomial import at
from emberlet.sizes.questions import known_equal
from emberlet.tensor import Tensor

from .compiled import Compiled
from .device import can_wait, must_await
from .record.node import Node
from .run.carried import Call
from .run.runtime import Results


def resident(model, entries, capacity, backend):
    """A Resident, or None if Python can only await the GPU."""
    if must_await() or backend.planning:
        return None
    return Resident(model, entries, capacity, backend)


MOST_COPIES = 1 << 12  # the most rows of a state (batch times heads), which are copied one by one when it gets a room


class Resident:
    """entries: the states, with `input`, `output` and `axis` (core/session). One Resident serves a session and its
    forks. moved: bytes of states that its steps have copied or appended."""

    def __init__(self, model, entries, capacity, backend):
        self.moved = 0
        self.capacity = capacity
        self.entries = entries
        self.compiled = Compiled(model, (), backend, dims=open_dims(model, entries, capacity))

    def step(self, arguments, check=None):
        """The results of the model, states as Tensors in GPU memory, the others already on the host; None if there is
        no plan, or if the states are stored differently than the plan expects. check: called before anything runs with
        the new length of a state; raises if that is too long."""
        call = self._call(arguments, check) if can_wait() else None
        if call is None:
            return None
        return call.finish(call.program.run(call.words(), call.sizes, call))

    async def step_async(self, arguments, check=None):
        """`step`, awaited."""
        call = self._call(arguments, check)
        if call is None:
            return None
        return call.finish(await call.program.run_async(call.words(), call, call.sizes))

    def _call(self, arguments, check):
        """The _Call of a step, None if there is no plan for it."""
        rooms = rooms_of(self.entries, arguments, GpuRoom, self.capacity)
        found = self.compiled.find(arguments, rooms)
        if found is None:
            return None
        planned, sizes = found
        call = _Call(self, planned, sizes, arguments)
        longest = call.longest()
        if check is not None and longest:
            check(longest)
        if planned.in_place and longest > rooms.length:
            for e in self.entries:
                if e.input in planned.in_place:
                    x = arguments[e.input]
                    self.moved += 4 * x.size
                    x.room = GpuRoom(x, e.axis, 2 * longest)
            return self._call(arguments, None)
        if not call.fits():
            return None
        self.moved += call.moved()
        return call


def longest(entries, structure, roots, values):
    """The length of the longest growing state after a step. structure: of the results; values: of the open sizes'
    atoms, None without any."""
    kind, parts = structure
    parts = [structure] if kind == "tensor" else parts if kind is tuple else []
    found = 0
    for e in entries:
        if e.axis is not None and e.output < len(parts) and parts[e.output][0] == "tensor":
            shape = roots[parts[e.output][1]].shape
            if e.axis < len(shape):
                found = max(found, shape[e.axis] if values is None else closed(shape[e.axis], values))
    return found


class GpuRoom(Room):
    """A Room in GPU memory: one buffer, that of `array`. copied: whether to copy x into it now."""

    def __init__(self, x, axis, length, copied=True):
        backend = x.backend
        shape = x.shape[:axis] + (length,) + x.shape[axis + 1 :]
        node = Node("buffer", (), None, x.dtype, shape, backend.word(x.dtype))
        node.buffer = backend.device.allocate(node.nbytes)
        self.axis = axis
        self.length = length
        self.array = Tensor(node, x.dtype, shape, backend)
        self._kept = 0
        self._owner = None
        if copied and x.size:
            if x.data.op != "buffer":
                backend.realize(x)
            device = backend.device
            device.enter()
            try:
                encoder = device.raw.create_command_encoder()
                self.record(encoder, x.data.buffer.gpu, x.shape)
                device.queue.submit([encoder.finish()])
            finally:
                device.leave()

    @staticmethod
    def holds(shape, axis, dtype, word, length, device):
        """Whether a state of this kind can have a room."""
        count = 4 if word in ("f32", "i32", "u32") else 0
        outer = 1
        for i in range(len(shape)):
            count *= length if i == axis else shape[i]
            outer *= shape[i] if i < axis else 1
        return dtype.is_float and 0 < count <= device.page_bytes and outer <= MOST_COPIES

    def record(self, encoder, source, shape):
        """Record the copies of a dense state of that shape into the room."""
        inner = 4
        outer = 1
        for i in range(len(shape)):
            if i > self.axis:
                inner *= shape[i]
            elif i < self.axis:
                outer *= shape[i]
        nbytes = shape[self.axis] * inner
        target = self.array.data.buffer.gpu
        for i in range(outer if nbytes else 0):
            encoder.copy_buffer_to_buffer(source, i * nbytes, target, i * self.length * inner, nbytes)


def open_dims(model, entries, capacity):
    """The axes that `compile` leaves open from the start: the lengths of growing states, and the number of positions
    that a step adds, from 2 on. Steps of one position have their own plan, whose products are faster."""
    shapes = getattr(model, "INPUTS", None)
    if shapes is None:
        return None
    dims = {}
    for e in entries:
        if e.axis is not None and shapes[e.input][2] is not None:
            name = shapes[e.input][2][e.axis]
            if not isinstance(name, str) or not name.isidentifier():
                continue
            dims[name] = None if capacity is None else (1, capacity)
            results = getattr(model, "OUTPUTS", None) or ()
            after = results[e.output][2] if e.output < len(results) else None
            after = after[e.axis] if after and len(after) > e.axis else None
            parts = after.split(" + ") if isinstance(after, str) else ()
            for part in parts if name in parts else ():
                if part != name and part.isidentifier() and _is_axis(model, part):
                    dims[part] = (2, None)
    return dims or None


def _is_axis(model, name):
    return any(name in shape for _, _, shape in model.INPUTS if shape is not None)


class _Call(Call):
    """One step, with the attributes that `Program.run` expects of `carried`: inputs, out, restore, save."""

    def __init__(self, resident, planned, sizes, arguments):
        self.resident = resident
        self.planned = planned
        self.sizes = sizes
        self.program = planned.program
        self.arguments = arguments
        self.values = None if sizes is None else planned.plan.counts.values(sizes)
        self.positions = {}  # argument -> entry
        for e in resident.entries:
            self.positions[e.input] = e
        self.inputs = {}  # position among the program's inputs -> argument
        for i in range(len(planned.arguments)):
            if planned.arguments[i].arg in self.positions:
                self.inputs[i] = planned.arguments[i].arg
        kind, parts = planned.structure
        self.parts = [planned.structure] if kind == "tensor" else parts if kind is tuple else None
        self.kept = {}  # number of a root -> node of a state
        self.rooms = {}  # number of a root -> GpuRoom that a state is copied to
        self.grown = [k for _, k in planned.in_place.values()]
        self.computed = [
            k for k in range(len(planned.roots)) if k not in self.grown and not known_equal(planned.roots[k].count, 0)
        ]

    def words(self):
        """The inputs other than states, as the program takes them."""
        return self.planned.words(self.arguments, self.sizes, self.positions)

    def _shape(self, k):
        shape = self.planned.roots[k].shape
        return shape if self.values is None else closed(shape, self.values)

    def longest(self):
        """The length of the longest growing state after the step."""
        return longest(self.resident.entries, self.planned.structure, self.planned.roots, self.values)

    def fits(self):
        """Whether the states are stored as the plan's inputs and results are: each in one buffer, with the same storage
        type."""
        if self.parts is None:
            return False
        words = {}
        for i in self.inputs:
            words[self.inputs[i]] = self.planned.arguments[i].word
        self.roots = {}  # number of a root -> entry
        for e in self.resident.entries:
            if e.output >= len(self.parts) or self.parts[e.output][0] != "tensor":
                return False
            k = self.parts[e.output][1]
            if k in self.grown:
                continue
            x = self.arguments[e.input]
            root = self.planned.roots[k]
            if (
                k not in self.computed
                or x.backend is not self.planned.backend
                or root.word != words.get(e.input, root.word)
            ):
                return False
            if len(self._source(k).pages) != 1:
                return False
            if x.data.op != "buffer" and x.size:
                x.backend.realize(x)
            if x.size and (x.data.op != "buffer" or x.data.word != root.word or x.data.buffer.gpu is None):
                return False
            self.roots[k] = e
        self.wanted = [k for k in self.computed if k not in self.roots]
        return True

    def _source(self, k):
        """The Allocation of a result."""
        return self.program.allocations[self.program.results[self.computed.index(k)][0]]

    def moved(self):
        """Bytes of states that the step copies or appends."""
        total = 0
        for argument in self.planned.in_place:
            before = self.arguments[argument]
            k = self.planned.in_place[argument][1]
            count = size(self._shape(k))
            total += 4 * (count - before.size)
        for i in self.inputs:
            x = self.arguments[self.inputs[i]]
            total += x.data.nbytes if x.size else 0
        for k in self.roots:
            count = size(self._shape(k))
            # Written once as a result, then copied once.
            total += 8 * count
        return total

    def lend_buffers(self, program):
        """Lend the program the buffers of the states that it appends to in place. Called by the Program."""
        states = self.planned.in_place
        if states:
            program.use_buffers({states[a][0]: self.arguments[a].room.array.data.buffer for a in states})

    @property
    def out(self):
        """The results that return to the host: all but the states."""
        results = getattr(self.program, "open_results", None) or self.program.results
        if self.values is not None:
            results = [(number, at(n, self.values)) for number, n in results]
        held = self.program._out
        return Results(self.program, [results[self.computed.index(k)] for k in self.wanted], held.room, held.staging)

    def restore(self, encoder):
        """Record the copies of the states to the program's inputs."""
        for i in self.inputs:
            x = self.arguments[self.inputs[i]]
            if x.size:
                to = self.program.allocations[self.program.inputs[i][0]]
                encoder.copy_buffer_to_buffer(x.data.buffer.gpu, 0, to.gpu, 0, x.data.nbytes)

    def save(self, encoder):
        """Record the copies of the program's results to the states' memory."""
        for k in self.roots:
            root, e = self.planned.roots[k], self.roots[k]
            shape = self._shape(k)
            backend, device = self.planned.backend, self.program.device
            source = self._source(k)
            if e.axis is not None:
                length = self.resident.capacity or max(LEAST, 2 * shape[e.axis])
                if GpuRoom.holds(shape, e.axis, root.dtype, root.word, length, device):
                    x = Tensor(Node("data", (), b"", root.dtype, shape, root.word), root.dtype, shape, backend)
                    self.rooms[k] = GpuRoom(x, e.axis, length, copied=False)
                    self.rooms[k].record(encoder, source.gpu, shape)
                    continue
            node = Node("buffer", (), None, root.dtype, shape, root.word)
            node.buffer = device.allocate(self._room(node, e))
            encoder.copy_buffer_to_buffer(source.gpu, 0, node.buffer.gpu, 0, node.nbytes)
            self.kept[k] = node

    def _room(self, node, entry):
        """Bytes to allocate for a state: constant while it grows, so that freed memory can be reused."""
        if entry.axis is None or not node.count:
            return node.nbytes
        length = node.shape[entry.axis]
        room = self.resident.capacity or 16
        while room < length:
            room *= 2
        return min(node.nbytes // length * room + 4, self.program.device.page_bytes)

    def finish(self, data):
        """The model's results, in order."""
        tensors = {}
        for k in range(len(self.planned.roots)):
            root = self.planned.roots[k]
            shape = self._shape(k)
            if k in self.grown:
                continue
            if k in self.rooms:
                tensors[k] = Growing(self.rooms[k], shape[self.rooms[k].axis], self.resident.capacity)
                continue
            if k in self.kept:
                node = self.kept[k]
            else:
                words = data[self.wanted.index(k)] if k in self.wanted else b""
                node = Node("data", (), words, root.dtype, shape, root.word)
            tensors[k] = Tensor(node, root.dtype, shape, self.planned.backend)
        for argument in self.planned.in_place:
            x = self.arguments[argument]
            k = self.planned.in_place[argument][1]
            x.grown = tensors[k] = x.room.view(self._shape(k)[x.room.axis])
        out = []
        for kind, part in self.parts:
            out.append(tensors[part] if kind == "tensor" else part)
        return out
