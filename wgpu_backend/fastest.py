"""`compile(backend="auto")`: runs a model on each available device, measures the first calls, and keeps the fastest."""

from emberlet.backend import get_backend
from emberlet.backend.on_host import host_backend
from emberlet.errors import BackendError
from emberlet.tensor import Tensor

from .device import lock

NAMES = ("native", "wasm", "numpy", "wgpu")
CALLS = 3  # measured calls per device, after one that makes the plan


def clock():
    """The time in seconds, to measure with."""
    import time

    if hasattr(time, "perf_counter"):
        return time.perf_counter()
    return time.ticks_us() / 1e6


class Fastest:
    """A compiled model that chooses its device. Call it like the model; its results are on the host's backend.

    The first calls go to each device in turn: one to make the plan, then three measured ones. All later calls go to the
    fastest, and the others' memory is freed. A device that fails is dropped; if it is the last, its error is raised.
    times: {device: seconds of each measured call}; chosen: the name of the fastest device, None while measuring; cut:
    None, or why the chosen one has no plan, of which a warning tells.
    """

    def __init__(self, model, examples, names=None, **options):
        self._lock = lock()
        self._host = host_backend()
        self._left = {}
        self._options = options
        self.times = {}
        self.chosen = None
        problems = []
        for name in names or NAMES:
            try:
                self._left[name] = _compiled(model, examples, name, options)
                self._left[name].warns = False  # the others need no plan
                self.times[name] = []
            except (BackendError, ImportError) as error:
                problems.append("{}: {}".format(name, error))
        if not self._left:
            raise BackendError("no device runs compiled models here; " + "; ".join(problems))
        self._planned = []
        self._choose()

    def __repr__(self):
        if self.chosen is not None:
            return "Fastest({}, {})".format(self.chosen, self._left[self.chosen])
        return "Fastest(measuring {})".format(", ".join(self._left))

    def __reduce__(self):
        """A copy that has not chosen yet measures anew."""
        return _again, (next(iter(self._left.values())).model, tuple(self._left), self._options)

    def __call__(self, *arguments, **keywords):
        """The model's results."""
        if self.chosen is not None:
            return self._on_host(self._left[self.chosen](*arguments, **keywords))
        with self._lock:
            while True:
                name = self.chosen or self._next()
                try:
                    began = clock()
                    result = self._left[name](*arguments, **keywords)
                    took = clock() - began
                except BackendError:
                    if len(self._left) == 1:
                        raise
                    self._drop(name)
                    continue
                if name not in self._planned:
                    self._planned.append(name)
                elif self.chosen is None:
                    self.times[name].append(took)
                self._choose()
                return self._on_host(result)

    @property
    def cut(self):
        return None if self.chosen is None else getattr(self._left[self.chosen], "cut", None)

    def _next(self):
        """The device for the next call."""
        for name in self._left:
            if name not in self._planned:
                return name
        return min(self._left, key=lambda name: len(self.times[name]))

    def _drop(self, name):
        del self._left[name]
        del self.times[name]
        self._choose()

    def _choose(self):
        if self.chosen is None and (len(self._left) == 1 or not [n for n in self._left if len(self.times[n]) < CALLS]):
            best = min(self._left, key=lambda name: min(self.times[name] or [0]))
            self._left = {best: self._left[best]}
            self.chosen = best
            if self.cut is None:
                self._left[best].warns = True
            else:
                from emberlet.errors.warning import warn_uncompiled

                warn_uncompiled(self._left[best].model, " on " + best, self.cut)

    def _on_host(self, value):
        if isinstance(value, Tensor):
            if value.backend is self._host:
                return value
            return self._host.from_bytes(value.backend.to_bytes(value), value.dtype, value.shape)
        if isinstance(value, (list, tuple)):
            return type(value)([self._on_host(v) for v in value])
        if isinstance(value, dict):
            return {k: self._on_host(value[k]) for k in value}
        return value


def _again(model, names, options):
    return Fastest(model, (), names, **options)


def _compiled(model, examples, name, options):
    if name == "numpy":
        from emberlet.host.numpy_backend.compile import Compiled as OnNumpy

        return OnNumpy(model, examples, get_backend(name), warns=False)
    from .compiled import Compiled

    if name == "wgpu":
        get_backend(name).device  # noqa: B018  opened now, or refused
    return Compiled(model, examples, name, **options)
