"""The wasm backend: recorded operations (../record/), computed in WebAssembly with 128-bit vectors. In a tab, compiled
models may run on several threads (engine/)."""

from emberlet import dtypes, shapes
from emberlet.errors import BackendError, UnsupportedError

from ..plan.make import make_plan
from ..record.bounds import interval
from ..record.node import numbers, refuse_values, signature
from ..record.primitives import Primitives
from ..run import storage
from ..run.caches import LRUCache
from . import engine
from .image import Image
from .kernels.split import ENOUGH, LEAST_WORK
from .kernels.table import Options
from .prepare import prepare

_MODULES = 32 << 20  # bytes of modules, with what engines make of them: a few of a training step's size
_EXPANDED = 20  # how much larger than its module that is


class WasmBackend(Primitives):
    """Computes tensors with WebAssembly. strict: raise UnsupportedError instead of computing on the host.

    When a value is read, everything recorded so far is computed as one module, which is cached for the same graph with
    other values. `model.compile(backend="wasm")` also keeps the weights in the module's memory. Raises BackendError
    without a WebAssembly engine: on a desktop, the package wasmtime.
    """

    name = "wasm"
    OVERRIDES = ("matmul_8bit", "conv_8bit")

    def __init__(self, index=0, strict=False, planning=False):
        Primitives.__init__(self, index, strict, planning)
        self.options = Options(planning or engine.relaxed())
        self._plans = LRUCache(_MODULES)
        if index:
            raise BackendError('"wasm:{}" does not exist; there is only one wasm backend'.format(index))
        if not planning:
            engine.available()

    def _is_long(self, extent, shape, lengths):
        return extent >= LEAST_WORK and shapes.size(shape) < ENOUGH and self._pieces(max(lengths)) > 1

    def _pieces(self, length):
        """Equal ones, for threads to share; a padded one would need a test for each element."""
        return max([1] + [n for n in range(ENOUGH, 4 * ENOUGH + 1) if length % n == 0])

    @property
    def device(self):
        """Raises BackendError: values are in Python's memory or a module's, not on a device."""
        raise BackendError("the wasm backend has no GPU device")

    def set_threads(self, count):
        """The same as `wasm.set_threads`."""
        return engine.set_threads(count)

    def resident(self, model, entries, capacity):
        """The object that runs the steps of a Session (wasm/resident.py). None if a state grows: a plan has one size,
        so each step would make one."""
        if self.planning or [e for e in entries if e.axis is not None]:
            return None
        from .resident import Resident

        return Resident(model, self)

    def step_engine(self):
        """What runs training steps (wasm/training.py)."""
        from .training import Engine

        return Engine(self)

    def matmul_8bit(self, a, b):
        """a @ b for int32 values within ±255. The operands are recorded as int16; kernels/integers.py sums their
        products in int32."""
        shape = shapes.broadcast(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])
        a, b = self.cast(a, dtypes.int16), self.cast(b, dtypes.int16)
        return self._record("matmul", (a, b), (a, b), "matmul", None, dtypes.int32, shape)

    def conv_8bit(self, x, weight, bias, stride, padding, dilation, groups):
        """`conv` for int32 values within ±255, in the same way. bias: None."""
        x, weight = self.cast(x, dtypes.int16), self.cast(weight, dtypes.int16)
        return self._conv(x, weight, stride, padding, dilation, groups, dtypes.int32)

    def _sorted_positions(self, x, descending):
        return self._tensor("sort_runs", (x.data,), descending, dtypes.int64, x.shape)

    def launch(self, name, source, inputs, dtype, shape, groups, values=None):
        raise UnsupportedError("kernel {} is WGSL, which the wasm backend does not run".format(name))

    def write_region(self, x, starts, sizes, steps, value):
        return False

    # -- values ---------------------------------------------------------------------------------------------------

    def realize(self, *tensors):
        """Compute recorded tensors as one module. Nodes that depend on an input of a plan being traced stay
        recorded."""
        with self._lock:
            roots, order = self._to_compute(tensors)
            if not roots:
                return
            module, image, given, stored = self._module(order, roots)
            instance = module.instance()
            for number, source in given:
                if isinstance(source, list):
                    words = [n if isinstance(n, int) else numbers(order[n[0]])[n[1]] for n in source]
                    data = storage.unsigned(words)
                else:
                    data = order[source].arg
                instance.write(image.addresses[number], data)
            instance.run()
            for i in range(len(roots)):
                node = roots[i]
                data = instance.read(image.addresses[image.plan.outputs[i]], storage.nbytes(stored[i], node.count))
                _become_data(node, data, stored[i])

    def _module(self, order, roots):
        """(module, Image, the source of each external buffer's data, words of the roots)."""
        key = signature(order, roots)
        found = self._plans.get(key)
        if found is None:
            places = {}
            for i in range(len(order)):
                places[id(order[i])] = i
            added = {}
            for n in prepare(roots):
                added[id(n)] = n
            plan, externals = make_plan(roots, self.options, bind_numbers=True)
            image = Image(plan)
            given = []
            for number, n in zip(plan.externals, externals):
                source = places.get(id(n))
                if n.op == "numbers":
                    source = [numbers(added[k])[i] if k in added else (places[k], i) for k, i in n.arg]
                given.append((number, source))
            found = (engine.compiled(image.module), image, given, [r.word for r in roots])
            self._plans.put(key, found, _EXPANDED * len(image.module))
        return found

    def _computed(self, node):
        if node.op != "data":
            refuse_values(node)
        return node.arg

    def constant(self, node):
        return node.arg

    def program(self, plan, constants, inputs, results, owner):
        from .program import program

        return program(plan, constants, inputs, results)


def _become_data(node, data, word):
    """Give the node its value and drop its history."""
    if node.dtype.bits == 64:
        interval(node)
    node.word = word
    node.arg = data
    node.op = "data"
    node.srcs = ()
