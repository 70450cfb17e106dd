"""The wgpu backend: recorded operations (record/), computed on a GPU when a value is read."""

from emberlet import dtypes
from emberlet.errors import BackendError, UnsupportedError
from emberlet.shapes import size
from emberlet.sizes.size import is_open, surely_less
from emberlet.tensor import Tensor

from .device import can_wait, must_await
from .kernels.table import Options
from .plan.make import make_plan, places_of
from .record.level_products import LevelProducts
from .record.node import numbers, refuse_values, signature, unpacked
from .record.primitives import Primitives
from .run import storage
from .run.buffers import FINALIZERS
from .run.caches import LRUCache

LONG = 1 << 18  # from this many elements on, a reduction takes two steps
PIECES = 1024
MAX_INPUTS = 7  # inputs of a custom kernel: WebGPU guarantees 8 storage buffers, one of which is the result
_PLAN_TEXT = 4 << 20  # bytes of plans (mostly WGSL) cached for graphs that were realized before


class WgpuBackend(LevelProducts):
    """Tensors on GPU number `index`. strict: an operation that would run on the host raises UnsupportedError instead.

    planning: the backend records for plans to be saved, and never opens a device. check_indices: indices computed on
    the GPU are checked too, which waits for them, and an index outside its axis raises IndexingError; a model that
    computes indices then cannot be compiled into one plan. By default such indices are clamped. fallbacks: how often
    each operation ran on the host. The device is opened on first use, so recording and planning need none.
    """

    name = "wgpu"
    OVERRIDES = ("dot_product_attention", "matmul_nbits", "matmul_8bit", "conv_8bit")

    def __init__(self, index=0, device=None, strict=False, planning=False, check_indices=False):
        Primitives.__init__(self, index, strict, planning, check_indices)
        self._device = device
        self._opened = False
        self._half = None
        self._options = None
        self._plans = LRUCache(_PLAN_TEXT)
        self._sizes = None  # EagerSizes, once something is computed

    def open_early(self):
        """Begin to open the device in a thread; a model is read and traced in the meantime."""
        if self._device is None and not self.planning:
            from .device import open_early

            open_early(self.index)

    @property
    def device(self):
        """The Device (device.py), opened on first use. Raises BackendError if the machine has none."""
        if self._device is None or (self._device.lost and self._opened):
            if self.planning:
                raise BackendError("this wgpu backend only makes plans and has no device to compute values on")
            from .device import open_device

            self._device = open_device(self.index)
            self._opened = True
        return self._device

    @property
    def options(self):
        """The kernels.Options of the device; WebGPU's baseline if the backend only plans."""
        if self._options is None:
            self._options = Options() if self.planning else Options.of(self.device)
        return self._options

    @property
    def half(self):
        """Whether float16 is stored as f16."""
        if self._half is None:
            self._half = not self.planning and "shader-f16" in self.device.raw.features
        return self._half

    def _can_wait(self):
        return can_wait()

    def resident(self, model, entries, capacity):
        """The object that runs the steps of a Session (resident.py, awaited_steps.py), or None."""
        from .device import must_await

        if not FINALIZERS:
            from .awaited_steps import AwaitedSteps

            return AwaitedSteps(model, entries, self) if must_await() and not self.planning else None
        from .resident import resident

        return resident(model, entries, capacity, self)

    def step_engine(self):
        """What runs training steps (training.py), or None where Python can only await the GPU."""
        from .device import must_await

        if self.planning or must_await():
            return None
        from .training import Engine

        return Engine(self)

    # -- operations --------------------------------------------------------------------------------------------------

    def _is_long(self, extent, shape, lengths):
        return extent > LONG

    def _pieces(self, length):
        return min(PIECES, length)

    def _sorted_positions(self, x, descending):
        """int64 positions that sort x along its last axis, stably (kernels/sort.py)."""
        from .kernels.sort import run_length

        length = x.shape[-1]
        order = self._tensor("sort_runs", (x.data,), descending, dtypes.int64, x.shape)
        run = run_length(length)
        while run < length:
            order = self._tensor("merge_runs", (x.data, order.data), (descending, run), dtypes.int64, x.shape)
            run *= 2
        return order

    def dot_product_attention(self, q, keys, values, bias, scale, softcap, blind, sink):
        """The composite of that name (functional/transformer) in one kernel, if that is a good choice."""
        from .kernels.attention import serves
        from .record.attention import record

        good = q.dtype.is_float and serves(q, keys, values, self.options.software)
        return record(self, good, q, keys, values, bias, scale, softcap, blind, sink)

    def matmul(self, a, b):
        """a @ b; in a plan, of attention's weights that were rounded to 8 bits in the kernel of attention
        (record/level_attention.py)."""
        found = self._attended(a, b) if self.tracing else None
        return LevelProducts.matmul(self, a, b) if found is None else found

    def _attended(self, weights, values):
        from .kernels.attention import serves
        from .record.level_attention import attended

        return attended(self, weights, values, lambda q, k, v: serves(q, k, v, self.options.software))

    def recurrent_steps(self, cell, part, states, backwards, lengths):
        """All steps of a recurrent layer, if their number is open (record/recurrence.py)."""
        from .record.recurrence import recurrent_steps

        return recurrent_steps(self, cell, part, states, backwards, lengths)

    def write_region(self, x, starts, sizes, steps, value):
        """Assign in place if no other tensor shares the elements of x; else do nothing and return False."""
        if self.planning:
            return False
        from .run.assignment import write_region

        return write_region(self, x, starts, sizes, steps, value)

    def launch(self, name, source, inputs, dtype, shape, groups, values=None):
        """A tensor of `dtype` and `shape`, computed by a kernel of your own (docs/writing-a-kernel.md).

        source: WGSL with an entry point `main`, or the path of a .wgsl file; placeholders `{{ … }}` are filled from
        `values` and by emberlet. Group 0 binds the inputs in order, then the result: arrays of 32-bit words, row-major
        without gaps (f32 for floats, i32 and u32 for integers, u32 for bools; f16 for float16 where the device has it).
        The kernel is compiled once per source. inputs: at most 7 Tensors; groups: workgroups (x, y, z), or (elements,
        workgroup size) for as many workgroups as the elements need. The launch is recorded like every operation, and so
        becomes part of plans; its inputs are computed first. Raises BackendError for a tensor of another backend or one
        that is not on the GPU.
        """
        dtype = dtypes.dtype(dtype)
        for d in list(shape) + [x.size for x in inputs if isinstance(x, Tensor)]:
            if is_open(d):
                d.scope.need(d, "kernel {} takes fixed sizes: the number".format(name))
        for x in inputs:
            if not isinstance(x, Tensor):
                raise BackendError("kernel {} was given {}, expected Tensors".format(name, type(x).__name__))
            if x.backend is not self:
                raise BackendError("kernel {} of {!r} was given a tensor of {!r}".format(name, self, x.backend))
            if x.data.op == "host" or not x.size:
                raise BackendError("kernel {} was given {} {}, which has no buffer".format(name, x.dtype, x.shape))
        if storage.word(dtype) is None:
            raise BackendError("kernel {} cannot return {}, which the GPU does not support".format(name, dtype))
        if len(inputs) > MAX_INPUTS:
            raise BackendError("kernel {} has {} inputs; at most {} fit".format(name, len(inputs), MAX_INPUTS))
        from .kernels.launch import prepared

        arg = (name,) + prepared(name, source, inputs, self.word(dtype), shape, groups, values)
        return self._tensor("kernel", tuple([unpacked(x.data) for x in inputs]), arg, dtype, shape)

    # -- data in and out ---------------------------------------------------------------------------------------------

    def _computed(self, node):
        if node.buffer is None:
            refuse_values(node)
        return self.device.read(node.buffer, node.nbytes)

    async def to_data_async(self, x):
        """The elements as a TensorData; for devices that can only be awaited."""
        from emberlet.tensor_data import TensorData

        if x.data.op in ("host", "data") or not x.size:
            return await Primitives.to_data_async(self, x)
        self.realize(x)
        if x.data.buffer is None:
            refuse_values(x.data)
        words = await self.device.read_async(x.data.buffer, x.data.nbytes)
        return TensorData(storage.narrow(words, x.dtype, x.size, x.data.word), x.shape, x.dtype)

    def realize(self, *tensors):
        """Compute recorded tensors: one plan, one submission. Intermediate ones that are still referenced are kept too.

        Nodes that depend on an input of a plan being traced stay recorded.
        """
        with self._lock:
            for x in tensors:
                if x.data.op == "data" and x.data.count:
                    self.upload(x.data)
            roots, order = self._to_compute(tensors)
            if not roots:
                return
            from .run.runtime import run_once

            plan, externals, words, sizes = self._plan(order, roots)
            outputs = run_once(self.device, plan, externals, sizes)
            if not FINALIZERS:
                leaves = {id(node.buffer) for node in order}
                for given in externals:
                    if id(given) not in leaves:  # numbers that only this run has used
                        given.free()
            for i in range(len(roots)):
                roots[i].become_buffer(outputs[i], words[i])

    def _plan(self, order, roots):
        """(plan, Allocations of its externals, words of the roots, what kernels read of open sizes) for `roots`;
        `order` holds all they depend on. The same graph over other values and numbers gets the same plan."""
        key = signature(order, roots)
        found = self._plans.get(key) or self._served(order, roots)
        if found is None:
            try:
                plan, externals = make_plan(roots, self.options, bind_numbers=True)
            except UnsupportedError:
                # Tensors of many pages leave no binding for the numbers, so these are written into the kernels of this
                # graph.
                plan, externals = make_plan(roots, self.options)
                return plan, [self.upload(n) for n in externals], [r.word for r in roots], b""
            found = (plan, places_of(externals, order), [r.word for r in roots], b"")
            self._plans.put(key, found, plan.text_bytes())
        plan, given, words, sizes = found
        allocations = [self._numbers(order, g) if isinstance(g, list) else self.upload(order[g]) for g in given]
        return plan, allocations, words, sizes

    def _served(self, order, roots):
        """What a plan with open sizes gives for a graph (eager_sizes.py); None if it is to have its own plan."""
        if must_await():  # on MicroPython, whose memory is small
            return None
        if self._sizes is None:
            from .eager_sizes import EagerSizes

            self._sizes = EagerSizes(self.options)
        return self._sizes.find(order, roots)

    def _numbers(self, order, places):
        """The Allocation of a kernel's numbers; places: [(a node's place in `order`, which of its `numbers`)]."""
        words = [numbers(order[at])[which] for at, which in places]
        allocation = self.device.allocate(4 * len(words))
        self.device.write(allocation, storage.unsigned(words))
        return allocation

    def matmul_nbits(self, x, weight, scales, zero_points=None, group_indices=None, bias=None, **sizes):
        """The composite of that name (functional/quantized/packed_weights.py), for few rows in a plan by a kernel that
        unpacks the weights (record/packed_weights.py)."""
        from emberlet.functional.quantized.packed_weights import compose_matmul_nbits

        from .record.packed_weights import FEW, product

        few = isinstance(x, Tensor) and x.size and surely_less(x.size, (FEW + 1) * sizes["rows"])
        if few and group_indices is None:
            found = product(self, None, x, weight, scales, zero_points, bias, **sizes)
            if found is not None:
                return found
        return compose_matmul_nbits(x, weight, scales, zero_points, group_indices, bias, **sizes)

    def matmul_8bit(self, a, b):
        """a @ b for int32 values within 255 of 0, in a plan by a kernel of bytes (record/byte_words.py)."""
        found = self._matmul_levels(a, b)
        return self._summed(self.matmul, a, b, a.shape[-1]) if found is None else found

    def conv_8bit(self, x, weight, bias, stride, padding, dilation, groups):
        """`conv` for such values, in the same way. bias: None."""
        found = self._conv_levels(x, weight, stride, padding, dilation, groups)
        if found is not None:
            return found

        def convolve(x, weight):
            return self.conv(x, weight, bias, stride, padding, dilation, groups)

        return self._summed(convolve, x, weight, size(weight.shape[1:]))

    def _summed(self, function, a, b, terms):
        """A function of int32 values that sums `terms` products: of floats, if these hold the sums."""
        from .record.byte_words import largest_sum
        from .record.range_levels import floats_of

        largest = largest_sum(a, b, terms)
        if largest is None:
            return function(a, b)
        left = floats_of(a) if self.tracing else None
        left = self.cast(a, dtypes.float32) if left is None else left
        out = function(left, self.cast(b, dtypes.float32))
        # "whole": the sums are integers that need no check when they become int32.
        out = self._record("cast", (out,), (out, dtypes.int32), "cast", "whole", dtypes.int32, out.shape)
        out.data.bounds = (-largest, largest)
        return out

    def cast(self, x, dtype, saturate=True):
        """`x` in another dtype; sums of integers that are floats stay so (record/whole_sums.py)."""
        if self.tracing and x.dtype is dtypes.int32 and dtype is dtypes.float32:
            from .record.whole_sums import as_floats

            found = as_floats(x)
            if found is not None:
                return found
        return Primitives.cast(self, x, dtype, saturate)

    def _matmul_levels(self, a, b):
        from .record.byte_words import matmul

        return matmul(a, b) if self.tracing else None

    def _conv_levels(self, x, weight, stride, padding, dilation, groups):
        from .record.byte_words import conv

        return conv(x, weight, stride, padding, dilation, groups) if self.tracing else None

    def to_levels(self, x, zero, low, high, dtype):
        """`functional.to_levels` in a plan (record/eight_bits.py); None for the definition."""
        from .record.eight_bits import to_levels

        return to_levels(x, zero, low, high, dtype) if self.tracing else None

    def range_levels(self, x):
        """`functional.dynamic_quantize_linear` by one kernel in a plan (record/range_levels.py), or None."""
        from .record.range_levels import range_levels

        return range_levels(x) if self.tracing else None

    def extremes(self, x):
        """(the lowest, the highest) of all elements (record/extremes.py)."""
        from .record.extremes import extremes

        return extremes(x)

    def constant(self, node):
        """The value that a `program` takes for a leaf that is not an input."""
        return self.upload(node)

    def program(self, plan, constants, inputs, results, owner):
        """A Program that runs the plan many times (run/runtime.py)."""
        from .run.runtime import Program

        return Program(self.device, plan, constants, inputs, results, owner=owner)

    def upload(self, node):
        """The Allocation of a leaf, uploaded first if its data are still on the host."""
        if node.op == "data":
            with self._lock:
                if node.op == "data":  # again: another thread may have been first
                    allocation = self.device.allocate(node.nbytes)
                    self.device.write(allocation, node.arg)
                    node.become_buffer(allocation)
        if node.buffer.device is not self.device:
            raise BackendError(
                "a tensor, {} {}, is on another GPU device or on one that was lost; this is {!r}".format(
                    node.dtype, node.shape, self
                )
            )
        return node.buffer
