"""`compile` on NumPy: a model as a list of NumPy calls, kept for the shapes that it meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import dtypes
from ....backend import get_backend
from ....backend.axes import Axes, argument_names, named, of_model, unfit
from ....backend.tracing import ValueNeeded, forked
from ....errors import BackendError, EmberletError
from ....errors.warning import warn_uncompiled
from ....sizes.size import SizeNeeded
from ....tensor import Tensor
from ...models.inputs import bind, in_order
from .. import NumpyBackend
from ..storage import Array, emberlet_dtype, numpy_dtype
from .matching import matcher
from .plan import Plan
from .tracing import Tracing

if TYPE_CHECKING:
    from .open_sizes.plan import OpenPlan

# name -> NumPy's own dtype
_NATIVE = {d.name: numpy_dtype(d) for d in dtypes.ALL if hasattr(np, d.name) and numpy_dtype(d).isbuiltin == 1}

MAX_SHAPES = 8  # maximum plans of a model; the least recently used one is dropped
MAX_FIXED = 16  # maximum elements of an input whose values decide what is computed
MAX_VALUES = 4  # maximum plans for different values of such an input; with more, the model runs uncompiled
MAX_OPEN = 4  # maximum plans of a model with open sizes, each for other ranges
MAX_AXES = 2  # maximum open axes of a plan, which is traced at several lengths of each


def compile(model: Any, *examples: Any, backend: Any = "numpy", dims: Any = None) -> Compiled:
    """A `Compiled` of a module or function, planned for the dtypes and shapes of `examples`, if there are any.

    dims: the axes that one plan leaves open, as for the GPU: {"length": 512} opens an axis that a generated model's
    INPUTS name, {"past": {2: "cache"}} axis 2 of the argument `past`. Other shapes, and lengths beyond the limits, get
    plans of their own when they are first met; `Compiled.fixed` says why a size could not be left open. Where the model
    decides by the value of a small input which operations to run, there is a plan for each value; where it decides by
    what it computes, the model runs as it is, and `Compiled.cut` says why. Raises BackendError for a backend other than
    numpy and for malformed `dims`.
    """
    return Compiled(model, examples, backend, dims)


class Compiled:
    """A compiled model: call it like the model. cut: None, or the ValueNeeded that keeps it from having a plan; fixed:
    {name of an axis: why plans cannot leave its length open}; unopened: None, or the error of the latest attempt at a
    plan with open sizes, which a length but those of the call may have caused; warns: whether losing the plans is
    warned of."""

    def __init__(
        self,
        model: Any,
        examples: Sequence[Any] = (),
        backend: Any = "numpy",
        dims: Any = None,
        warns: bool = True,
    ) -> None:
        found = get_backend(backend)
        self.warns = warns
        if not isinstance(found, NumpyBackend):
            raise BackendError(f"plans of NumPy calls are made for the numpy backend, not for {found!r}")
        self.backend = found
        self.cut: ValueNeeded | None = None
        self.unfit: ValueNeeded | None = None  # the refusal of the first arguments for which there are no plans
        self.fixed: dict[str, BackendError] = {}
        self.unopened: EmberletError | None = None
        self._dims = dims
        self._opened = named(dims)
        self._axes: Axes | None = None
        self._open: list[OpenPlan] = []
        self._fixed: frozenset[int] = frozenset()
        self._plans: dict[Any, Plan] = {}
        self._lock = RLock()
        self._last: tuple[Any, Plan, Callable[..., bool]] | None = None
        self._examples = [_like(x) for x in examples]
        self.model = forked(model, found)
        self._traced: Any = None
        if examples:
            given = self._arguments(tuple(examples), {})
            if self._find_open(given) is None:
                self._find(given)

    def __repr__(self) -> str:
        name = getattr(self.model, "__name__", type(self.model).__name__)
        if self.cut is not None:
            return f"Compiled({name}, not planned: {self.cut})"
        said = [repr(plan) for plan in self._open]
        for key, plan in list(self._plans.items()):
            shapes = ", ".join("{} {}".format(*k) if isinstance(k, tuple) else str(k) for k in key)
            kept = "" if plan.pays else ", quicker uncompiled"
            said.append(f"{len(plan.steps)} NumPy calls for ({shapes}){kept}")
        return f"Compiled({name}, {'; '.join(said) or 'no plan yet'})"

    def __reduce__(self) -> Any:
        return _again, (self.model, self._examples, self.backend, self._dims)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The model's results."""
        last = self._last
        if last is not None and not keywords and len(arguments) == len(last[0]) and last[2](*arguments):
            if not last[1].pays:
                return self.model(*arguments)
            return last[1].finish(last[1].arrays([x.data for x in arguments]))
        bound = self._arguments(arguments, keywords)
        if self.cut is None and unfit(bound):
            return self._without_plan(bound)
        if self._opened:
            found = self._find_open(bound)
            if found is not None:
                return found[0].finish(found[0].run(bound, found[1]))
        plan = self._find(bound)
        if plan is None or not plan.pays:
            return self.model(*bound)
        return plan.finish(plan.arrays([x.data if isinstance(x, Tensor) else x for x in bound]))

    def arrays(self, given: Sequence[Any]) -> list[Array] | None:
        """The results as arrays of their own for NumPy arrays of dtypes and shapes that the call before had, without
        any Tensor; None where the model has to be called."""
        last = self._last
        if last is None or last[1].order is None or not last[1].pays or not _arrays_fit(last[0], given):
            return None
        found = last[1].arrays(given)
        return [found[i] for i in last[1].order]

    async def call_async(self, *arguments: Any, **keywords: Any) -> Any:
        """`__call__`: nothing is awaited."""
        return self(*arguments, **keywords)

    def plan(self, *examples: Any) -> Plan | OpenPlan:
        """The Plan, or the OpenPlan, for the shapes of `examples`, or the one made or used last. Raises ValueNeeded
        where there is none."""
        found: Plan | OpenPlan | None
        if examples:
            given = self._arguments(examples, {})
            if why := unfit(given):
                raise ValueNeeded(why)
            opened = self._find_open(given)
            found = self._find(given) if opened is None else opened[0]
        else:
            every: list[Plan | OpenPlan] = [*self._open, *self._plans.values()]
            found = every[-1] if every else None
        if found is None:
            none = BackendError("there is no plan yet: call the compiled model, or give examples")
            raise self.cut or self.unfit or none
        return found

    def release(self) -> None:
        """Give the buffers back. The next call makes a plan again."""
        with self._lock:
            self._plans = {}
            self._open = []
            self._last = None

    def _arguments(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
        """The model's arguments in their order, arrays as Tensors. Raises what calling the model would."""
        if getattr(self.model, "INPUTS", None) is not None:
            found = bind(self.model, arguments, keywords, self.backend)
        elif keywords:
            found = list(in_order(self.model, arguments, keywords))
        else:
            found = list(arguments)
        return [self._here(x) for x in found]

    def _here(self, x: Any) -> Any:
        """A Tensor, or what has a shape, on the numpy backend; everything else as it is."""
        if not isinstance(x, Tensor):
            if not hasattr(x, "shape"):
                return x
            from ....functional.arrays import asarray

            return asarray(x, device=self.backend)
        if x.backend is self.backend:
            return x
        return self.backend.from_bytes(x.backend.to_bytes(x), x.dtype, x.shape)

    def planned(self, arguments: list[Any]) -> Plan | None:
        """The Plan for arguments that the model itself takes, Tensors on its backend; None where it runs as it is."""
        return self._find(arguments)

    def _find(self, arguments: list[Any]) -> Plan | None:
        """The Plan for these arguments, made if need be; None where the model runs as it is."""
        if self.cut is not None or unfit(arguments):
            return None
        with self._lock:
            try:
                return self._planned(arguments)
            except ValueNeeded as error:
                self._cut(error)
                return None
            except EmberletError:
                self.unopened = None  # the call is refused, whatever the sizes are
                raise

    def _cut(self, error: ValueNeeded) -> None:
        """From now on the model runs operation by operation."""
        self.cut = error
        self._plans = {}
        self._last = None
        if self.warns:
            warn_uncompiled(self.model, " on NumPy", error)

    def _without_plan(self, arguments: list[Any]) -> Any:
        """The model's own result for arguments that have no plan. Later calls with others have one."""
        result = self.model(*arguments)  # or its error, of which no warning tells
        if self.unfit is None:
            self.unfit = ValueNeeded(unfit(arguments) or "")
            if self.warns:
                warn_uncompiled(self.model, " for these arguments on NumPy", self.unfit)
        return result

    def _find_open(self, arguments: list[Any]) -> tuple[OpenPlan, dict[str, int]] | None:
        """A plan with open sizes that serves these arguments, made if need be, and their lengths; None if they are to
        have no such plan."""
        if not self._opened or self.cut is not None:
            return None
        with self._lock:
            for plan in self._open:
                lengths = plan.lengths(arguments)
                if lengths is not None:
                    return plan, lengths
            shapes = [x.shape if isinstance(x, Tensor) else None for x in arguments]
            if self._axes is None:
                self._axes = of_model(self.model, argument_names(self.model, len(arguments)), shapes, self._dims)
            numbers = self._axes.numbers(shapes)
            if numbers is None or len(self._open) >= MAX_OPEN:
                return None
            made = self._make_open(arguments, numbers)
            if made is None:
                return None
            self._open.append(made)  # it may serve later calls only
            lengths = made.lengths(arguments)
            return None if lengths is None else (made, lengths)

    def _make_open(self, arguments: list[Any], numbers: dict[str, int]) -> OpenPlan | None:
        from .open_sizes.plan import OpenPlan

        axes: Any = self._axes
        self.unopened = None
        while True:
            opened = [n for n in self._opened if n not in self.fixed and numbers[n] and axes.within(n, numbers[n])]
            if not opened:
                return None
            if len(opened) > MAX_AXES:
                error = BackendError(f"a plan of NumPy calls leaves at most {MAX_AXES} axes open")
                self.fixed.update((n, error) for n in opened[MAX_AXES:])
                continue
            try:
                return OpenPlan(self._function(), arguments, self.backend, axes, opened)
            except SizeNeeded as why:
                # The one opened last; the others may be left open without it.
                found = [n for n in opened if n in why.symbols]
                self.fixed.update((n, why) for n in found[-1:] or opened)
            except ValueNeeded as why:
                self.fixed.update((n, why) for n in opened)
            except EmberletError as error:  # if the model fails at these sizes too, calling it raises the error
                self.unopened = error.with_traceback(None)  # which holds the arrays of the trace
                return None

    def _planned(self, arguments: list[Any]) -> Plan:
        key = _key(arguments, self._fixed)
        found = self._plans.pop(key, None)
        if found is None:
            shapes = _key(arguments, frozenset())
            if self._fixed and sum(_shapes(k, self._fixed) == shapes for k in self._plans) >= MAX_VALUES:
                names = ", ".join(str(i) for i in sorted(self._fixed))
                raise ValueNeeded(
                    f"the operations of the model depend on the value of input {names}, which keeps changing"
                )
            try:
                found = Plan(self._function(), arguments, self.backend, self._fixed)
            except ValueNeeded as error:
                more = frozenset(error.inputs) - self._fixed
                if not more or any(arguments[i].size > MAX_FIXED for i in more):
                    raise
                self._fixed |= more
                self._plans = {}
                return self._planned(arguments)
            if all(isinstance(x, Tensor) for x in arguments):
                found.fits = matcher(key, arguments)
        self._plans[key] = found  # the newest is last
        if len(self._plans) > MAX_SHAPES * (MAX_VALUES if self._fixed else 1):
            del self._plans[next(iter(self._plans))]
        self._last = None if found.fits is None else (key, found, found.fits)
        return found

    def _function(self) -> Any:
        """What is traced: the module with its parameters on the backend that records, or the function itself."""
        if not hasattr(self.model, "fork"):
            return self.model
        # Parameters are shared, and read at the time of each trace.
        return _OnTrace(self.model)


class _OnTrace:
    """A module that is forked to the backend of the Tensors that it is called with."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, *arguments: Any) -> Any:
        tracing = next((x.backend for x in arguments if isinstance(x, Tensor)), None)
        module = self.module.fork(tracing) if isinstance(tracing, Tracing) else self.module
        # The call of a Model binds its arguments, which `_arguments` has done.
        run = module if getattr(module, "INPUTS", None) is None else module.forward
        return run(*arguments)


def _arrays_fit(key: Any, arguments: Sequence[Any]) -> bool:
    """Whether all arguments are arrays of these dtypes, all of them NumPy's own, shapes and, where needed, values."""
    if len(key) != len(arguments):
        return False
    for (kind, shape, *values), x in zip(key, arguments, strict=True):
        if type(x) is not np.ndarray or x.shape != shape or x.dtype is not _NATIVE.get(kind):
            return False
        if values and values[0] != x.tobytes():
            return False
    return True


def _key(arguments: list[Any], fixed: frozenset[int]) -> Any:
    key: list[Any] = []
    for i, x in enumerate(arguments):
        if not isinstance(x, Tensor):
            key.append(repr(x))
        elif i in fixed:
            key.append((x.dtype.name, x.shape, x.data.tobytes()))
        else:
            key.append((x.dtype.name, x.shape))
    return tuple(key)


def _shapes(key: Any, fixed: frozenset[int]) -> Any:
    return tuple(k[:2] if i in fixed else k for i, k in enumerate(key))


def _like(x: Any) -> Any:
    """What replaces an example when a compiled model is pickled: the dtype and shape of a Tensor or an array."""
    if isinstance(x, np.ndarray):
        dtype = emberlet_dtype(x.dtype)
        return x if dtype is None else (dtype.name, x.shape)
    return (x.dtype.name, x.shape) if isinstance(x, Tensor) else x


def _again(model: Any, examples: list[Any], backend: NumpyBackend, dims: Any = None) -> Compiled:
    """A Compiled restored from a pickle. It makes its plans again when it is called."""
    out = Compiled(model, (), backend, dims)
    out._examples = examples
    return out
