"""`compile`: a model with cached plans, so that a call writes the inputs, submits once and reads the outputs."""

import sys

from emberlet.backend.axes import ATTEMPTS, argument_names, named, of_model
from emberlet.backend.opening import Opening
from emberlet.backend.tracing import ValueNeeded, forked
from emberlet.errors import BackendError, EmberletError
from emberlet.sizes.size import SizeNeeded
from emberlet.tensor import Tensor

from .device import lock, must_await
from .planned import Planned
from .record.fixed_inputs import kinds_of, may_decide, no_plan_for, without_value

MAX_SHAPES = 8  # cached plans of one model, one per set of input shapes; the least recently used is evicted
MAX_OPEN = 4  # plans of one model with open sizes, each for other ranges
MAX_VALUES = 4  # plans for different values of inputs that decide what runs; with more, the model is cut into pieces


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


class Compiled:
    """A compiled model: call it like the model. cut: None, or the ValueNeeded that prevents a single plan; fixed: {name
    of an axis: why plans cannot leave its length open}; unopened: None, or the error of the latest attempt at a plan
    with open sizes, which any set of shapes but this one may have caused; warns: whether a warning tells of calls
    without a plan: once where the model is cut, and once where only those of such arguments have none."""

    warns = True

    def __init__(self, model, examples, backend=None, tune=False, dims=None, shared=None):
        """shared: the SharedPlans of sessions of the model, if this is for one."""
        from emberlet.backend import get_backend

        self.backend = get_backend("wgpu" if backend is None else backend)
        if self.backend.name not in ("wgpu", "wasm", "native"):
            raise BackendError(
                "plans are made for the wgpu, wasm and native backends, not for {!r}{}".format(
                    self.backend,
                    "; this model is in training: model.valid().compile() makes a plan of its inference"
                    if hasattr(self.backend, "from_inner")
                    else "",
                )
            )
        if examples:
            self.backend.open_early()
        self.model = forked(model, self.backend)
        self.cut = None
        self._unfit = None  # the refusal of the first arguments for which there are no plans
        self.fixed = {}
        self.unopened = None
        self._dims = dims
        self._axes = None
        self._opened = named(dims)
        self._first = None
        self._open = []
        self._programs = {}
        # the positions of inputs whose values decide which operations run
        self._fixed = () if shared is None else shared.fixed
        self._laid_out = {}
        self._shared = shared
        self._tune = tune
        self._uses = 0
        self._last = None
        self._short = None
        self._owner = object()
        self._lock = lock()
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
        for key, planned in list(self._programs.items()):
            shapes = ", ".join([without_value(*k) for k in key])
            plans.append("{} dispatches for ({})".format(len(planned.plan.steps), shapes))
        return "Compiled({}, {})".format(name, "; ".join(plans) or "no plan yet")

    def __reduce__(self):
        """Plans are neither pickled nor copied; the copy makes its own when it is called."""
        return _again, (self.model, self.backend, self._tune, self._dims)

    def bound(self, arguments, keywords):
        """The model's arguments in order, arrays as Tensors. Raises what calling the model would raise."""
        if getattr(self.model, "INPUTS", None) is not None and sys.implementation.name != "micropython":
            from emberlet.host.models.inputs import bind

            return bind(self.model, tuple(arguments), keywords, self.backend)
        if keywords:
            from emberlet.host.models.inputs import in_order

            arguments = in_order(self.model, arguments, keywords)
        return [self._tensor(x) for x in arguments]

    def _tensor(self, x):
        if isinstance(x, Tensor) or not hasattr(x, "shape"):
            return x
        from emberlet.functional.arrays import asarray

        return asarray(x, device=self.backend)

    def find(self, arguments, rooms=None, alone=True):
        """(Planned, values of its open sizes or None) for the shapes of these arguments, made if needed; None if the
        model is cut, or there is no plan for arguments of these types. rooms: Rooms of states that may be appended to
        in place; alone: whether a plan for these shapes alone may be made."""
        if no_plan_for(arguments, self._fixed):
            return None
        with self._lock:
            key = self._key(arguments)
            found = self._alone(key)
            sizes = None
            if found is None and self.cut is None:
                found, sizes = self._find_open(arguments, rooms)
            if found is None and self.cut is None and alone:
                try:
                    found = self._make(arguments)
                except ValueNeeded as error:
                    self.cut = error
                    return None
                except EmberletError:
                    self.unopened = None  # the call is refused, whatever the sizes are
                    raise
                key = self._key(arguments)
                self._programs[key] = found
                if self._shared is not None:
                    self._shared.add(found, key)
            if found is None:
                return None
            self._uses += 1
            found.used = self._uses
            self._last = found
            if len(self._programs) > MAX_SHAPES:
                self._forget_one()
            return found, sizes

    def _key(self, arguments):
        return tuple(zip(kinds_of(arguments, self._fixed), [getattr(x, "shape", None) for x in arguments]))

    def _make(self, arguments):
        """The Planned for the shapes of these arguments alone. Raises ValueNeeded if there is none."""
        said = [without_value(*k) for k in self._key(arguments)]
        alike = [key for key in self._programs if [without_value(*k) for k in key] == said]  # but for the values
        if self._fixed and len(alike) >= MAX_VALUES:
            names = ", ".join([str(i) for i in self._fixed])
            what = "the operations of the model depend on the value of input {}, which keeps changing"
            raise ValueNeeded(what.format(names))
        rest = self._laid_out, self._tune, self._owner, None, self._fixed, self._shared is not None
        try:
            return Planned(self.model, arguments, self.backend, *rest)
        except ValueNeeded as error:
            if not self._fix(error, arguments):
                raise
        return self._make(arguments)

    def _fix(self, error, arguments):
        """Whether inputs that a ValueNeeded names are taken for their values from now on."""
        more = [i for i in error.inputs if i not in self._fixed]
        for i in more:
            x = arguments[i]
            if not x.size or not may_decide(x):
                return False
        if more:
            self._fixed = self._fixed + tuple(more)
            if self._shared is not None:
                self._shared.fixed = self._fixed
            for planned in self._programs.values():
                self._free(planned)
            self._programs, self._short = {}, None
        return bool(more)

    def _alone(self, key):
        """The plan for these shapes alone, this one's or a shared one; None where there is none."""
        found = self._programs.get(key)
        if found is None and self._shared is not None:
            found = self._shared.find(key, self._owner)
            if found is not None:
                self._programs[key] = found
        return found

    def _find_open(self, arguments, rooms=None):
        """(Planned, values of its open sizes) of a plan with open sizes that serves the arguments, made if needed;
        (None, None) if they are to have none."""
        shapes = [x.shape if isinstance(x, Tensor) else None for x in arguments]
        kinds = kinds_of(arguments, self._fixed)
        for planned in self._open:
            sizes = planned.sizes(shapes, kinds, rooms)
            if sizes is not None:
                return planned, sizes
        more = self._shared is not None and len(self._open) < MAX_OPEN
        found = more and self._shared.find_open(shapes, kinds, rooms, self._owner)
        if found:
            self._open.append(found[0])
            return found
        return self._new_open(arguments, shapes, kinds, rooms)

    def _new_open(self, arguments, shapes, kinds, rooms):
        """A new one, as `_find_open` gives it."""
        if self._axes is None:
            if not self._dims and not getattr(self.model, "INPUTS", None):
                return None, None
            self._axes = of_model(self.model, argument_names(self.model, len(arguments)), shapes, self._dims)
        numbers = self._axes.numbers(shapes)
        if numbers is None or len(self._open) >= MAX_OPEN:
            return None, None
        if self._first is None:
            self._first = numbers
        if not self._dims:
            self._opened.extend([n for n in numbers if numbers[n] != self._first[n] and n not in self._opened])
        self.unopened = None
        for attempt in ATTEMPTS[:2] if 0 in numbers.values() else ATTEMPTS:
            planned = self._make_open(arguments, shapes, numbers, attempt, rooms)
            if planned is None:
                continue
            kinds = planned.opening.kinds
            sizes = planned.sizes(shapes, kinds, rooms)
            if sizes is not None or attempt == 0:
                self._open.append(planned)  # of no use to this call, which has an empty axis, but to later ones
                if self._shared is not None:
                    self._shared.add(planned)
            if sizes is not None:
                self.unopened = None
                return planned, sizes
        return None, None

    def _make_open(self, arguments, shapes, numbers, attempt, rooms=None):
        while True:
            opened = [n for n in self._opened if n not in self.fixed and self._axes.within(n, numbers[n])]
            if not opened:
                return None
            opening = Opening(self._axes, opened, numbers, attempt, shapes, kinds_of(arguments, self._fixed), rooms)
            rest = self._laid_out, self._tune, self._owner, opening, self._fixed, self._shared is not None
            try:
                return Planned(self.model, arguments, self.backend, *rest)
            except SizeNeeded as error:
                # Fix the size opened last; the others may be left open without it.
                found = [n for n in opened if n in error.symbols]
                if found:
                    self.fixed[found[-1]] = error
                else:
                    rooms = None  # the room of the states cannot be left open
            except ValueNeeded as error:
                if self._fix(error, arguments):
                    continue
                for name in opened:
                    self.fixed[name] = error
            except EmberletError as error:
                # The model may fail for sizes other than the current ones. If it fails for these too, the plan for them
                # alone raises the error.
                if rooms is None:
                    self.unopened = error.with_traceback(None)
                    return None
                rooms = None

    def _forget_one(self):
        oldest = None
        for key in self._programs:
            if oldest is None or self._programs[key].used < self._programs[oldest].used:
                oldest = key
        self._short = None
        self._free(self._programs.pop(oldest))

    def _free(self, planned):
        if must_await():
            planned.program.release()
        # Elsewhere its memory is freed when the last call that uses it ends, perhaps in another thread.

    def __del__(self):
        for planned in list(getattr(self, "_programs", {}).values()) + getattr(self, "_open", []):
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

    def _without_plan(self, arguments):
        result = self.model(*[self._moved(x) for x in arguments])  # or its error, of which no warning tells
        why = self.refusal(arguments)
        if self.warns and (why is self.cut or self._unfit is None):
            from emberlet.errors.warning import warn_uncompiled

            if why is self.cut:
                self.warns = False
            else:
                self._unfit = why
            given = "" if why is self.cut else " for these arguments"
            warn_uncompiled(self.model, "{} on {}".format(given, self.backend.name), why)
        return result

    def refusal(self, arguments):
        """The ValueNeeded because of which arguments have no plan; None where they may have one."""
        why = None if self.cut is not None else no_plan_for(arguments, self._fixed)
        return ValueNeeded(why) if why else self.cut

    def release(self):
        """Give the plans' memory back when the calls that use it have ended. The next call makes a plan again."""
        with self._lock:
            plans = list(self._programs.values()) + self._open
            self._programs, self._open, self._last, self._short = {}, [], None, None
        for planned in plans:
            self._free(planned)

    def keeps(self, planned):
        """Whether a plan without open sizes is there for further calls."""
        return planned in self._programs.values()

    def _moved(self, x):
        """x on this backend, where no result that is x itself, or a part of it, shares the caller's array."""
        if not isinstance(x, Tensor):
            return x
        from emberlet.session.room import separate

        x = x if x.backend is self.backend else x.to(self.backend)
        return separate(x, [x])

    def planned(self, *examples):
        """The Planned for the shapes of `examples`, or of the last call. Raises ValueNeeded if the model is cut, and
        BackendError if there was no call."""
        given = self.bound(examples, {}) if examples else ()
        if examples:
            self.find(given)
        refusal = self.refusal(given)
        if refusal is not None:
            raise refusal
        if self._last is None:
            raise self._unfit or BackendError("there is no plan yet: call the compiled model, or give examples")
        return self._last

    def plan(self, *examples):
        """The Plan for the shapes of `examples`, or of the last call. Raises what `planned` raises."""
        return self.planned(*examples).plan
