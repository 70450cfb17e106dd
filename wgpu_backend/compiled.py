"""`compile`: a model with cached plans, so that a call writes the inputs, submits once and reads the outputs."""

from emberlet.backend.opening import Opening, kinds_of, shapes_of
from emberlet.backend.plans import MAX_OPEN, Plans, without_value
from emberlet.backend.tracing import forked
from emberlet.errors import BackendError
from emberlet.tensor import Tensor

from .device import lock, must_await
from .planned import Planned


def compile(model, *examples, backend=None, tune=False, dims=None):
    """A `Compiled` of a module or function, planned for the dtypes and shapes of `examples`.

    backend: a WgpuBackend or its name ("wgpu"), "wasm" (docs/wasm.md), "native" (docs/native.md). A module is copied
    there; the original is left unchanged. tune: measure which tiles are fastest for the matrix products and
    convolutions; this takes seconds, once per device and shape.

    dims: the axes that one plan leaves open. {"length": 512} opens an axis that a generated model's INPUTS name, up to
    512 ((16, 512): from 16 to 512; range(64, 513, 64): multiples of 64; None: no known limit). {"past": {2: "cache"}}
    opens axis 2 of the argument `past` under the name "cache" ({2: ("cache", 2048)} up to 2048); axes of the same name
    have the same length, and sums such as "cache + new" may be used. Memory is allocated for the largest size at once
    or, without a limit, as sizes grow. By default a generated model's named axes are opened when a second size occurs.
    Other shapes, also those that a plan with open sizes does not serve, get their own plans at their first call.
    `Compiled.fixed` says why a size could not be left open.

    If the value of a small input of integers or booleans decides which operations the model runs, there is a plan for
    each value. If other values decide, there is no plan: the operations between two such places run together, with
    Python in between. A warning says so once, and `Compiled.cut` names the place.
    """
    return Compiled(model, examples, backend, tune, dims)


def _again(model, backend, tune, dims):
    return Compiled(model, (), backend, tune, dims)


class Compiled(Plans):
    """A compiled model: call it like the model. Plans (backend/plans.py) says which plans it has."""

    deciding = "integers"

    def __init__(self, model, examples, backend=None, tune=False, dims=None, shared=None):
        """shared: the SharedPlans of sessions of the model, if this is for one."""
        from emberlet.backend import get_backend

        found = get_backend("wgpu" if backend is None else backend)
        if found.name not in ("wgpu", "wasm", "native"):
            raise BackendError(
                "plans are made for the wgpu, wasm and native backends, not for {!r}{}".format(
                    found,
                    "; this model is in training: model.valid().compile() makes a plan of its inference"
                    if hasattr(found, "from_inner")
                    else "",
                )
            )
        if examples:
            found.open_early()
        Plans.__init__(self, forked(model, found), found, dims, lock())
        if shared is not None:
            self._fixed = shared.fixed
        self._laid_out = {}
        self._shared = shared
        self._tune = tune
        self._owner = object()
        if examples:
            self.find(self.bound(examples, {}))

    def __repr__(self):
        name = getattr(self.model, "__name__", type(self.model).__name__)
        if self.cut is not None:
            return "Compiled({}, cut into pieces: {})".format(name, self.cut)
        plans = []
        for planned in self._open:
            sizes = ["{} {} to {}".format(*s) for s in planned.plan.counts.symbols]
            plans.append("{} dispatches for {}".format(len(planned.plan.steps), " and ".join(sizes)))
        for key, planned in list(self._plans.items()):
            shapes = ", ".join([without_value(*k) for k in key])
            plans.append("{} dispatches for ({})".format(len(planned.plan.steps), shapes))
        return "Compiled({}, {})".format(name, "; ".join(plans) or "no plan yet")

    def __reduce__(self):
        """Plans are neither pickled nor copied; the copy makes its own when it is called."""
        return _again, (self.model, self.backend, self._tune, self._dims)

    def _here(self, x):
        if isinstance(x, Tensor) or not hasattr(x, "shape"):
            return x
        from emberlet.functional.arrays import asarray

        return asarray(x, device=self.backend)

    def _make_alone(self, arguments):
        return self._made(arguments, None)

    def _make_opened(self, arguments, opened, numbers, attempt, rooms):
        kinds = kinds_of(arguments, self._fixed)
        return self._made(arguments, Opening(self._axes, opened, numbers, attempt, shapes_of(arguments), kinds, rooms))

    def _made(self, arguments, opening):
        rest = self._laid_out, self._tune, self._owner, opening, self._fixed, self._shared is not None
        return Planned(self.model, arguments, self.backend, *rest)

    def _may_decide(self, x):
        return (x.dtype.is_integer or x.dtype.is_bool) and Plans._may_decide(self, x)

    def _fix(self, error, arguments):
        fixed = Plans._fix(self, error, arguments)
        if fixed and self._shared is not None:
            self._shared.fixed = self._fixed
        return fixed

    def _alone(self, kinds, shapes):
        """This one's or a shared one."""
        found = Plans._alone(self, kinds, shapes)
        if found is None and self._shared is not None:
            key = tuple(zip(kinds, shapes))
            found = self._shared.find(key, self._owner)
            if found is not None:
                self._plans[key] = found
        return found

    def _served(self, shapes, kinds, rooms):
        found = Plans._served(self, shapes, kinds, rooms)
        if found is None and self._shared is not None and len(self._open) < MAX_OPEN:
            found = self._shared.find_open(shapes, kinds, rooms, self._owner)
            if found:
                self._open.append(found[0])
        return found

    def _kept(self, plan, key=None):
        if self._shared is not None:
            self._shared.add(plan, key)

    def _free(self, planned):
        if must_await():
            planned.program.release()
        # Elsewhere its memory is freed when the last call that uses it ends, perhaps in another thread.

    def __del__(self):
        for planned in list(getattr(self, "_plans", {}).values()) + getattr(self, "_open", []):
            planned.program.disown(self._owner)

    def __call__(self, *arguments, **keywords):
        """The model's results, with their values already on the host."""
        short = self._short
        if short is not None and not keywords:
            data = short.data(arguments)
            if data is not None:
                self._last = short.planned
                return short.run(data)
        arguments = self.bound(arguments, keywords)
        found = self.find(arguments)
        if found is None:
            return self._without_plan(arguments)
        planned, sizes = found
        result = planned.finish(planned.program.run(planned.words(arguments, sizes), sizes), sizes)
        if sizes is None and hasattr(self.backend, "short"):
            short = self.backend.short(planned, arguments)
            with self._lock:
                self._short = short if self.keeps(planned) else None
        return result

    async def call_async(self, *arguments, **keywords):
        """`__call__`, awaited, for platforms where the GPU can only be awaited. Calls may overlap."""
        arguments = self.bound(arguments, keywords)
        found = self.find(arguments)
        if found is None:
            return self._without_plan(arguments)
        planned, sizes = found
        return planned.finish(await planned.program.run_async(planned.words(arguments, sizes), sizes=sizes), sizes)

    def _own(self, x):
        """x on this backend, where no result that is x itself, or a part of it, shares the caller's array."""
        if not isinstance(x, Tensor):
            return x
        from emberlet.session.room import separate

        x = x if x.backend is self.backend else x.to(self.backend)
        return separate(x, [x])

    def plan(self, *examples):
        """The Plan for the shapes of `examples`, or of the last call. Raises what `planned` raises."""
        return self.planned(*examples).plan
