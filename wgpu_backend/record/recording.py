"""Recording operations: what every backend does that records Nodes and computes them later, except the primitives."""

from emberlet import dtypes, shapes
from emberlet.backend.protocol import Protocol
from emberlet.backend.tracing import ValueNeeded
from emberlet.errors import BackendError, UnsupportedError, refuse
from emberlet.sizes.size import Size, is_open
from emberlet.tensor import Tensor

from ..device import lock
from ..run import storage
from .bounds import UNKNOWN, interval, sources, within
from .host_evaluation import evaluate, given
from .node import (
    Node,
    depends_on_input,
    is_leaf,
    live_nodes,
    of_open_size,
    refuse_values,
    topological,
)
from .size_values import size_values

try:
    from weakref import ref as _ref
except ImportError:  # MicroPython
    _ref = None

MANY_STEPS = 16  # of a recurrent layer, from which recording them in each call takes most of its time
LOOK = 1 << 16  # the host finds the extremes of tensors up to this many elements


def _tells(argument):
    return isinstance(argument, (str, Tensor))


def _warn(text):
    from emberlet.errors.warning import warn

    warn(text)


class Recording(Protocol):
    """Tensors whose data are Nodes. half: whether float16 is stored as f16; tracing: whether a plan is traced. The
    arguments are those of WgpuBackend."""

    half = False
    tracing = False
    float64_is_float32 = True

    def __init__(self, index=0, strict=False, planning=False, check_indices=False):
        Protocol.__init__(self, index)
        self.checks_indices = check_indices
        self._checks = 0
        self._loops = 0
        self._host = None
        self.strict = strict
        self.fallbacks = {}
        self._warned = False
        self.planning = planning
        self._lock = lock()

    @property
    def host(self):
        """The backend that computes what the GPU cannot: numpy, if installed."""
        if self._host is None:
            from emberlet.backend import get_backend

            try:
                self._host = get_backend("numpy")
            except Exception:
                self._host = get_backend("python")
        return self._host

    def word(self, dtype):
        """The stored type of dtype: "f32", "i32", "u32", "f16", or None if the GPU cannot hold it."""
        if dtype is dtypes.float16 and self.half:
            return "f16"
        return storage.word(dtype)

    def given(self, dtype):
        """The stored type of data from the host: as `word`, but packed if the dtype is narrow."""
        return storage.packed(dtype) or self.word(dtype)

    # -- recording ------------------------------------------------------------------------------------------------

    def _tensor(self, op, srcs, arg, dtype, shape):
        if dtype is dtypes.float64 and not self._warned:
            self._warned = True
            _warn("{!r} computes float64 in float32, which gives about 7 digits, not 16".format(self))
        word = self.given(dtype) if op == "data" else self.word(dtype)
        node = Node(op, srcs, arg, dtype, tuple(shape), word)
        out = Tensor(node, dtype, tuple(shape), self)
        if _ref is not None:
            node.holder = _ref(out)
        return out

    def _record(self, name, tensors, args, op, arg, dtype, shape):
        """Record op over tensors; compute it on the host if the GPU cannot hold one of them or the result."""
        for x in tensors:
            if x.backend is not self:
                raise BackendError(
                    "{} got a tensor of {!r}, expected one of {!r}; move it with .to_device()".format(
                        name, x.backend, self
                    )
                )
            if x.data.op == "host":
                return self.on_host(name, args)
        if storage.word(dtype) is None:
            return self.on_host(name, args)
        out = self._tensor(op, tuple([x.data for x in tensors]), arg, dtype, shape)
        if dtype.bits == 64 and not self._holds(out.data):
            return self.on_host(name, args)
        return out

    def _holds(self, node):
        """Whether 32 bits hold every element of a node just recorded.

        If the bounds are wider than 32 bits, the values of its sources are inspected: computing on the host would need
        them anyway.
        """
        if within(interval(node), node.dtype):
            return True
        for source in sources(node):
            if not self._look(source):
                node.bounds = UNKNOWN
                return True
        node.bounds = None
        return within(interval(node), node.dtype)

    def open_early(self):
        """Begin to open what computes, where that takes long."""

    def _can_wait(self):
        """Whether Python can block until values are computed."""
        return True

    def _look(self, node):
        """Find the exact interval of an integer node. False if its values are out of reach: a plan is being traced, or
        the GPU can only be awaited."""
        if node.exact or node.dtype.is_bool:
            return True
        if depends_on_input(node) or not (self.planning or self._can_wait()):
            return False
        if [n for n in topological([node]) if of_open_size(n)]:
            return False
        x = Tensor(node, node.dtype, node.shape, self)
        if x.size <= LOOK or self.planning:
            node.bounds = storage.extremes(self._words(x), node.word, node.count)
        else:
            axes = tuple(range(len(x.shape)))
            ends = [self.reduce(op, x, axes, False) for op in ("min", "max")]
            self.realize(x, *ends)
            node.bounds = (self.to_list(ends[0])[0], self.to_list(ends[1])[0])
        node.exact = True
        return True

    def on_host(self, name, args):
        """Compute the primitive `name` on the host and count it in `fallbacks`. Raises UnsupportedError if `strict`."""
        self.fallbacks[name] = self.fallbacks.get(name, 0) + 1
        if self.strict:
            what = [a if isinstance(a, str) else "{} {}".format(a.dtype, a.shape) for a in args if _tells(a)]
            raise UnsupportedError(
                "{} ({}) would be computed on the host, and the backend is strict".format(name, ", ".join(what))
            )
        if getattr(self.host, name, None) is None:
            refuse("no kernel", name, "the " + self.host.name)
        try:
            args = [self._to_host(a) for a in args]
        except ValueNeeded as error:
            raise ValueNeeded("{} is computed on the host, and {}".format(name, error), error.inputs)
        out = getattr(self.host, name)(*args)
        if isinstance(out, tuple):
            return tuple([self._from_host(o) for o in out])
        return self._from_host(out)

    def visible(self, x):
        """x on the host backend if its elements never left the host, so that reading them waits for nothing; else
        None."""
        if x.data.op == "host":
            return x.data.arg
        if is_open(x.size) or x.size > LOOK:
            return None
        return given(x.data, self.host)

    def checked(self, index, lowest, end, message, axis):
        """None: kernels clamp an index that is not visible. A plan checks it where it follows from the inputs
        (index_checks.py)."""
        node = index.data
        if not is_leaf(node) or node.op == "input":
            self._checks += 1
            node.checks = (node.checks or ()) + ((self._checks, lowest, end, message, axis),)

    def steps_one_by_one(self, steps, x):
        """Told by a recurrent layer that is about to record its steps: where that happens again, outside of a plan, a
        warning says once what is faster."""
        if steps < MANY_STEPS or self._loops > 1 or [n for n in topological([x.data]) if n.op == "input"]:
            return
        self._loops += 1
        if self._loops == 2:
            _warn(
                "{!r} records the {} steps of a recurrent layer anew in each call, which takes most of the time; "
                'model.compile(backend="{}") plans them once'.format(self, steps, self.name)
            )

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
            words = storage.widen(self.host.to_bytes(x), x.dtype, x.size, self.given(x.dtype))
            if words is not None:
                return self._tensor("data", (), words, x.dtype, x.shape)
        return self._tensor("host", (), x, x.dtype, x.shape)

    # -- data in and out ------------------------------------------------------------------------------------------

    def from_bytes(self, data, dtype, shape):
        if storage.word(dtype) is not None:
            words = storage.widen(data, dtype, shapes.size(shape), self.given(dtype))
            if words is not None:
                return self._tensor("data", (), words, dtype, shape)
        return self._tensor("host", (), self.host.from_bytes(data, dtype, shape), dtype, shape)

    def from_list(self, values, dtype, shape):
        if any(type(v) is Size for v in values):
            parts = [self.full((1,), v, dtype) for v in values]
            return self.reshape(self.concat(parts, 0) if len(parts) > 1 else parts[0], shape)
        if storage.word(dtype) is not None:
            words = storage.from_list(values, dtype, self.given(dtype))
            if words is not None:
                return self._tensor("data", (), words, dtype, shape)
        return self._tensor("host", (), self.host.from_list(values, dtype, shape), dtype, shape)

    def _words(self, x):
        node = x.data
        if node.op == "data":
            return node.arg
        if not x.size:
            return b""
        if self.planning:
            refuse_values(node)
            evaluate([node], self.host)
            return node.arg
        self.realize(x)
        return self._computed(node)

    async def to_data_async(self, x):
        """The elements as a TensorData."""
        from emberlet.tensor_data import TensorData

        return TensorData(self.to_bytes(x), x.shape, x.dtype)

    def to_bytes(self, x):
        if x.data.op == "host":
            return self.host.to_bytes(x.data.arg)
        return storage.narrow(self._words(x), x.dtype, x.size, x.data.word)

    def to_list(self, x):
        if x.data.op == "host":
            return self.host.to_list(x.data.arg)
        sizes = size_values(x.data)
        if sizes is not None:
            return sizes
        return storage.to_list(self._words(x), x.dtype, x.size, x.data.word)

    def _to_compute(self, tensors):
        """(the nodes to compute: those of `tensors`, and intermediate ones still referenced; all nodes they depend on,
        in order). Leaves out nodes that depend on an input of a plan being traced."""
        roots = []
        for x in tensors:
            if not is_leaf(x.data) and x.data.count and x.data not in roots:
                roots.append(x.data)
        order = topological(roots)
        if [n for n in order if n.op == "input"]:
            roots = [r for r in roots if not depends_on_input(r)]
            order = topological(roots)
        if roots:
            roots.extend(live_nodes(order, roots))
        return roots, order
