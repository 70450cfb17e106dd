"""A training step as one plan: `model.compile_step(loss, optimizer, *examples)`.

The step is a plan with states: the parameters, and the optimizer's state of each. They stay in the plan's memory and
are copied out when somebody looks at them. An engine runs plans on one backend (the folder training of NumPy's plans,
wgpu_backend/training.py); where there is none, steps run operation by operation.
"""

from .. import dtypes
from ..autodiff.tensors import backward
from ..errors import ArgumentError, EmberletError
from ..optim.gradients import GradientsParams
from ..optim.optimizer import distinct
from ..optim.rates import finite
from ..tensor import Tensor
from .function import StepFunction, is_tensor, loss_of, unwrapped_all
from .held import Held, held

FIRST_NUMBERS = 64  # numbers that a first trace has room for
MAX_PLANS = 8  # plans of one step; the least recently used is dropped
ATTEMPTS = (0, 2)  # at a plan for batches of every length, by its typical length (Axes.scope)


class _Served:
    """A plan with the batches that it serves. opening: the Opening of the batch's length, or None; key: else the dtypes
    and shapes; values: those of the Opening's atoms for the batch found last; used: when that was."""

    def __init__(self, plan, opening, key):
        self.plan = plan
        self.opening = opening
        self.key = key
        self.values = None
        self.used = 0

    def serves(self, batch, key):
        """Whether the plan is for this batch."""
        if self.opening is None:
            return self.key == key
        if self.key != key:
            values = self.opening.values(batch)
            if values is None:
                return False
            self.key, self.values = key, values
        return True

    def draws(self):
        """The shapes of the random words of a step."""
        return _closed(self.plan.function.draws, self.values)


class CompiledStep:
    """A training step: `loss = step(lr, *batch)`, made by `Module.compile_step`. One thread at a time may call it.

    model, optimizer: what it trains; both show current values at any time, and may be changed between steps. cut: None,
    or the error that says why there is no plan, so that steps run operation by operation. fixed: None, or the error
    that says why a batch of another length needs a plan of its own.
    """

    def __init__(self, model, loss, optimizer, examples=()):
        if not hasattr(optimizer, "updated"):
            raise ArgumentError(
                "a compiled step takes an optimizer that needs one loss a step, such as AdamConfig().init(); found "
                "{!r}{}".format(
                    type(optimizer).__name__,
                    "; call its step(lr, model, closure) instead" if hasattr(optimizer, "step") else "",
                )
            )
        if not any(hasattr(b, "from_inner") for b in model.backends()):
            model.train()
        found = [b for b in model.backends() if hasattr(b, "from_inner")]
        if len(found) != 1 or len(model.backends()) != 1:
            raise EmberletError(
                "a compiled step needs all parameters on one backend, found {}".format(
                    ", ".join([repr(b) for b in model.backends()]) or "no parameters"
                )
            )
        self.model = model
        self.optimizer = optimizer
        self.cut = None
        self.fixed = None
        self._loss = loss
        self._outer = found[0]
        self.backend = found[0].inner
        self._params = distinct(model)
        self._engine = engine_of(self.backend)
        self._flags = None  # whether each parameter is trained, and its identity
        self._ids = []
        self._asked = None  # the positions of the parameters that want a gradient
        self._trained = None  # of those that get one
        self._plans = []
        self._uses = 0
        self._warned = False
        self._states = []  # of each parameter, a dict with the name of a count for an int, None for a tensor; or None
        self._now = None  # (what the engine knows the current values by, {name of a count: int})
        self._marks = []  # the `_value` of each parameter whose elements the engine has
        if examples and self._engine is not None:
            self._find(self.as_batch(examples))

    def __repr__(self):
        name = type(self.model).__name__
        if self.cut is not None or self._engine is None:
            return "CompiledStep({}, operation by operation{})".format(
                name, ": {}".format(self.cut) if self.cut else ""
            )
        return "CompiledStep({}, {})".format(name, ", ".join([repr(p.plan) for p in self._plans]) or "no plan yet")

    def __call__(self, lr, *batch):
        """Train the model on a batch with the learning rate `lr`; returns what the loss function returned, on the
        backend inside the autodiff backend.

        An error or an interrupt leaves all parameters and states as they were before the step, or after it. Raises
        ArgumentError for a rate that is negative or not finite.
        """
        finite("the learning rate", lr)
        batch = self.as_batch(batch)
        found = self._find(batch) if self._engine is not None and self.cut is None else None
        if found is None:
            return self._eagerly(lr, batch)
        env = dict(self._now[1])
        env["lr"] = lr
        function = found.plan.function
        numbers = [n.value(env) for n in function.numbers]
        counts = dict(self._now[1])
        for name in function.counts:
            counts[name] = int(function.counts[name].value(env))
        words = [_drawn(shape, self._engine.drawing) for shape in found.draws()]
        out, now = self._engine.run(found.plan, self._now[0], numbers, words, batch, found.values)
        self._now = (now, counts)  # one assignment: an interrupt falls before or after the step
        return out

    def _eagerly(self, lr, batch):
        outer = self._outer
        out = self._loss(self.model, *[outer.from_inner(x) if isinstance(x, Tensor) else x for x in batch])
        grads = GradientsParams.from_grads(backward(loss_of(out, outer)), self.model)
        self.optimizer.step(lr, self.model, grads)
        return unwrapped_all(out)

    def as_batch(self, batch):
        """The batch, tensors and arrays as Tensors of the backend. Raises ArgumentError for what holds tensors: a plan
        would keep their elements."""
        out = []
        for x in batch:
            if not isinstance(x, Tensor):
                if hasattr(x, "shape"):
                    from ..lookup import function

                    x = function("asarray")(x, backend=self.backend)
                elif _holds_tensors(x):
                    raise ArgumentError(
                        "a compiled step takes the tensors of a batch one by one, step(lr, x, y); found {} that holds "
                        "some".format(type(x).__name__)
                    )
            elif x.backend is not self.backend:
                x = x.data.inner if x.backend is self._outer else x.to(self.backend)
            out.append(x)
        return out

    # -- plans and values --------------------------------------------------------------------------------------------

    def _find(self, batch):
        """The _Served of this batch, with all values in the engine; None where there can be none."""
        flags = [(p.require_grad, p._id) for _, p in self._params]
        if self._flags != flags or self.optimizer.holder is not self:
            self._gather()
        self._load()
        key = [(x.dtype.name, x.shape) if isinstance(x, Tensor) else repr(x) for x in batch]
        found = next((p for p in self._plans if p.serves(batch, key)), None)
        if found is None:
            try:
                found = self._opened(batch, key) or _Served(self._plan(batch, None), None, key)
            except self._engine.CUT as error:
                self._give_up(error)
                return None
            if len(self._plans) == MAX_PLANS:
                self._warn_once()
                self._plans.remove(min(self._plans, key=lambda p: p.used))
            self._plans.append(found)
        found.used = self._uses = self._uses + 1
        for i in found.plan.function.changed:
            param = self._params[i][1]
            if type(self._marks[i]) is not Held:
                mark = self._marks[i] = held(self, i, param._value)
                param._value = mark  # not `set`, which an interrupt may leave locked
        self.optimizer.holder = self
        return found

    def _warn_once(self):
        """Say that batches have too many shapes, the first time that a plan is dropped."""
        if not self._warned:
            self._warned = True
            from warnings import warn

            warn(
                "batches of {} have more than {} shapes, and each new one takes the time of making a plan: pad "
                "sequences to one length or a few; lengths of the first axis share a plan".format(
                    type(self.model).__name__, MAX_PLANS
                ),
                stacklevel=4,
            )

    def _opened(self, batch, key):
        """The _Served of a new plan for batches of every length; None where there can be none for this one."""
        from .batch_size import of_batch

        for attempt in ATTEMPTS if self.fixed is None else ():
            opening = of_batch(batch, attempt)
            if opening is None:
                return None
            try:
                found = _Served(self._plan(batch, opening), opening, None)
            except Exception as error:  # without an open length it works, or says what is wrong
                self.fixed = error
                return None
            if found.serves(batch, key):
                return found
        return None

    def _give_up(self, error):
        self._release()
        self._marks, self._plans, self._now = [], [], None
        self.cut = error
        from warnings import warn

        warn(
            "the training step of {} has no plan and runs operation by operation: {}".format(
                type(self.model).__name__, error
            ),
            stacklevel=4,
        )

    def _release(self):
        """Give all values back to the parameters and the optimizer."""
        for i, mark in enumerate(self._marks):
            if self._params[i][1]._value is mark:
                self._params[i][1].val()
        if self.optimizer.holder is self:
            self.optimizer.states()

    def _gather(self):
        """Take the states as the optimizer has them now."""
        self._release()
        self._ids = [p.id.value for _, p in self._params]
        self._flags = [(p.require_grad, p._id) for _, p in self._params]
        wanted = self._flagged()
        self._take(self._trained if self._asked == wanted else wanted)
        self._asked = wanted

    def _start(self, trained):
        """The states of the parameters at these positions, as the optimizer has them, and None for the others."""
        known = self.optimizer.states()
        out = [None] * len(self._params)
        for i in trained:
            name, param = self._params[i]
            out[i] = known.get(self._ids[i])
            if out[i] is None:
                out[i] = self.optimizer.start(self.optimizer.group_of(name, param), param.val().data.inner)
        return out

    def _take(self, trained):
        """Take the states of these parameters. The plans stay if nothing but numbers is new."""
        self._release()
        states = self._start(trained)
        values, names, seen, counts = [], [], [], {}
        for i in range(len(states)):
            if states[i] is None:
                names.append(None)
                continue
            found = {}
            for key in states[i]:
                value = states[i][key]
                if is_tensor(value):
                    values.append(value if value.backend is self.backend else value.to(self.backend))
                    found[key] = None
                else:  # parameters that were trained as often share a count
                    kind = (key, self.optimizer.group_of(*self._params[i]), value)
                    if kind not in seen:
                        seen.append(kind)
                    found[key] = "{} {}".format(key, seen.index(kind))
                    counts[found[key]] = value
            names.append(found)
        if self._now is not None and (names, self._trained, self._asked) == (self._states, trained, self._flagged()):
            for k in range(len(values)):
                self._engine.load(self._now[0], len(names) + k, values[k])
            self._now = (self._now[0], counts)
            return
        self._marks = [None] * len(states)
        self._states, self._trained, self._plans = names, trained, []
        self._now = (self._engine.begin(len(states), values), counts)

    def _flagged(self):
        """The positions of the parameters that want a gradient."""
        return [i for i, (_, p) in enumerate(self._params) if p.require_grad and p.dtype.is_float]

    def _load(self):
        """Copy the parameters that the engine does not have, or that were set since, to it."""
        for i, (_, param) in enumerate(self._params):
            if param._value is not self._marks[i] or self._marks[i] is None:
                value = param.val()
                before = self._marks[i]
                if before is not None and (before.shape, before.dtype) != (value.shape, value.dtype):
                    self._plans = []
                self._engine.load(self._now[0], i, value.data.inner)
                self._marks[i] = param._value

    def _plan(self, batch, opening):
        function = self._traced(batch, opening)
        if function.trained != self._trained:
            self._take(function.trained)
            self._load()
            function = self._traced(batch, opening)
        return self._engine.plan(function, self._arguments(function, batch, opening), opening)

    def _traced(self, batch, opening):
        """The function of a step, with what it needs of numbers and random words."""
        function = StepFunction(
            self.model, self._loss, self.optimizer, self._outer.strategy, self._params, self._states
        )
        self._engine.trace(function, self._arguments(function, batch, opening), opening)
        return function

    def _arguments(self, function, batch, opening):
        """Arguments for a trace; the Opening gets their shapes."""
        backend = self.backend
        numbers = backend.full((len(function.numbers) or FIRST_NUMBERS,), 0, self._engine.NUMBERS)
        values = None if opening is None else opening.values(batch)
        words = [backend.full(shape, 0, dtypes.uint32) for shape in _closed(function.draws, values)]
        kept = self._engine.values(self._now[0])
        if opening is not None:
            own = opening.shapes[-len(batch) :]
            opening.shapes = [numbers.shape] + function.draws + [x.shape for x in kept] + own
        return [numbers] + words + kept + batch

    def value(self, i):
        """A copy of the current value of a parameter, or behind these of a state, on the backend."""
        while True:
            now = self._now
            found = self._engine.read(now[0], i)
            if self._now is now:  # else another thread's step may have written there
                return found

    def _current(self):
        """Copies of all states: a dict or None for each parameter."""
        at, out = len(self._params), []
        for state in self._states:
            found = None if state is None else {}
            for key in state or {}:
                if state[key] is None:
                    found[key] = self.value(at)
                    at += 1
                else:
                    found[key] = self._now[1][state[key]]
            out.append(found)
        return out

    def function_of(self, batch):
        """The StepFunction of the plan for a batch, which is made if needed; None where steps have no plan."""
        found = self._find(batch) if self._engine is not None and self.cut is None else None
        return found and found.plan.function

    def counts(self):
        """The ints of the states now, by the names that a StepFunction knows them by."""
        return dict(self._now[1])

    def states(self):
        """Value of a ParamId -> copies of its states, for the optimizer."""
        return {id: s for id, s in zip(self._ids, self._current()) if s is not None}


def engine_of(backend):
    """The engine that runs steps on a backend, or None."""
    if backend.name == "numpy":
        from ..host.numpy_backend.compile.training.engine import Engine

        return Engine(backend)
    make = getattr(backend, "step_engine", None)
    return make and make()


def _closed(shapes, values):
    """Shapes with numbers for their Sizes, given the values of the atoms."""
    if values is None:
        return shapes
    from ..backend.axes import closed

    return closed(shapes, values)


def _holds_tensors(x):
    if isinstance(x, (list, tuple, dict)):
        parts = list(x.values()) if isinstance(x, dict) else x
        return any(hasattr(p, "shape") or _holds_tensors(p) for p in parts)
    return any(hasattr(p, "shape") for p in getattr(x, "__dict__", {}).values())


def _drawn(shape, backend):
    from ..functional.randomness.draws import random_bits

    return random_bits(shape, backend=backend)
