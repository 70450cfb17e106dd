"""A model whose states stay in the GPU's memory from step to step: what a Session (core/session) runs on this backend.

A step is one run of a compiled model's plan, in one submission with two copies on the GPU: of each state into the
plan's input before it, and of what it became out of the plan's result after it. So several sessions, and plans for
several sizes, share one model. What a step returns is new, and no state that somebody holds changes.
"""

import sys

from emberlet.tensor import Tensor

from .compiled import Compiled
from .device import must_await
from .plan.counts import at
from .record.axes import closed
from .record.node import Node
from .record.sizes import same
from .run.runtime import Results


def resident(model, entries, capacity, backend):
    """A Resident, or None where Python can only await the GPU, or lets go of nothing (MicroPython)."""
    if must_await() or sys.implementation.name == "micropython" or backend.planning:
        return None
    return Resident(model, entries, capacity, backend)


class Resident:
    """entries: the states, with `input`, `output` and `axis` (core/session). One serves a session and its forks."""

    def __init__(self, model, entries, capacity, backend):
        self.capacity = capacity
        self.entries = entries
        self.compiled = Compiled(model, (), backend, dims=_dims(model, entries, capacity))

    def step(self, arguments):
        """The results of the model, states as Tensors in the GPU's memory, the others on the host already; None where
        there is no plan for it, or states lie otherwise than the plan has them."""
        compiled = self.compiled
        found = compiled._find(arguments)
        if found is None:
            return None
        planned, sizes = found
        call = _Call(self, planned, sizes, arguments)
        if not call.fits():
            return None
        data = planned.program.run(planned.words(arguments, sizes, call.positions), sizes, call)
        return call.finish(data)


def _dims(model, entries, capacity):
    """What `compile` is to leave open from the beginning: the lengths of states that grow."""
    shapes = getattr(model, "INPUTS", None)
    if shapes is None:
        return None
    dims = {}
    for e in entries:
        if e.axis is not None and shapes[e.input][2] is not None:
            name = shapes[e.input][2][e.axis]
            if isinstance(name, str) and name.isidentifier():
                dims[name] = None if capacity is None else (1, capacity)
    return dims or None


class _Call:
    """One step, as `Program.run` asks for it (`carried`): inputs, out, restore, save."""

    def __init__(self, resident, planned, sizes, arguments):
        self.resident = resident
        self.planned = planned
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
        self.kept = {}  # number of a root -> Allocation of a state

    def fits(self):
        """Whether states lie as the plan has its inputs and results: each in one buffer, elements stored alike."""
        if self.parts is None:
            return False
        words = {}
        for i in self.inputs:
            words[self.inputs[i]] = self.planned.arguments[i].word
        self.computed = [k for k in range(len(self.planned.roots)) if not same(self.planned.roots[k].count, 0)]
        self.roots = {}  # number of a root -> entry
        for e in self.resident.entries:
            if e.output >= len(self.parts) or self.parts[e.output][0] != "tensor":
                return False
            k = self.parts[e.output][1]
            x = self.arguments[e.input]
            root = self.planned.roots[k]
            if (
                k not in self.computed
                or x.backend is not self.planned.backend
                or root.word != words.get(e.input, root.word)
            ):
                return False
            if len(self.program.allocations[self.planned.plan.outputs[self.computed.index(k)]].pages) != 1:
                return False
            if x.data.op != "buffer" and x.size:
                x.backend.realize(x)
            if x.size and (x.data.op != "buffer" or x.data.word != root.word or x.data.buffer.gpu is None):
                return False
            self.roots[k] = e
        self.wanted = [k for k in self.computed if k not in self.roots]
        return True

    @property
    def out(self):
        """The results that come back, which are no states."""
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
        """Record the copies of the program's results to memory of the states."""
        for k in self.roots:
            root, e = self.planned.roots[k], self.roots[k]
            shape = closed(root.shape, self.values) if self.values is not None else root.shape
            node = Node("buffer", (), None, root.dtype, shape, root.word)
            node.buffer = self.program.device.allocate(self._room(node, e))
            source = self.program.allocations[self.planned.plan.outputs[self.computed.index(k)]]
            encoder.copy_buffer_to_buffer(source.gpu, 0, node.buffer.gpu, 0, node.nbytes)
            self.kept[k] = node

    def _room(self, node, entry):
        """Bytes for a state: always the same while it grows, so that memory that was given back serves again."""
        if entry.axis is None or not node.count:
            return node.nbytes
        length = node.shape[entry.axis]
        room = self.resident.capacity or 16
        while room < length:
            room *= 2
        return min(node.nbytes // length * room + 4, self.program.device.page_bytes)

    def finish(self, data):
        """The model's results, in their order."""
        tensors = {}
        for k in range(len(self.planned.roots)):
            root = self.planned.roots[k]
            shape = closed(root.shape, self.values) if self.values is not None else root.shape
            if k in self.kept:
                node = self.kept[k]
            else:
                words = data[self.wanted.index(k)] if k in self.wanted else b""
                node = Node("data", (), words, root.dtype, shape, root.word)
            tensors[k] = Tensor(node, root.dtype, shape, self.planned.backend)
        out = []
        for kind, part in self.parts:
            out.append(tensors[part] if kind == "tensor" else part)
        return out
