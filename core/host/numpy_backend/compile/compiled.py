"""`compile` on NumPy: a model as a list of NumPy calls, kept for the shapes that it meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import dtypes
from ....backend import get_backend
from ....backend.plans import Plans, without_value
from ....backend.tracing import forked
from ....errors import BackendError
from ....tensor import Tensor
from .. import NumpyBackend
from ..storage import Array, emberlet_dtype, numpy_dtype
from .matching import matcher
from .plan import Plan
from .tracing import Tracing

if TYPE_CHECKING:
    from .open_sizes.plan import OpenPlan

# name -> NumPy's own dtype
_NATIVE = {d.name: numpy_dtype(d) for d in dtypes.ALL if hasattr(np, d.name) and numpy_dtype(d).isbuiltin == 1}


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


class Compiled(Plans):
    """A compiled model: call it like the model. Plans (core/backend/plans.py) says which plans it has."""

    attempts = 1  # OpenPlan makes further ones itself
    opens_named = False
    opens_empty = False
    most_axes = 2  # a plan is traced at several lengths of each

    def __init__(
        self,
        model: Any,
        examples: Sequence[Any] = (),
        backend: Any = "numpy",
        dims: Any = None,
        warns: bool = True,
    ) -> None:
        found = get_backend(backend)
        if not isinstance(found, NumpyBackend):
            raise BackendError(f"plans of NumPy calls are made for the numpy backend, not for {found!r}")
        super().__init__(forked(model, found), found, dims, RLock())
        self.warns = warns
        self._short: tuple[Any, Plan, Callable[..., bool]] | None
        self._examples = [_like(x) for x in examples]
        if examples:
            self.find(self.bound(tuple(examples), {}))

    def __repr__(self) -> str:
        name = getattr(self.model, "__name__", type(self.model).__name__)
        if self.cut is not None:
            return f"Compiled({name}, not planned: {self.cut})"
        said = [repr(plan) for plan in self._open]
        for key, plan in list(self._plans.items()):
            shapes = ", ".join(without_value(*k) for k in key)
            kept = "" if plan.pays else ", quicker uncompiled"
            said.append(f"{len(plan.steps)} NumPy calls for ({shapes}){kept}")
        return f"Compiled({name}, {'; '.join(said) or 'no plan yet'})"

    def __reduce__(self) -> Any:
        return _again, (self.model, self._examples, self.backend, self._dims)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The model's results."""
        short = self._short
        if short is not None and not keywords and len(arguments) == len(short[0]) and short[2](*arguments):
            self._last = plan = short[1]
            if not plan.pays:
                return self.model(*arguments)
            return plan.finish(plan.arrays([x.data for x in arguments]))
        bound = self.bound(arguments, keywords)
        found = self.find(bound)
        if found is None:
            return self._without_plan(bound)
        plan, lengths = found
        if lengths is not None:
            return plan.finish(plan.run(bound, lengths))
        with self._lock:
            self._short = (plan.key, plan, plan.fits) if plan.fits is not None and self.keeps(plan) else None
        if not plan.pays:
            return self.model(*bound)
        return plan.finish(plan.arrays([x.data if isinstance(x, Tensor) else x for x in bound]))

    def arrays(self, given: Sequence[Any]) -> list[Array] | None:
        """The results as arrays of their own for NumPy arrays of dtypes and shapes that the call before had, without
        any Tensor; None where the model has to be called."""
        short = self._short
        if short is None or short[1].order is None or not short[1].pays or not _arrays_fit(short[0], given):
            return None
        found = short[1].arrays(given)
        return [found[i] for i in short[1].order]

    async def call_async(self, *arguments: Any, **keywords: Any) -> Any:
        """`__call__`: nothing is awaited."""
        return self(*arguments, **keywords)

    def plan(self, *examples: Any) -> Plan | OpenPlan:
        """The Plan, or the OpenPlan, for the shapes of `examples`, or the one used last. Raises what `planned`
        raises."""
        found: Plan | OpenPlan = self.planned(*examples)
        return found

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

    def _where(self) -> str:
        return "NumPy"

    def _make_alone(self, arguments: list[Any]) -> Plan:
        plan = Plan(self._function(), arguments, self.backend, self._fixed)
        if all(isinstance(x, Tensor) for x in arguments):
            plan.key = self._key(arguments)
            plan.fits = matcher(plan.key, arguments)
        return plan

    def _make_opened(
        self, arguments: list[Any], opened: list[str], numbers: dict[str, int], attempt: int, rooms: Any
    ) -> OpenPlan:
        from .open_sizes.plan import OpenPlan

        axes: Any = self._axes
        return OpenPlan(self._function(), arguments, self.backend, axes, opened, rooms, self._fixed)

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
    for (kind, shape), x in zip(key, arguments, strict=True):
        name, value = (kind, None) if type(kind) is str else (kind[0], kind[2])
        if type(x) is not np.ndarray or x.shape != shape or x.dtype is not _NATIVE.get(name):
            return False
        if value is not None and value != x.tobytes():
            return False
    return True


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
