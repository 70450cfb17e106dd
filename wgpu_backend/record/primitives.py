"""The primitives: each records a Node (recording.py)."""

from emberlet import dtypes, shapes
from emberlet.backend.protocol import BOOLEAN_RESULT, CUMULATIVE, REDUCE, SCATTER
from emberlet.errors import DTypeError, refuse
from emberlet.sizes.questions import known_equal, within_words
from emberlet.sizes.size import current, is_open, least

from ..kernels.loop import MAX_ITERATIONS
from ..lower.reductions import identity
from ..run import storage
from .host_evaluation import given
from .index_ranges import check_range
from .recording import Recording

_NUMBERS = ("float32", "int32", "uint32", "int16", "uint16", "int8", "uint8")
SPREAD = 1 << 16  # sums that are enough for a GPU to compute side by side
LONGEST = 256 * MAX_ITERATIONS  # the most elements that one workgroup can process


def _is_number(x):
    """Whether all elements of x are known to be one number."""
    return x.data.op == "full" and not is_open(x.data.arg)


class Primitives(Recording):
    """A backend that records primitives. One that computes them (../backend.py, ../wasm/backend.py) has besides:

    options: what its kernels are built with; realize(*tensors): computes recorded tensors; _computed(node): the words
    of a node that was computed; _is_long(extent, shape, lengths): whether a reduction of `extent` elements each, axes
    of `lengths`, to `shape` takes two steps; _pieces(length): how many pieces the longest axis of such a reduction is
    cut into; _sorted_positions(x, descending): int64 positions that sort x along its last axis, stably.
    """

    def _check(self, op, ops, primitive):
        """Raises UnsupportedError for an op that no kernel knows."""
        if op not in ops:
            refuse("no kernel", "{} {}".format(primitive, op), "the " + self.name)

    # -- creation -------------------------------------------------------------------------------------------------

    def full(self, shape, value, dtype):
        if is_open(value):
            if not within_words(value):
                value = value.__index__()
            if dtype.is_float and dtype.bits < 32:
                return self.cast(self.full(shape, value, dtypes.float32), dtype)
        elif isinstance(value, str) and dtype.kind != "string":
            raise DTypeError("{!r} is no number for {}".format(value, dtype))
        elif dtype.is_float and dtype.bits == 16:
            value = self.host.to_list(self.host.full((), value, dtype))[0]  # rounded to the dtype
        return self._record("full", (), (shape, value, dtype), "full", value, dtype, tuple(shape))

    def _folded(self, shape, function, *tensors):
        """The result of `function(host, *tensors)` for tensors that are each filled with one number; so is the
        result."""
        host = self.host
        scalars = [host.full((), t.data.arg, t.dtype) for t in tensors]
        out = function(host, *scalars)
        return self.full(shape, host.to_list(out)[0], out.dtype)

    def arange(self, start, step, count, dtype):
        args = (start, step, count, dtype)
        if not within_words(start) or not within_words(start + step * (count - 1)):
            return self.on_host("arange", args)
        return self._record("arange", (), args, "arange", (start, step), dtype, (count,))

    def random_bits(self, shape, key, counter):
        return self._tensor("random", (), (key, counter), dtypes.uint32, shape)

    # -- elementwise ----------------------------------------------------------------------------------------------

    def unary(self, op, x):
        if _is_number(x):
            return self._folded(x.shape, lambda host, a: host.unary(op, a), x)
        dtype = dtypes.bool if op in BOOLEAN_RESULT else x.dtype
        return self._record("unary", (x,), (op, x), "unary", op, dtype, x.shape)

    def binary(self, op, a, b):
        dtype = dtypes.bool if op in BOOLEAN_RESULT else a.dtype
        shape = shapes.broadcast(a.shape, b.shape)
        a, b = self._as_number(a), self._as_number(b)
        if _is_number(a) and _is_number(b):
            return self._folded(shape, lambda host, a, b: host.binary(op, a, b), a, b)
        return self._record("binary", (a, b), (op, a, b), "binary", op, dtype, shape)

    def _as_number(self, x):
        """x; as a number in a plan where it is one element of data, such as a scale or a zero point, or was cast from
        that: what asks for numbers then finds it, and kernels have it in their text."""
        node = x.data
        while node.op in ("cast", "reshape"):
            node = node.srcs[0]
        if not self.tracing or node.op != "data" or not known_equal(node.count, 1) or x.dtype.name not in _NUMBERS:
            return x
        value = given(x.data, self.host)
        return x if value is None else self.full(x.shape, value.item(), x.dtype)

    def where(self, condition, a, b):
        shape = shapes.broadcast(condition.shape, a.shape, b.shape)
        if _is_number(condition) and _is_number(a) and _is_number(b):
            return self._folded(shape, lambda host, c, a, b: host.where(c, a, b), condition, a, b)
        return self._record("where", (condition, a, b), (condition, a, b), "where", None, a.dtype, shape)

    def cast(self, x, dtype, saturate=True):
        if x.dtype is dtype:
            return x
        if _is_number(x):
            return self._folded(x.shape, lambda host, a: host.cast(a, dtype, saturate), x)
        return self._record("cast", (x,), (x, dtype, saturate), "cast", saturate, dtype, x.shape)

    def bitcast(self, x, dtype):
        if x.dtype.bits == 64 or x.dtype.is_bool or dtype.is_bool:
            return self.on_host("bitcast", (x, dtype))
        return self._record("bitcast", (x,), (x, dtype), "bitcast", None, dtype, x.shape)

    # -- reductions, order ----------------------------------------------------------------------------------------

    def reduce(self, op, x, axes, keepdims):
        self._check(op, REDUCE, "reduce")
        dtype = dtypes.bool if op in BOOLEAN_RESULT else x.dtype
        shape = shapes.reduced(x.shape, axes, keepdims)
        args = (op, x, axes, keepdims)
        extent = shapes.size([x.shape[a] for a in axes])
        if _is_number(x) and op in ("max", "min", "any", "all") and least(extent) > 0 and dtype is x.dtype:
            return self.full(shape, x.data.arg, dtype)
        if self._is_long(extent, shape, [x.shape[a] for a in axes]) and x.data.op != "host":
            if op in ("sum", "prod") and x.dtype.is_float and x.dtype.bits == 16:
                # Partial results in the narrow dtype would overflow or be rounded.
                wide = self.cast(x, dtypes.float32)
                return self.cast(self.reshape(self._reduce_twice(op, wide, tuple(axes)), shape), x.dtype)
            return self.reshape(self._reduce_twice(op, x, tuple(axes)), shape)
        return self._record("reduce", (x,), args, "reduce", (op, tuple(axes), keepdims), dtype, shape)

    def _reduce_twice(self, op, x, axes):
        """A long reduction in two steps: the longest axis is cut into pieces, so that many workgroups share the
        work."""
        long = axes[0]
        for a in axes:
            if x.shape[a] > x.shape[long]:
                long = a
        n = x.shape[long]
        pieces = self._pieces(n)
        length = (n + pieces - 1) // pieces
        if pieces * length != n:
            fill = identity(op, storage.register(x.dtype))
            bounds = x.data.bounds
            x = self.pad(x, [(0, pieces * length - n if a == long else 0) for a in range(len(x.shape))], fill)
            if op in ("max", "min"):
                x.data.bounds = bounds  # the fill is never the result
        y = self.reshape(x, x.shape[:long] + (pieces, length) + x.shape[long + 1 :])
        # Axis `long` of y counts the pieces; reduced axes behind it are shifted by one.
        first = tuple([a + 1 if a >= long else a for a in axes])
        partial = self.reduce(op, y, first, False)
        kept = len([a for a in range(long) if a not in axes])
        return self.reduce(op, partial, (kept,), False)

    def argreduce(self, op, x, axis, keepdims):
        self._check(op, ("max", "min"), "argreduce")
        shape = shapes.reduced(x.shape, (axis,), keepdims)
        args = (op, x, axis, keepdims)
        if x.shape[axis] > LONGEST:
            return self.on_host("argreduce", args)
        return self._record("argreduce", (x,), args, "argreduce", (op, axis, keepdims), dtypes.int64, shape)

    def cumulative(self, op, x, axis):
        self._check(op, CUMULATIVE, "cumulative")
        if x.shape[axis] > LONGEST:
            return self.on_host("cumulative", (op, x, axis))
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

    # -- linear algebra and windows -------------------------------------------------------------------------------

    def matmul(self, a, b):
        shape = shapes.broadcast(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])
        if a.data.op == "full" and is_open(a.size) and not is_open(a.shape[-1]) and not is_open(b.size):
            # All rows are equal, so one row's product, which has no open size, is computed once.
            one = self.full((1,) * (len(a.shape) - 1) + a.shape[-1:], a.data.arg, a.dtype)
            return self.expand(self.matmul(one, b), shape)
        return self._record("matmul", (a, b), (a, b), "matmul", None, a.dtype, shape)

    def conv(self, x, weight, bias, stride, padding, dilation, groups):
        out = self._conv(x, weight, stride, padding, dilation, groups, x.dtype)
        if bias is not None:
            out = self.binary("add", out, self.reshape(bias, (bias.shape[0],) + (1,) * len(stride)))
        return out

    def _conv(self, x, weight, stride, padding, dilation, groups, dtype):
        """`conv` without a bias, whose sums are of `dtype`."""
        x, padding = self._around(x, padding, 0)
        spatial = [
            shapes.window(x.shape[2 + i], weight.shape[2 + i], stride[i], padding[i], dilation[i])
            for i in range(len(stride))
        ]
        shape = (x.shape[0], weight.shape[0]) + tuple(spatial)
        arg = (tuple(stride), tuple([tuple(p) for p in padding]), tuple(dilation), groups)
        args = (x, weight, None, stride, padding, dilation, groups)
        return self._record("conv", (x, weight), args, "conv", arg, dtype, shape)

    def parts_of_sum(self, shape, batch):
        """How many parts of a batch the gradient of a convolution's weight of this shape is summed in. Those of an open
        length are a power of 2, which divides most batches."""
        if is_open(batch):
            parts, now = 1, current(batch)
            while 2 * parts <= now and 2 * parts * shapes.size(shape) <= SPREAD:
                parts *= 2
            return parts
        return max([1] + [n for n in range(2, batch + 1) if batch % n == 0 and n * shapes.size(shape) <= SPREAD])

    def _around(self, x, padding, value):
        """x and the padding that a kernel applies; padding that depends on open sizes is added to x first."""
        for low, high in padding:
            if is_open(low) or is_open(high):
                return self.pad(x, ((0, 0), (0, 0)) + tuple(padding), value), ((0, 0),) * len(padding)
        return x, padding

    def pool(self, op, x, kernel, stride, padding, dilation):
        self._check(op, ("max", "sum"), "pool")
        lowest = -float("inf") if x.dtype.is_float else max(x.dtype.range[0], -(1 << 31))
        x, padding = self._around(x, padding, 0 if op == "sum" else lowest)
        spatial = [
            shapes.window(x.shape[2 + i], kernel[i], stride[i], padding[i], dilation[i]) for i in range(len(kernel))
        ]
        arg = (op, tuple(kernel), tuple(stride), tuple([tuple(p) for p in padding]), tuple(dilation))
        args = (op, x, kernel, stride, padding, dilation)
        return self._record("pool", (x,), args, "pool", arg, x.dtype, x.shape[:2] + tuple(spatial))

    # -- indexing -------------------------------------------------------------------------------------------------

    def _check_indices(self, x, indices, axis):
        """Refuse indices outside an axis if they are still on the host; kernels clamp all others."""
        node = indices.data
        if node.op == "data" and node.count and not node.exact:
            node.bounds = storage.extremes(node.arg, node.word, node.count)
            node.exact = True
        if node.op == "data" and node.count:
            check_range(node.bounds, x.shape[axis], "axis {}".format(axis))

    def take(self, x, indices, axis):
        self._check_indices(x, indices, axis)
        shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
        return self._record("take", (x, indices), (x, indices, axis), "take", axis, x.dtype, shape)

    def gather(self, x, indices, axis):
        self._check_indices(x, indices, axis)
        return self._record("gather", (x, indices), (x, indices, axis), "gather", axis, x.dtype, indices.shape)

    def scatter(self, x, indices, updates, axis, op):
        self._check(op, SCATTER, "scatter")
        steps = indices.shape[axis]
        if steps > MAX_ITERATIONS:
            # Split the updates, so that no invocation loops too long.
            for at in range(0, steps, MAX_ITERATIONS):
                starts = [at if a == axis else 0 for a in range(len(indices.shape))]
                sizes = [min(MAX_ITERATIONS, steps - at) if a == axis else d for a, d in enumerate(indices.shape)]
                ones = (1,) * len(sizes)
                part, values = [self.slice(t, starts, sizes, ones) for t in (indices, updates)]
                x = self.scatter(x, part, values, axis, op)
            return x
        args = (x, indices, updates, axis, op)
        return self._record("scatter", (x, indices, updates), args, "scatter", (axis, op), x.dtype, x.shape)

    def nonzero(self, x):
        return self.on_host("nonzero", (x,))

    def assign_region(self, x, starts, sizes, steps, value):
        """x with `value`, of shape `sizes`, at starts[i] + j * steps[i] along each axis i: a parallel map, whereas a
        scatter would copy x in one invocation. None if a step is neither 1 nor -1."""
        starts, turned = list(starts), [1] * len(steps)
        for i in range(len(steps)):
            if sizes[i] > 1 and steps[i] == -1:
                starts[i] -= sizes[i] - 1
                turned[i] = -1
            elif sizes[i] > 1 and steps[i] != 1:
                return None
        if not value.size or "host" in (x.data.op, value.data.op):
            return None
        if -1 in turned:
            ends = [sizes[i] - 1 if turned[i] < 0 else 0 for i in range(len(sizes))]
            value = self.slice(value, ends, sizes, turned)
        # The starts are those of slices, which kernels read at run time; paddings are part of a kernel.
        room = [x.shape[i] - sizes[i] for i in range(len(sizes))]
        moved = [room[i] - starts[i] for i in range(len(sizes))]

        def placed(part, fill):
            part = self.pad(part, [(r, r) for r in room], fill)
            return self.slice(part, moved, x.shape, (1,) * len(moved))

        inside = placed(self.full(sizes, True, dtypes.bool), False)
        return self.where(inside, placed(value, 0), x)

    # -- movement -------------------------------------------------------------------------------------------------

    def reshape(self, x, shape):
        shape = tuple(shape)
        if known_equal(shape, x.shape):
            return x
        if x.data.op == "full":
            return self.full(shape, x.data.arg, x.dtype)
        return self._record("reshape", (x,), (x, shape), "reshape", None, x.dtype, shape)

    def permute(self, x, axes):
        shape = [x.shape[a] for a in axes]
        if x.data.op == "full":
            return self.full(shape, x.data.arg, x.dtype)
        return self._record("permute", (x,), (x, axes), "permute", tuple(axes), x.dtype, shape)

    def expand(self, x, shape):
        if x.data.op == "full":
            return self.full(shape, x.data.arg, x.dtype)
        return self._record("expand", (x,), (x, shape), "expand", None, x.dtype, shape)

    def slice(self, x, starts, sizes, steps):
        if x.data.op == "full":
            return self.full(sizes, x.data.arg, x.dtype)
        arg = (tuple(starts), tuple(steps))
        return self._record("slice", (x,), (x, starts, sizes, steps), "slice", arg, x.dtype, sizes)

    def pad(self, x, padding, value):
        padding = tuple([tuple(p) for p in padding])
        shape = [x.shape[i] + padding[i][0] + padding[i][1] for i in range(len(x.shape))]
        return self._record("pad", (x,), (x, padding, value), "pad", (padding, value), x.dtype, shape)

    def rotate(self, x, shift, axis):
        """x with its elements `shift` places further along axis, 0 < shift < its length, wrapping around: a slice of x
        beside itself, whose start is data of the kernel."""
        starts = [0] * len(x.shape)
        starts[axis] = x.shape[axis] - shift
        return self.slice(self.concat((x, x), axis), starts, x.shape, (1,) * len(starts))

    def concat(self, tensors, axis):
        shape = list(tensors[0].shape)
        shape[axis] = sum([t.shape[axis] for t in tensors])
        return self._record("concat", tuple(tensors), (tensors, axis), "concat", axis, tensors[0].dtype, shape)
