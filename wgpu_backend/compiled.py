"""`compile`: a model with its plan kept, so that a call writes the inputs, submits once and reads the outputs."""

import sys

from emberlet.errors import BackendError
from emberlet.tensor import Tensor

from .device import lock, must_await
from .plan.make import make_plan
from .plan.weight_order import reorder_weights
from .record.host_evaluation import evaluate
from .record.index_ranges import check_range, index_ranges
from .record.node import Node, ValueNeeded, topological
from .record.tracing import assemble, constants, trace
from .run import storage

MAX_SHAPES = 8  # plans of one model, one per set of input shapes; the one unused for longest goes first


def compile(model, *examples, backend=None, tune=False):
    """A `Compiled` of a module or function, planned for the dtypes and shapes of `examples`.

    backend: a WgpuBackend or its name ("wgpu"). A module is copied there and stays where it is. tune: measure
    which tiles serve the matrix products and convolutions best: seconds, once for every device and shape.

    Other shapes get plans of their own when they are first met. Where the model decides by a tensor's values which
    operations to run, the plan is cut: the pieces run one after the other, with Python between them, and `Compiled.cut`
    says where.
    """
    return Compiled(model, examples, backend, tune)


class Compiled:
    """A compiled model: call it like the model. cut: None, or the ValueNeeded that keeps it from being one plan."""

    def __init__(self, model, examples, backend=None, tune=False):
        from emberlet.backend import get_backend

        self.backend = get_backend("wgpu" if backend is None else backend)
        if self.backend.name not in ("wgpu", "wasm"):
            raise BackendError("plans are made for the wgpu and wasm backends, not for {!r}".format(self.backend))
        if hasattr(model, "fork") and hasattr(model, "params"):
            for param in model.params():
                param.val()  # what the model would draw at random is drawn once, for it and for the copy
            model = model.fork(self.backend)
        self.model = model
        self.cut = None
        self._programs = {}
        self._laid_out = {}
        self._tune = tune
        self._uses = 0
        self._last = None
        self._owner = object()
        self._lock = lock()
        if examples:
            self._find(self._arguments(examples, {}))

    def __repr__(self):
        name = getattr(self.model, "__name__", type(self.model).__name__)
        if self.cut is not None:
            return "Compiled({}, cut into pieces: {})".format(name, self.cut)
        plans = []
        for key, planned in list(self._programs.items()):
            shapes = ", ".join(["{} {}".format(*k) if isinstance(k, tuple) else k for k in key])
            plans.append("{} dispatches for ({})".format(len(planned.plan.steps), shapes))
        return "Compiled({}, {})".format(name, "; ".join(plans) or "no plan yet")

    def _arguments(self, arguments, keywords):
        """The model's arguments in their order, arrays as Tensors. Raises what calling the model would."""
        if getattr(self.model, "INPUTS", None) is not None and sys.implementation.name != "micropython":
            from emberlet.host.model_inputs import bind

            return bind(self.model, tuple(arguments), keywords, self.backend)
        if keywords:
            from inspect import signature

            bound = signature(getattr(self.model, "forward", self.model)).bind(*arguments, **keywords)
            bound.apply_defaults()
            arguments = bound.args
        return [self._tensor(x) for x in arguments]

    def _tensor(self, x):
        if isinstance(x, Tensor) or not hasattr(x, "shape"):
            return x
        from emberlet.functional.arrays import asarray

        return asarray(x, device=self.backend)

    def _find(self, arguments):
        """The Planned for these arguments' shapes, made if need be; None where the model is cut."""
        key = []
        for x in arguments:
            key.append((x.dtype.name, x.shape) if isinstance(x, Tensor) else repr(x))
        key = tuple(key)
        with self._lock:
            found = self._programs.get(key)
            if found is None and self.cut is None:
                try:
                    found = Planned(self.model, arguments, self.backend, self._laid_out, self._tune, self._owner)
                except ValueNeeded as error:
                    self.cut = error
                    return None
                self._programs[key] = found
            if found is not None:
                self._uses += 1
                found.used = self._uses
                self._last = found
                if len(self._programs) > MAX_SHAPES:
                    self._forget_one()
            return found

    def _forget_one(self):
        oldest = None
        for key in self._programs:
            if oldest is None or self._programs[key].used < self._programs[oldest].used:
                oldest = key
        planned = self._programs.pop(oldest)
        if must_await():
            planned.program.release()
        # Elsewhere its memory comes back when the last call that runs it, perhaps in another thread, lets go of it.

    def __del__(self):
        for planned in list(getattr(self, "_programs", {}).values()):
            planned.program.disown(self._owner)

    def __call__(self, *arguments, **keywords):
        """The model's results, their values on the host already."""
        arguments = self._arguments(arguments, keywords)
        planned = self._find(arguments)
        if planned is None:
            return self.model(*[self._moved(x) for x in arguments])
        return planned.finish(planned.program.run(planned.words(arguments)))

    async def call_async(self, *arguments, **keywords):
        """`__call__`, awaited: the only way where the GPU can only be awaited. Calls may overlap."""
        arguments = self._arguments(arguments, keywords)
        planned = self._find(arguments)
        if planned is None:
            return self.model(*[self._moved(x) for x in arguments])
        return planned.finish(await planned.program.run_async(planned.words(arguments)))

    def _moved(self, x):
        if not isinstance(x, Tensor) or x.backend is self.backend:
            return x
        return self.backend.from_bytes(x.backend.to_bytes(x), x.dtype, x.shape)

    def planned(self, *examples):
        """The Planned for the shapes of `examples`, or of the last call. Raises ValueNeeded where the model is cut."""
        if examples:
            self._find(self._arguments(examples, {}))
        if self.cut is not None:
            raise self.cut
        return self._last

    def plan(self, *examples):
        """The Plan for the shapes of `examples`, or of the last call. Raises ValueNeeded where the model is cut."""
        return self.planned(*examples).plan


def _compute(nodes, backend):
    """Give nodes that depend on no input their values: on the host what lies there, so that it is uploaded once."""
    on_host = []
    on_gpu = []
    for node in nodes:
        there = [n.op for n in topological([node])]
        (on_gpu if "buffer" in there or "kernel" in there else on_host).append(node)
    evaluate(on_host, backend.host)
    if on_gpu:
        backend.realize(*[Tensor(n, n.dtype, n.shape, backend) for n in on_gpu])


class Planned:
    """A plan with its program, and how to get Tensors in and out. plan: the Plan; program: the Program."""

    def __init__(self, model, arguments, backend, memo, tune=False, owner=None):
        self.backend = backend
        self.used = 0
        traced = trace(model, arguments, backend)
        _compute(constants(traced.roots), backend)
        if backend.name == "wasm":
            from .wasm.prepare import materialize, prepare

            materialize(traced.roots, backend.host)
            prepare(traced.roots)
        else:
            reorder_weights(traced.roots, lambda nodes: _compute(nodes, backend), memo)
        if tune and backend.name == "wgpu":
            from .run.measure_tiles import tune as measure

            measure(traced.roots, backend)
        computed = [r for r in traced.roots if r.count]
        self._index_ranges = index_ranges(computed)
        self.plan, externals = make_plan(computed, backend.options)
        self.structure = traced.structure
        self.roots = traced.roots
        given = {}
        kept = {}
        for i in range(len(externals)):
            if externals[i].op == "input":
                given[externals[i].arg] = self.plan.externals[i]
            else:
                kept[self.plan.externals[i]] = backend.constant(externals[i])
        # (position of the argument, its number of elements), for inputs that the results depend on
        self.arguments = [n for n in traced.inputs if n.arg in given]
        inputs = [(given[n.arg], n.nbytes) for n in self.arguments]
        results = [(self.plan.outputs[i], computed[i].nbytes) for i in range(len(computed))]
        self.program = backend.program(self.plan, kept, inputs, results, owner)

    def words(self, arguments):
        """The inputs' elements as bytes of words."""
        out = []
        for node in self.arguments:
            x = arguments[node.arg]
            words = storage.widen(x.backend.to_bytes(x), x.dtype, x.size, node.word)
            if words is None:
                raise BackendError(
                    "input {} holds 64-bit integers beyond 32 bits, which a plan does not take".format(node.arg)
                )
            if node.arg in self._index_ranges and x.size:
                ends = storage.extremes(words, node.word, x.size)
                check_range(ends, self._index_ranges[node.arg], "what input {} picks from".format(node.arg))
            out.append(words)
        return out

    def finish(self, data):
        """The model's results from the bytes of the roots that have any."""
        tensors = []
        at = 0
        for r in self.roots:
            words = b""
            if r.count:
                words = data[at]
                at += 1
            tensors.append(Tensor(Node("data", (), words, r.dtype, r.shape, r.word), r.dtype, r.shape, self.backend))
        return assemble(self.structure, tensors)
