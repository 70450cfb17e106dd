"""What the wasm and native backends share: recorded operations (record/), computed by a plan in a memory of its own."""

import sys

from emberlet import dtypes, shapes
from emberlet.errors import BackendError, UnsupportedError
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open

from .plan.make import make_plan
from .record import small_planes, zero_points
from .record.bounds import interval
from .record.eight_bits import to_levels
from .record.level_products import LevelProducts
from .record.levels import levels
from .record.node import numbers, refuse_values, signature
from .record.primitives import Primitives
from .run import storage
from .run.caches import LRUCache
from .wasm.kernels.split import ENOUGH, LEAST_WORK
from .wasm.prepare import prepare

_CODE = 32 << 20  # bytes of plans' code, with what compilers make of it: a few of a training step's size


class ArenaBackend(LevelProducts):
    """A backend whose plans have their buffers in one memory. It has besides:

    options; layout(plan, sizes, room, constants): a Layout (wasm/image.py) with `instance()`: a memory with
    `write(at, data)`, `read(at, nbytes)` and `run()`; sizes and room: as the Layout takes them; constants: {number of a
    buffer: the bytes that are to be in it}, for what shares them. _compiled(plan): for what is computed at
    once, (what has `instance()`, the Layout, the bytes that its code takes).
    """

    OVERRIDES: tuple[str, ...] = ("matmul_8bit", "conv_8bit", "matmul_nbits", "to_levels", "extremes")

    def __init__(self, index, strict, planning):
        Primitives.__init__(self, index, strict, planning)
        self._plans = LRUCache(_CODE)

    @property
    def eager_options(self):
        """The options of plans that are made for what is computed at once."""
        return self.options

    def _is_long(self, extent, shape, lengths):
        return extent >= LEAST_WORK and shapes.size(shape) < ENOUGH and self._pieces(max(lengths)) > 1

    def _pieces(self, length):
        """Equal ones, for threads to share; a padded one would need a test for each element."""
        return max([1] + [n for n in range(ENOUGH, 4 * ENOUGH + 1) if length % n == 0])

    @property
    def device(self):
        """Raises BackendError: values are in Python's memory or a plan's, not on a device."""
        raise BackendError("the {} backend has no GPU device".format(self.name))

    def program(self, plan, constants, inputs, results, owner):
        """What runs a plan (wasm/program.py); see there for the arguments."""
        from .wasm.program import program

        return program(self.layout(plan, constants=constants), constants, inputs, results)

    def open_program(self, plan, constants, inputs, results, capacity):
        """What runs a plan with open sizes (wasm/growing_program.py)."""
        from .wasm.growing_program import GrowingProgram

        return GrowingProgram(self.layout, plan, constants, inputs, results, capacity)

    def resident(self, model, entries, capacity):
        """The object that runs the steps of a Session (wasm/resident.py). None if a state grows along an axis that the
        model does not name: a plan would serve one length."""
        if self.planning:
            return None
        from .resident import open_dims
        from .wasm.resident import AFTER, Resident

        dims = open_dims(model, entries, capacity)
        grows = [e for e in entries if e.axis is not None]
        if not grows:
            return Resident(model, entries, capacity, self, dims, (), AFTER)
        if not dims:
            return None
        shapes = [(model.INPUTS[e.input][2], e.axis) for e in grows]
        growing = [shape[axis] for shape, axis in shapes if shape is not None]
        return Resident(model, entries, capacity, self, dims, growing, 1)

    def short(self, planned, arguments):
        """ShortCalls of a plan that was just called with these; None without NumPy, and where they are of no use."""
        if sys.implementation.name == "micropython":
            return None
        try:
            from .wasm.short_calls import ShortCalls
        except ImportError:  # NumPy's
            return None
        return ShortCalls.of(planned, arguments)

    def step_engine(self):
        """What runs training steps (wasm/training.py)."""
        from .wasm.training import Engine

        return Engine(self)

    def matmul_8bit(self, a, b):
        """a @ b for int32 values within ±255. The operands are recorded as int16; wasm/kernels/integers.py sums their
        products in int32."""
        less = None
        if self.multiplies_bytes:
            a, b, less = zero_points.factors(a, b)
        total = self._integer_product(a, b)
        return total if less is None else self.binary("sub", total, less)

    def _integer_product(self, a, b):
        shape = shapes.broadcast(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])
        a, b = self.cast(a, dtypes.int16), self.cast(b, dtypes.int16)
        return self._record("matmul", (a, b), (a, b), "matmul", None, dtypes.int32, shape)

    def conv_8bit(self, x, weight, bias, stride, padding, dilation, groups):
        """`conv` for int32 values within ±255, in the same way. bias: None."""
        found = small_planes.product(x, weight, stride, padding, dilation, groups) if self.tracing else None
        if found is not None:
            pixels, matrix, shape = found
            return self.reshape(self.matmul_8bit(pixels, matrix), shape)
        less = total = None
        if self.multiplies_bytes:
            x, weight, padding, less = zero_points.pictures(x, weight, padding)
        elif self.tracing and weight.shape[1] > 1:
            x, padding = zero_points.bordered(x, padding)
        if self.tracing:
            total = self._sums_by_rows(x, weight, stride, padding, dilation)
        if total is None:
            x, weight = self.cast(x, dtypes.int16), self.cast(weight, dtypes.int16)
            total = self._conv(x, weight, stride, padding, dilation, groups, dtypes.int32)
        return total if less is None else self.binary("sub", total, less)

    def _sums_by_rows(self, x, weight, stride, padding, dilation):
        """A convolution of few pixels as a product, whose columns are channels; None for others."""
        if [p for p in padding if not known_equal(tuple(p), (0, 0))]:
            x = self.pad(x, ((0, 0), (0, 0)) + tuple(padding), 0)
        lanes = self.options.lanes
        found = small_planes.seen(x, weight, stride, dilation, min(lanes, small_planes.ROWS), 2 * lanes)
        if found is None:
            return None
        rows, matrix, shape = found
        total = self._integer_product(rows, matrix)
        if total.shape[1] > shape[1]:
            total = self.slice(total, (0, 0), (rows.shape[0], shape[1]), (1, 1))
        total = self.reshape(total, (shape[0], rows.shape[0] // shape[0], shape[1]))
        return self.reshape(self.permute(total, (0, 2, 1)), shape)

    @property
    def multiplies_bytes(self):
        """Whether a plan is recorded whose kernels multiply bytes (wasm/kernels/byte_products.py)."""
        return self.tracing and getattr(self.options, "bytewise", False)

    def to_levels(self, x, zero, low, high, dtype):
        """`functional.to_levels` (record/eight_bits.py)."""
        return to_levels(x, zero, low, high, dtype)

    def extremes(self, x):
        """(the lowest, the highest) of all elements, by one reduction of x and -x."""
        signs = self.reshape(self.arange(1, -2, 2, x.dtype), (2, 1))
        both = self.binary("mul", self.reshape(x, (1, x.size)), signs)
        found = self.reduce("max", both, (1,), False)
        high, negative = [self.reshape(self.slice(found, (n,), (1,), (1,)), ()) for n in (0, 1)]
        return self.unary("neg", negative), high

    def matmul_nbits(self, x, weight, scales, zero_points=None, group_indices=None, bias=None, **sizes):
        """The composite of that name (functional/quantized/packed_weights.py), in a plan by a kernel that unpacks the
        weights (record/packed_weights.py), unless x was dequantized, too: then by sums of integers, if it can."""
        from emberlet.functional.quantized.packed_weights import compose_matmul_nbits

        from .record.packed_weights import product

        integers = scales.size == sizes["columns"] and levels(x) is not None
        if group_indices is None and not integers:
            found = product(self, self.options.lanes, x, weight, scales, zero_points, bias, **sizes)
            if found is not None:
                return found
        return compose_matmul_nbits(x, weight, scales, zero_points, group_indices, bias, **sizes)

    def _matmul_levels(self, a, b):
        return self.matmul_8bit(a, b)

    def _conv_levels(self, x, weight, stride, padding, dilation, groups):
        """`conv_8bit`; of few pixels, channels are columns of a product, so that vectors are full."""
        n, channels, pixels = weight.shape[0], x.shape[1], shapes.size(x.shape[2:])
        one = known_equal(x.shape[0], 1) and groups == 1 and weight.shape[2:] == (1,) * len(stride) == tuple(stride)
        padded = [p for p in padding if not known_equal(tuple(p), (0, 0))]
        if not one or padded or is_open(pixels) or pixels >= min(2 * self.options.lanes, n):
            return self.conv_8bit(x, weight, None, stride, padding, dilation, groups)
        left, right = self.reshape(x, (channels, pixels)), self.reshape(weight, (n, channels))
        total = self.matmul_8bit(self.permute(left, (1, 0)), self.permute(right, (1, 0)))
        return self.reshape(self.permute(total, (1, 0)), (1, n) + tuple(x.shape[2:]))

    def _sorted_positions(self, x, descending):
        return self._tensor("sort_runs", (x.data,), descending, dtypes.int64, x.shape)

    def launch(self, name, source, inputs, dtype, shape, groups, values=None):
        raise UnsupportedError("kernel {} is WGSL, which the {} backend does not run".format(name, self.name))

    def write_region(self, x, starts, sizes, steps, value):
        return False

    # -- values ---------------------------------------------------------------------------------------------------

    def realize(self, *tensors):
        """Compute recorded tensors as one plan. Nodes that depend on an input of a plan being traced stay
        recorded."""
        with self._lock:
            roots, order = self._to_compute(tensors)
            if not roots:
                return
            code, layout, given, stored = self._code(order, roots)
            instance = code.instance()
            for number, source in given:
                if isinstance(source, list):
                    words = [n if isinstance(n, int) else numbers(order[n[0]])[n[1]] for n in source]
                    data = storage.unsigned(words)
                else:
                    data = order[source].arg
                instance.write(layout.addresses[number], data)
            instance.run()
            for i in range(len(roots)):
                node = roots[i]
                data = instance.read(layout.addresses[layout.plan.outputs[i]], storage.nbytes(stored[i], node.count))
                _become_data(node, data, stored[i])

    def _code(self, order, roots):
        """(code, its Layout, the source of each external buffer's data, words of the roots)."""
        key = signature(order, roots)
        found = self._plans.get(key)
        if found is None:
            places = {}
            for i in range(len(order)):
                places[id(order[i])] = i
            added = {}
            for n in prepare(roots):
                added[id(n)] = n
            plan, externals = make_plan(roots, self.eager_options, bind_numbers=True)
            code, layout, nbytes = self._compiled(plan)
            given = []
            for number, n in zip(plan.externals, externals):
                source = places.get(id(n))
                if n.op == "numbers":
                    source = [numbers(added[k])[i] if k in added else (places[k], i) for k, i in n.arg]
                given.append((number, source))
            found = (code, layout, given, [r.word for r in roots])
            self._plans.put(key, found, nbytes)
        return found

    def _computed(self, node):
        if node.op != "data":
            refuse_values(node)
        return node.arg

    def constant(self, node):
        return node.arg

    def reorder_weights(self, roots):
        """Store weights as the kernels of a plan read them."""


def _become_data(node, data, word):
    """Give the node its value and drop its history."""
    if node.dtype.bits == 64:
        interval(node)
    node.word = word
    node.arg = data
    node.op = "data"
    node.srcs = ()
