"""The wgpu backend: every primitive records a Node; reading a value fuses and runs what was recorded."""

from emberlet import dtypes, shapes
from emberlet.backend import Backend
from emberlet.errors import BackendError, UnsupportedError
from emberlet.protocol import BOOLEAN_RESULT
from emberlet.tensor import Tensor

from . import storage
from .device import lock
from .kernels import Options
from .node import Node, is_leaf, refuse_values, signature, topological
from .plan import make_plan

MAX_INPUTS = 7  # of a kernel of one's own: WebGPU grants 8 storage buffers, and one is the result
MAX_PLANS = 256  # plans kept for graphs that were realised before


def _warn(text):
    try:
        from warnings import warn
    except ImportError:  # a port without warnings
        print("emberlet: " + text)
        return
    warn(text, stacklevel=4)


class WgpuBackend(Backend):
    """Tensors on GPU number `index`. strict: an operation that would be computed on the host raises instead.

    planning: the backend records for plans that are saved, and never opens a device.
    fallbacks: how often each operation was computed on the host. The device is opened when it is first needed, so
    recording and planning need none.
    """

    name = "wgpu"
    OVERRIDES = ("dot_product_attention",)

    def __init__(self, index=0, device=None, strict=False, planning=False):
        Backend.__init__(self, index)
        self._device = device
        self._opened = False
        self._host = None
        self.strict = strict
        self.fallbacks = {}
        self._warned = False
        self.tracing = False
        self.planning = planning
        self._options = None
        self._lock = lock()
        self._plans = {}

    @property
    def device(self):
        """The Device (device.py), opened on first use. Raises BackendError where the machine has none."""
        if self._device is None or (self._device.lost and self._opened):
            if self.planning:
                raise BackendError("this wgpu backend only makes plans; it has no device to compute values on")
            from .device import open_device

            self._device = open_device(self.index)
            self._opened = True
        return self._device

    @property
    def options(self):
        """The kernels.Options of the device; WebGPU's baseline where the backend only plans."""
        if self._options is None:
            self._options = Options() if self.planning else Options.of(self.device)
        return self._options

    @property
    def host(self):
        """The backend that computes what the GPU does not: numpy where there is one."""
        if self._host is None:
            from emberlet.backend import get_backend

            try:
                self._host = get_backend("numpy")
            except Exception:
                self._host = get_backend("python")
        return self._host

    # -- recording ------------------------------------------------------------------------------------------------

    def _tensor(self, op, srcs, arg, dtype, shape):
        if dtype is dtypes.float64 and not self._warned:
            self._warned = True
            _warn("the GPU computes float64 in float32: {!r} gives about 7 digits, not 16".format(self))
        return Tensor(Node(op, srcs, arg, dtype, tuple(shape)), dtype, tuple(shape), self)

    def _record(self, name, tensors, args, op, arg, dtype, shape):
        """Record op over tensors; on the host where one of them, or the result, cannot live on the GPU."""
        for x in tensors:
            if x.backend is not self:
                raise BackendError(
                    "{} got a tensor of {!r} and works on {!r}; move it with .to_device()".format(name, x.backend, self)
                )
            if x.data.op == "host":
                return self.on_host(name, args)
        if storage.word(dtype) is None:
            return self.on_host(name, args)
        return self._tensor(op, tuple([x.data for x in tensors]), arg, dtype, shape)

    def on_host(self, name, args):
        """Compute the primitive `name` on the host; counted in `fallbacks`, an error where `strict`."""
        self.fallbacks[name] = self.fallbacks.get(name, 0) + 1
        if self.strict:
            raise UnsupportedError("{} would be computed on the host, and the backend is strict".format(name))
        out = getattr(self.host, name)(*[self._to_host(a) for a in args])
        if isinstance(out, tuple):
            return tuple([self._from_host(o) for o in out])
        return self._from_host(out)

    def launch(self, name, source, inputs, dtype, shape, groups, values=None):
        """The tensor of `dtype` and `shape` that a kernel of your own computes (docs/writing-a-kernel.md).

        source: WGSL with an entry point `main`, or the path of a .wgsl file; placeholders `{{ … }}` are filled from
        `values` and with what emberlet knows itself. Group 0 binds the inputs in order, then the result: arrays of
        32-bit words, row-major without gaps (f32 for floats, i32 and u32 for integers, u32 for bools). It is compiled
        once, and is what a compiled kernel is found by. inputs: at most 7 Tensors; groups: workgroups (x, y, z), or
        (elements, workgroup size) for as many workgroups as those elements take.
        The launch is recorded like every operation, and so becomes part of plans; what goes into it is computed first.
        Raises BackendError for a tensor of another backend or one that does not live on the GPU.
        """
        for x in inputs:
            if x.backend is not self:
                raise BackendError("kernel {} of {!r} was given a tensor of {!r}".format(name, self, x.backend))
            if x.data.op == "host" or not x.size:
                raise BackendError("kernel {} was given {} {}, which has no buffer".format(name, x.dtype, x.shape))
        if storage.word(dtype) is None:
            raise BackendError("kernel {} cannot give {}, which does not live on the GPU".format(name, dtype))
        if len(inputs) > MAX_INPUTS:
            raise BackendError("kernel {} has {} inputs, at most {} fit".format(name, len(inputs), MAX_INPUTS))
        from .launch import prepared

        arg = (name,) + prepared(name, source, inputs, dtype, shape, groups, values)
        return self._tensor("kernel", tuple([x.data for x in inputs]), arg, dtype, shape)

    def _to_host(self, x):
        if isinstance(x, (list, tuple)) and x and isinstance(x[0], Tensor):
            return [self._to_host(t) for t in x]
        if not isinstance(x, Tensor):
            return x
        if x.data.op == "host":
            return x.data.arg
        return self.host.from_bytes(self.to_bytes(x), x.dtype, x.shape)

    def _from_host(self, x):
        if storage.word(x.dtype) is not None:
            words = storage.widen(self.host.to_bytes(x), x.dtype, x.size)
            if words is not None:
                return self._tensor("data", (), words, x.dtype, x.shape)
        return self._tensor("host", (), x, x.dtype, x.shape)

    # -- data in and out ------------------------------------------------------------------------------------------

    def from_bytes(self, data, dtype, shape):
        if storage.word(dtype) is not None:
            words = storage.widen(data, dtype, shapes.size(shape))
            if words is not None:
                return self._tensor("data", (), words, dtype, shape)
        return self._tensor("host", (), self.host.from_bytes(data, dtype, shape), dtype, shape)

    def from_list(self, values, dtype, shape):
        if storage.word(dtype) is not None:
            words = storage.from_list(values, dtype)
            if words is not None:
                return self._tensor("data", (), words, dtype, shape)
        return self._tensor("host", (), self.host.from_list(values, dtype, shape), dtype, shape)

    def _words(self, x):
        node = x.data
        if node.op == "data":
            return node.arg
        if x.size == 0:
            return b""
        if self.tracing:
            refuse_values(node)
        self.realize(x)
        return self.device.read(node.buffer, node.count * 4)

    def to_bytes(self, x):
        if x.data.op == "host":
            return self.host.to_bytes(x.data.arg)
        return storage.narrow(self._words(x), x.dtype, x.size)

    async def to_data_async(self, x):
        """The elements as a TensorData, awaited where the GPU can only be awaited."""
        from emberlet.data import TensorData

        if x.data.op in ("host", "data") or not x.size:
            return TensorData(self.to_bytes(x), x.shape, x.dtype)
        self.realize(x)
        words = await self.device.read_async(x.data.buffer, x.data.count * 4)
        return TensorData(storage.narrow(words, x.dtype, x.size), x.shape, x.dtype)

    def to_list(self, x):
        if x.data.op == "host":
            return self.host.to_list(x.data.arg)
        return storage.to_list(self._words(x), x.dtype, x.size)

    def realize(self, *tensors):
        """Compute what is recorded: one plan, one submission."""
        with self._lock:
            roots = []
            for x in tensors:
                if not is_leaf(x.data) and x.data.count and x.data not in roots:
                    roots.append(x.data)
                elif x.data.op == "data" and x.data.count:
                    self.upload(x.data)
            if not roots:
                return
            from .runtime import run_once

            plan, externals = self._plan(roots)
            outputs = run_once(self.device, plan, [self.upload(n) for n in externals])
            for i in range(len(roots)):
                roots[i].become_buffer(outputs[i])

    def _plan(self, roots):
        """(plan, external nodes) for roots; the same graph over other values gets the same plan."""
        order = topological(roots)
        key = signature(order, roots)
        found = self._plans.get(key)
        if found is None:
            plan, externals = make_plan(roots, self.options)
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            found = self._plans[key] = (plan, [order.index(n) for n in externals])
        plan, places = found
        return plan, [order[i] for i in places]

    def upload(self, node):
        """The Allocation of a leaf, its data uploaded first where it still lies on the host."""
        if node.op == "data":
            allocation = self.device.allocate(node.count * 4)
            self.device.write(allocation, node.arg)
            node.become_buffer(allocation)
        if node.buffer.device is not self.device:
            raise BackendError(
                "a tensor {} {} lies on another GPU device, or on one that was lost; this is {!r}".format(
                    node.dtype, node.shape, self
                )
            )
        return node.buffer

    # -- creation -------------------------------------------------------------------------------------------------

    def full(self, shape, value, dtype):
        return self._record("full", (), (shape, value, dtype), "full", value, dtype, shape)

    def arange(self, start, step, count, dtype):
        args = (start, step, count, dtype)
        return self._record("arange", (), args, "arange", (start, step), dtype, (count,))

    def random_bits(self, shape, key, counter):
        return self._tensor("random", (), (key, counter), dtypes.uint32, shape)

    # -- elementwise ----------------------------------------------------------------------------------------------

    def unary(self, op, x):
        dtype = dtypes.bool if op in BOOLEAN_RESULT else x.dtype
        return self._record("unary", (x,), (op, x), "unary", op, dtype, x.shape)

    def binary(self, op, a, b):
        dtype = dtypes.bool if op in BOOLEAN_RESULT else a.dtype
        shape = shapes.broadcast(a.shape, b.shape)
        return self._record("binary", (a, b), (op, a, b), "binary", op, dtype, shape)

    def where(self, condition, a, b):
        shape = shapes.broadcast(condition.shape, a.shape, b.shape)
        return self._record("where", (condition, a, b), (condition, a, b), "where", None, a.dtype, shape)

    def cast(self, x, dtype, saturate=True):
        if x.dtype is dtype:
            return x
        return self._record("cast", (x,), (x, dtype, saturate), "cast", saturate, dtype, x.shape)

    def bitcast(self, x, dtype):
        if x.dtype.bits == 64 or x.dtype.is_bool or dtype.is_bool:
            return self.on_host("bitcast", (x, dtype))
        return self._record("bitcast", (x,), (x, dtype), "bitcast", None, dtype, x.shape)

    # -- reductions, order ----------------------------------------------------------------------------------------

    def reduce(self, op, x, axes, keepdims):
        dtype = dtypes.bool if op in BOOLEAN_RESULT else x.dtype
        shape = shapes.reduced(x.shape, axes, keepdims)
        args = (op, x, axes, keepdims)
        return self._record("reduce", (x,), args, "reduce", (op, tuple(axes), keepdims), dtype, shape)

    def argreduce(self, op, x, axis, keepdims):
        shape = shapes.reduced(x.shape, (axis,), keepdims)
        args = (op, x, axis, keepdims)
        return self._record("argreduce", (x,), args, "argreduce", (op, axis, keepdims), dtypes.int64, shape)

    def cumulative(self, op, x, axis):
        return self._record("cumulative", (x,), (op, x, axis), "cumulative", (op, axis), x.dtype, x.shape)

    def sort(self, x, axis, descending):
        if x.data.op == "host":
            return self.on_host("sort", (x, axis, descending))
        last = len(x.shape) - 1
        axes = [i for i in range(last + 1) if i != axis] + [axis]
        y = self.permute(x, axes) if axis != last else x
        order = self._sorted_positions(y, descending)
        values = self.gather(y, order, last)
        if axis == last:
            return values, order
        back = [axes.index(i) for i in range(last + 1)]
        return self.permute(values, back), self.permute(order, back)

    def _sorted_positions(self, x, descending):
        """int64 positions that sort x along its last axis, stably (sort_kernel.py)."""
        from .sort_kernel import run_length

        length = x.shape[-1]
        order = self._tensor("sort_runs", (x.data,), descending, dtypes.int64, x.shape)
        run = run_length(length)
        while run < length:
            order = self._tensor("merge_runs", (x.data, order.data), (descending, run), dtypes.int64, x.shape)
            run *= 2
        return order

    # -- linear algebra and windows -------------------------------------------------------------------------------

    def matmul(self, a, b):
        shape = shapes.broadcast(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])
        return self._record("matmul", (a, b), (a, b), "matmul", None, a.dtype, shape)

    def conv(self, x, weight, bias, stride, padding, dilation, groups):
        spatial = [
            shapes.window(x.shape[2 + i], weight.shape[2 + i], stride[i], padding[i], dilation[i])
            for i in range(len(stride))
        ]
        shape = (x.shape[0], weight.shape[0]) + tuple(spatial)
        arg = (tuple(stride), tuple([tuple(p) for p in padding]), tuple(dilation), groups)
        args = (x, weight, bias, stride, padding, dilation, groups)
        out = self._record("conv", (x, weight), args, "conv", arg, x.dtype, shape)
        if bias is not None and out.data.op == "conv":
            out = self.binary("add", out, self.reshape(bias, (bias.shape[0],) + (1,) * len(stride)))
        return out

    def pool(self, op, x, kernel, stride, padding, dilation):
        spatial = [
            shapes.window(x.shape[2 + i], kernel[i], stride[i], padding[i], dilation[i]) for i in range(len(kernel))
        ]
        arg = (op, tuple(kernel), tuple(stride), tuple([tuple(p) for p in padding]), tuple(dilation))
        args = (op, x, kernel, stride, padding, dilation)
        return self._record("pool", (x,), args, "pool", arg, x.dtype, x.shape[:2] + tuple(spatial))

    def dot_product_attention(self, q, keys, values, bias, scale, softcap, blind, sink):
        """The composite of that name (core/functional/dot_product_attention.py) in one kernel, where that serves."""
        from .attention_kernel import serves

        if not q.dtype.is_float or not serves(q, keys, values, self.options.device_class):
            from emberlet.functional.dot_product_attention import compose_attention

            return compose_attention(q, keys, values, bias, scale, softcap, blind, sink)
        tensors = [q, keys, values]
        if bias is not None:
            if len(bias.shape) < 4:
                bias = self.reshape(bias, (1,) * (4 - len(bias.shape)) + bias.shape)
            tensors.append(bias)
        if sink is not None:
            tensors.append(self.reshape(sink, (q.shape[1],)))
        arg = (scale, softcap, bias is not None, sink is not None)
        args = (q, keys, values, bias, scale, softcap, blind, sink)
        shape = q.shape[:3] + (values.shape[3],)
        return self._record("dot_product_attention", tensors, args, "attention", arg, q.dtype, shape)

    # -- indexing -------------------------------------------------------------------------------------------------

    def take(self, x, indices, axis):
        shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
        return self._record("take", (x, indices), (x, indices, axis), "take", axis, x.dtype, shape)

    def gather(self, x, indices, axis):
        return self._record("gather", (x, indices), (x, indices, axis), "gather", axis, x.dtype, indices.shape)

    def scatter(self, x, indices, updates, axis, op):
        args = (x, indices, updates, axis, op)
        return self._record("scatter", (x, indices, updates), args, "scatter", (axis, op), x.dtype, x.shape)

    def nonzero(self, x):
        return self.on_host("nonzero", (x,))

    # -- movement -------------------------------------------------------------------------------------------------

    def reshape(self, x, shape):
        shape = tuple(shape)
        if shape == x.shape:
            return x
        return self._record("reshape", (x,), (x, shape), "reshape", None, x.dtype, shape)

    def permute(self, x, axes):
        shape = [x.shape[a] for a in axes]
        return self._record("permute", (x,), (x, axes), "permute", tuple(axes), x.dtype, shape)

    def expand(self, x, shape):
        return self._record("expand", (x,), (x, shape), "expand", None, x.dtype, shape)

    def slice(self, x, starts, sizes, steps):
        arg = (tuple(starts), tuple(steps))
        return self._record("slice", (x,), (x, starts, sizes, steps), "slice", arg, x.dtype, sizes)

    def pad(self, x, padding, value):
        padding = tuple([tuple(p) for p in padding])
        shape = [x.shape[i] + padding[i][0] + padding[i][1] for i in range(len(x.shape))]
        return self._record("pad", (x,), (x, padding, value), "pad", (padding, value), x.dtype, shape)

    def concat(self, tensors, axis):
        shape = list(tensors[0].shape)
        shape[axis] = sum([t.shape[axis] for t in tensors])
        return self._record("concat", tuple(tensors), (tensors, axis), "concat", axis, tensors[0].dtype, shape)
