"""A plan of a traced model with its program."""

from emberlet.backend.axes import closed
from emberlet.backend.opening import value_of
from emberlet.backend.structure import assemble
from emberlet.errors import BackendError
from emberlet.sizes.questions import known_equal
from emberlet.tensor import Tensor

from .plan.counts import count, counts_of
from .plan.make import make_plan
from .plan.weight_order import reorder_weights
from .record.host_evaluation import evaluate, is_evaluated
from .record.index_checks import index_checks
from .record.merging import merge_levels
from .record.node import Node, topological
from .record.tracing import constants, trace
from .run import storage


def _compute(nodes, backend):
    """Compute nodes that depend on no input: on the host if their sources are there, so that data are uploaded once."""
    on_host = []
    on_gpu = []
    for node in nodes:
        there = topological([node])
        elsewhere = [n for n in there if n.op == "buffer" or not is_evaluated(n)]
        (on_gpu if elsewhere else on_host).append(node)
    evaluate(on_host, backend.host)
    if on_gpu:
        backend.realize(*[Tensor(n, n.dtype, n.shape, backend) for n in on_gpu])


class Planned:
    """A plan with its program, and the conversion of Tensors to inputs and from outputs. plan: the Plan; program: the
    Program; opening: an Opening if the plan has open sizes, else None; checks: of indices, before each call; fixed:
    {position of an argument that is taken for its value: its bytes}."""

    def __init__(self, model, arguments, backend, memo, tune=False, owner=None, opening=None, fixed=(), shared=False):
        self.backend = backend
        self.fixed = {i: value_of(x) for i, x in enumerate(arguments) if i in fixed and isinstance(x, Tensor)}
        self.used = 0
        self.opening = opening
        self._latest = None  # (shapes, kinds, sizes) of the last call without rooms
        scope = opening.scope if opening else None
        self._grows = {}
        traced = trace(model, arguments, backend, opening.shapes if opening else None, fixed)
        merge_levels(traced.roots)
        self.checks = index_checks(traced.roots)
        _compute(constants(traced.roots), backend)
        if backend.name != "wgpu":
            from .wasm.prepare import materialize, prepare

            materialize(traced.roots, backend.host)
            prepare(traced.roots)
            backend.reorder_weights(traced.roots)
        else:
            reorder_weights(traced.roots, lambda nodes: _compute(nodes, backend), memo)
        if tune and backend.name == "wgpu":
            from .run.measure_tiles import tune as measure

            measure(traced.roots, backend)
        appended = {}
        if opening and opening.rooms:
            appended = self._append(traced, opening)
        computed = [appended.get(id(r), r) for r in traced.roots if not known_equal(r.count, 0)]
        self.plan, externals = make_plan(computed, backend.options, sizes=scope)
        self.structure = traced.structure
        self.roots = traced.roots
        given = {}
        kept = {}
        self.in_place = {}  # argument -> (number of its buffer, number of the root) of states appended to in place
        for i in range(len(externals)):
            if externals[i].op == "input" and externals[i].arg in self._grows:
                self.in_place[externals[i].arg] = (self.plan.externals[i], self._grows[externals[i].arg])
            elif externals[i].op == "input":
                given[externals[i].arg] = self.plan.externals[i]
            else:
                kept[self.plan.externals[i]] = backend.constant(externals[i])
        # the inputs that the results depend on
        self.arguments = [n for n in traced.inputs if n.arg in given]
        inputs = [(given[n.arg], count(n.nbytes)) for n in self.arguments]
        results = []
        for i in range(len(computed)):
            if computed[i].op != "append":
                results.append((self.plan.outputs[i], count(computed[i].nbytes)))
        self._ports = (kept, inputs, results) if shared else None
        if opening is None:
            self.program = self._program(kept, inputs, results, owner)
        else:
            counts_of(self.plan, scope)
            self.program = self._open_program(arguments, kept, inputs, results, owner)

    def copied(self, owner=None):
        """The same plan with a program of its own for an owner, or without one. It was made with `shared`, not on a GPU
        and not on MicroPython."""
        out = object.__new__(Planned)
        out.__dict__.update(self.__dict__)
        out.used, out._latest, out.program = 0, None, None
        if owner is not None and self.opening is None:
            out.program = self._program(*self._ports, owner)
        elif owner is not None:
            out.program = self._open_program((), *self._ports, owner)
        return out

    def _program(self, kept, inputs, results, owner):
        return self.backend.program(self.plan, kept, inputs, results, owner)

    def _open_program(self, arguments, kept, inputs, results, owner):
        capacity = self.opening.capacity
        if self.backend.name != "wgpu":
            return self.backend.open_program(self.plan, kept, inputs, results, capacity)
        from .run.open_program import OpenProgram

        for argument in self.in_place:
            kept[self.in_place[argument][0]] = arguments[argument].room.array.data.buffer
        lent = [number for number, _ in self.in_place.values()]
        return OpenProgram(self.backend.device, self.plan, kept, inputs, results, capacity, owner=owner, lent=lent)

    def _append(self, traced, opening):
        """Let the plan append to states in place. Returns {id of a root: the node computed instead}."""
        from .record.appending import append_in_place

        kind, parts = traced.structure
        parts = [traced.structure] if kind == "tensor" else parts if kind is tuple else []
        states = []
        for argument, output, axis in opening.rooms.states:
            if output < len(parts) and parts[output][0] == "tensor":
                states.append((argument, parts[output][1], axis))
        found = append_in_place(traced, states, opening.room, self.backend.options.page_bytes)
        out = {}
        for argument in found:
            k, _, becomes = found[argument]
            self._grows[argument] = k
            out[id(traced.roots[k])] = becomes
        return out

    def sizes(self, shapes, kinds, rooms=None):
        """The values of the open sizes for arguments that the plan serves, else None."""
        opening = self.opening
        latest = self._latest
        if latest and latest[0] == shapes and latest[1] == kinds:
            return latest[2]
        if opening.rooms and not opening.rooms.serves(rooms):
            return None
        numbers = opening.lengths(shapes, kinds)
        if numbers is None:
            return None
        sizes = opening.numbers(numbers, rooms)
        counts = self.plan.counts
        if counts.refusal(sizes, counts.values(sizes)):
            return None
        if not opening.rooms:
            self._latest = (shapes, kinds, sizes)
        return sizes

    def words(self, arguments, sizes=None, kept=()):
        """The inputs' elements as bytes of words; None for the arguments in `kept`, which are already on the GPU."""
        out = []
        values = None if sizes is None else self.plan.counts.values(sizes)
        self._check_indices(arguments, values, kept)
        for node in self.arguments:
            if node.arg in kept:
                out.append(None)
                continue
            x = arguments[node.arg]
            words = storage.widen(x.backend.to_bytes(x), x.dtype, x.size, node.word)
            if words is None:
                raise BackendError("input {} holds integers beyond 32 bits, which a plan cannot take".format(node.arg))
            out.append(words)
        return out

    def _check_indices(self, arguments, values, kept):
        """Raise IndexingError, in the words of the uncompiled model, for an index that follows from the arguments and
        is outside its axis."""
        host = self.backend.host

        def given(number):
            x = arguments[number]
            return x if x.backend is host else host.from_bytes(x.backend.to_bytes(x), x.dtype, x.shape)

        for check in self.checks:
            if not [n for n in check.inputs if n in kept]:
                check.run(host, given, values)

    def finish(self, data, sizes=None):
        """The model's results, from the bytes of the roots that have elements."""
        return self.assembled(self.tensors(data, sizes), sizes)

    def tensors(self, data, sizes=None, grown=None):
        """The roots, from the bytes of those that have elements. grown: {number of a root: its Tensor} of states that
        were appended to in place."""
        values = None if sizes is None else self.plan.counts.values(sizes)
        tensors = []
        at = 0
        for k in range(len(self.roots)):
            r = self.roots[k]
            words = b""
            if grown and k in grown:
                tensors.append(grown[k])
                continue
            if not known_equal(r.count, 0):
                words = data[at]
                at += 1
            shape = closed(r.shape, values)
            tensors.append(Tensor(Node("data", (), words, r.dtype, shape, r.word), r.dtype, shape, self.backend))
        return tensors

    def assembled(self, tensors, sizes=None, constant=None):
        """The model's results, from the roots. constant: see emberlet.backend.structure."""
        found = assemble(self.structure, tensors, constant)
        return found if sizes is None else closed(found, self.plan.counts.values(sizes))
