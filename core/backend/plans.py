"""The plans of a compiled model: which one serves a call, which are made, kept and dropped. NumPy's plans and those of
the backends that record share this."""

import sys

from ..errors import BackendError, EmberletError
from ..sizes.size import SizeNeeded
from ..tensor import Tensor
from .axes import ATTEMPTS, argument_names, named, of_model, unfit
from .opening import kinds_of, shapes_of
from .tracing import ValueNeeded

MAX_SHAPES = 8  # plans of a model, one per set of shapes; the least recently used is dropped
MAX_OPEN = 4  # plans of a model with open sizes, each for other ranges
MAX_VALUES = 4  # plans for different values of inputs that decide what runs; with more, the model has no plan
MAX_FIXED = 16  # elements of such an input


class Plans:
    """The plans of a model. A plan has `sizes(shapes, kinds, rooms)` if it has open sizes: their values for arguments
    that it serves, else None.

    cut: None, or the ValueNeeded because of which the model has no plan; unfit: the refusal of the first arguments for
    which alone there is none; fixed: {name of an axis: why plans cannot leave its length open}; unopened: None, or the
    error of the latest attempt at a plan with open sizes, which any set of shapes but this one may have caused; warns:
    whether a warning tells of calls without a plan: once where the model has none, and once where such arguments have
    none.
    """

    warns = True
    attempts = len(ATTEMPTS)  # those at a plan with open sizes that are made (Axes.scope)
    opens_named = True  # whether axes that the model names are opened when a second length occurs
    opens_empty = True  # whether a length that is 0 now may be left open
    most_axes = 1 << 30  # axes that one plan leaves open
    deciding = "elements"  # of which there may be MAX_FIXED in an input that decides

    def __init__(self, model, backend, dims, lock):
        self.model = model
        self.backend = backend
        self.cut = None
        self.unfit = None
        self.fixed = {}
        self.unopened = None
        self._dims = dims
        self._opened = named(dims)
        self._axes = None
        self._first = None  # the lengths of the first call
        self._fixed = ()  # the positions of inputs whose values decide which operations run
        self._open = []
        self._plans = {}  # kinds and shapes -> a plan for these alone
        self._uses = 0
        self._last = None  # the plan used last
        self._short = None  # what serves a call like the last one without looking for its plan
        self._told = ()  # True once a warning told of the cut, False once one told of unfit arguments
        self._lock = lock

    # -- what a backend defines

    def _make_alone(self, arguments):
        """A plan for the shapes of these arguments. Raises ValueNeeded if there is none."""
        raise NotImplementedError

    def _make_opened(self, arguments, opened, numbers, attempt, rooms):
        """A plan with these axes open; numbers: their current lengths. Raises SizeNeeded and ValueNeeded."""
        raise NotImplementedError

    def _may_decide(self, x):
        """Whether plans may take a Tensor for its value."""
        return x.size <= MAX_FIXED

    def _here(self, x):
        """An argument as a plan takes it."""
        return x

    def _own(self, x):
        """An argument as the model itself is called with it."""
        return x

    def _where(self):
        """What computes, in a warning."""
        return self.backend.name

    def _kept(self, plan, key=None):
        """Told of a plan that was made. key: of one without open sizes."""

    def _free(self, plan):
        """Told of a plan that is dropped."""

    # -- arguments

    def bound(self, arguments, keywords):
        """The model's arguments in order, arrays as Tensors. Raises what calling the model would raise."""
        if getattr(self.model, "INPUTS", None) is not None and sys.implementation.name != "micropython":
            from ..host.models.inputs import bind

            arguments = bind(self.model, tuple(arguments), keywords, self.backend)
        elif keywords:
            from ..host.models.inputs import in_order

            arguments = in_order(self.model, arguments, keywords)
        return [self._here(x) for x in arguments]

    def _no_plan_for(self, arguments):
        """Why there is no plan for these arguments, as text; None where there may be one."""
        for i in self._fixed:
            x = arguments[i] if i < len(arguments) else None
            if isinstance(x, Tensor) and not self._may_decide(x):
                what = "input {} decides which operations run, and plans are made for values of at most {} {}"
                return what.format(i, MAX_FIXED, self.deciding)
        return unfit(arguments)

    # -- looking

    def find(self, arguments, rooms=None, alone=True):
        """(a plan, values of its open sizes or None) for these arguments, made if needed; None if the model is cut, or
        there is no plan for arguments of these types. rooms: Rooms of states that may be appended to in place; alone:
        whether a plan for these shapes alone may be made."""
        if self._no_plan_for(arguments) if self._fixed else unfit(arguments):
            return None
        with self._lock:
            kinds, shapes = kinds_of(arguments, self._fixed), shapes_of(arguments)
            found, sizes = self._alone(kinds, shapes), None
            if found is None and self.cut is None:
                found, sizes = self._served(shapes, kinds, rooms) or self._new_open(arguments, shapes, rooms)
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
                self._plans[key] = found
                self._kept(found, key)
            if found is None:
                return None
            self._uses += 1
            found.used = self._uses
            self._last = found
            if len(self._plans) > MAX_SHAPES * (MAX_VALUES if self._fixed else 1):
                self._forget_one()
            return found, sizes

    def _key(self, arguments):
        return tuple(zip(kinds_of(arguments, self._fixed), shapes_of(arguments)))

    def _alone(self, kinds, shapes):
        """The plan for these shapes alone; None where there is none."""
        return self._plans.get(tuple(zip(kinds, shapes))) if self._plans else None

    def _served(self, shapes, kinds, rooms):
        """(a plan with open sizes that is there, their values); None where none serves these arguments."""
        for plan in self._open:
            sizes = plan.sizes(shapes, kinds, rooms)
            if sizes is not None:
                return plan, sizes
        return None

    def refusal(self, arguments):
        """The ValueNeeded because of which arguments have no plan; None where they may have one."""
        why = None if self.cut is not None else self._no_plan_for(arguments)
        return ValueNeeded(why) if why else self.cut

    def planned(self, *examples):
        """The plan for the shapes of `examples`, or of the last call. Raises ValueNeeded if the model is cut, and
        BackendError if there was no call."""
        given = self.bound(examples, {}) if examples else ()
        found = self.find(given) if examples else None
        refusal = self.refusal(given)
        if refusal is not None:
            raise refusal
        if found is not None:
            return found[0]
        if self._last is None:
            raise self.unfit or BackendError("there is no plan yet: call the compiled model, or give examples")
        return self._last

    # -- making

    def _make(self, arguments):
        """The plan for the shapes of these arguments alone. Raises ValueNeeded if there is none."""
        said = [without_value(*k) for k in self._key(arguments)]
        alike = [key for key in self._plans if [without_value(*k) for k in key] == said]  # but for the values
        if self._fixed and len(alike) >= MAX_VALUES:
            names = ", ".join([str(i) for i in sorted(self._fixed)])
            what = "the operations of the model depend on the value of input {}, which keeps changing"
            raise ValueNeeded(what.format(names))
        try:
            return self._make_alone(arguments)
        except ValueNeeded as error:
            if not self._fix(error, arguments):
                raise
        return self._make(arguments)

    def _fix(self, error, arguments):
        """Whether inputs that a ValueNeeded names are taken for their values from now on."""
        more = [i for i in error.inputs if i not in self._fixed]
        if not more or [i for i in more if not self._may_decide(arguments[i])]:
            return False
        self._fixed = self._fixed + tuple(more)
        self._drop()
        return True

    def _new_open(self, arguments, shapes, rooms):
        """(a new plan with open sizes that serves the arguments, their values); (None, None) if they are to have
        none."""
        if self._axes is None:
            if not self._dims and not (self.opens_named and getattr(self.model, "INPUTS", None)):
                return None, None
            self._axes = of_model(self.model, argument_names(self.model, len(arguments)), shapes, self._dims)
        numbers = self._axes.numbers(shapes)
        if numbers is None or len(self._open) >= MAX_OPEN:
            return None, None
        if self._first is None:
            self._first = numbers
        if self.opens_named and not self._dims:
            self._opened.extend([n for n in numbers if numbers[n] != self._first[n] and n not in self._opened])
        self.unopened = None
        for attempt in ATTEMPTS[: min(2, self.attempts) if 0 in numbers.values() else self.attempts]:
            plan = self._attempted(arguments, numbers, attempt, rooms)
            if plan is None:
                continue
            sizes = plan.sizes(shapes, kinds_of(arguments, self._fixed), rooms)
            if sizes is not None or attempt == 0:
                self._open.append(plan)  # where it is of no use to this call, it is to later ones
                self._kept(plan)
            if sizes is not None:
                self.unopened = None
                return plan, sizes
        return None, None

    def _attempted(self, arguments, numbers, attempt, rooms):
        """A plan with those of the axes open that can be; None where there is none."""
        while True:
            opened = self._to_open(numbers)
            if not opened:
                return None
            try:
                return self._make_opened(arguments, opened, numbers, attempt, rooms)
            except SizeNeeded as error:
                # Fix the size opened last; the others may be left open without it.
                found = [n for n in opened if n in error.symbols]
                if rooms is not None and not found:
                    rooms = None  # the room of the states cannot be left open
                    continue
                for name in found[-1:] or opened:
                    self.fixed[name] = error
            except ValueNeeded as error:
                if self._fix(error, arguments):
                    continue
                for name in opened:
                    self.fixed[name] = error
            except EmberletError as error:
                # The model may fail for sizes other than the current ones. If it fails for these too, the plan for them
                # alone raises the error.
                if rooms is None:
                    self.unopened = error.with_traceback(None)  # which holds what was traced
                    return None
                rooms = None

    def _to_open(self, numbers):
        """The axes that the next plan leaves open. numbers: their lengths now."""
        opened = [n for n in self._opened if n not in self.fixed and self._axes.within(n, numbers[n])]
        if not self.opens_empty:
            opened = [n for n in opened if numbers[n]]
        for name in opened[self.most_axes :]:
            what = "a plan of {} calls leaves at most {} axes open".format(self._where(), self.most_axes)
            self.fixed[name] = BackendError(what)
        return opened[: self.most_axes]

    # -- dropping

    def _drop(self):
        """Drop the plans without open sizes."""
        plans, self._plans, self._short = self._plans, {}, None
        for plan in plans.values():
            self._free(plan)

    def _forget_one(self):
        oldest = None
        for key in self._plans:
            if oldest is None or self._plans[key].used < self._plans[oldest].used:
                oldest = key
        self._short = None
        self._free(self._plans.pop(oldest))

    def keeps(self, plan):
        """Whether a plan without open sizes is there for further calls."""
        return plan in self._plans.values()

    def release(self):
        """Give the plans' memory back when the calls that use it have ended. The next call makes a plan again."""
        with self._lock:
            plans = list(self._plans.values()) + self._open
            self._plans, self._open, self._last, self._short = {}, [], None, None
        for plan in plans:
            self._free(plan)

    # -- without a plan

    def _without_plan(self, arguments):
        """The model's own result."""
        result = self.model(*[self._own(x) for x in arguments])  # or its error, of which no warning tells
        why = self.refusal(arguments)
        if why is not self.cut:
            self.unfit = self.unfit or why
        if self.warns:
            self.tell(why, "{} on {}".format("" if why is self.cut else " for these arguments", self._where()))
        return result

    def tell(self, why, where):
        """Warn, if this was not done before, that calls have no plan. why: `cut`, or a refusal of arguments."""
        from ..errors.warning import warn_uncompiled

        if (why is self.cut) not in self._told:
            self._told = self._told + (why is self.cut,)
            warn_uncompiled(self.model, where, why)


def without_value(kind, shape):
    """One of `kinds_of` and its shape, as text."""
    kind = kind[0] if isinstance(kind, tuple) else kind
    return kind if shape is None else "{} {}".format(kind, shape)
