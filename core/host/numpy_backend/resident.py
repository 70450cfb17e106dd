"""Runs the steps of a Session (core/session) on NumPy as plans that leave the length of the past open.

A growing state is kept in an array with spare capacity (core/session/room.py). A plan reads it there and appends the
new part in place. States that are replaced are ordinary inputs and results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...backend.axes import Axes, argument_names, of_model
from ...backend.opening import kinds_of, shapes_of
from ...errors import BackendError
from ...tensor import Tensor
from .backend import NumpyBackend
from .compile.compiled import Compiled, _OnTrace
from .compile.open_sizes.plan import OpenPlan, States

AFTER = 3  # steps of a kind before it gets a plan: making a plan takes as long as several steps
PLANS = 4  # of one session


class Resident:
    """entries: the states, with `input`, `output` and `axis` (core/session). One serves a session and its forks."""

    def __init__(self, model: Any, entries: list[Any], backend: NumpyBackend) -> None:
        self.model = model
        self.entries = entries
        self.backend = backend
        self.plans: list[OpenPlan] = []
        self.refused: dict[Any, BackendError] = {}  # kind of a step -> why it has no plan
        self._met: dict[Any, int] = {}
        self._grown = [e for e in entries if e.axis is not None]
        self._opened: list[str] = []
        self._axes: Any = None
        self._compiled = Compiled(model, (), backend)

    def step(self, arguments: list[Any], check: Callable[[int], None]) -> list[Any] | None:
        """The model's results; None if no plan serves such a step. check: called with the new length, raises if that is
        too long."""
        if not self._grown:
            return self._replaced(arguments)
        if any(not hasattr(arguments[e.input], "room") or not arguments[e.input].shape[e.axis] for e in self._grown):
            return None
        for plan in self.plans:
            lengths = plan.lengths(arguments)
            if lengths is not None:
                return self._run(plan, arguments, lengths, check)
        kind = self._kind(arguments)
        self._met[kind] = self._met.get(kind, 0) + 1
        if self._met[kind] < AFTER or kind in self.refused or len(self.plans) == PLANS:
            return None
        try:
            plan = self._plan(arguments)
            lengths = plan.lengths(arguments)
            if lengths is None:
                raise BackendError("the model computes something different at the current lengths")
        except BackendError as error:
            self.refused[kind] = error
            return None
        self.plans.append(plan)
        return self._run(plan, arguments, lengths, check)

    def _replaced(self, arguments: list[Any]) -> list[Any] | None:
        """`step` where no state grows."""
        kind = repr([(x.dtype, x.shape) if isinstance(x, Tensor) else x for x in arguments])
        self._met[kind] = self._met.get(kind, 0) + 1
        if self._met[kind] < AFTER:
            return None
        served = self._compiled.find(arguments)
        if served is None:
            return None
        plan = served[0]
        found = plan.finish(plan.arrays([x.data if isinstance(x, Tensor) else x for x in arguments]))
        return list(found) if isinstance(found, tuple) else [found]

    def _kind(self, arguments: list[Any]) -> Any:
        """A key that is equal for all steps that one plan could serve: every length except the open ones."""
        shapes = shapes_of(arguments)
        numbers = self._axes.numbers(shapes) if self._axes else None
        if numbers is None:
            self._axes = self._axes_of(arguments, shapes)
            numbers = self._axes.numbers(shapes) or {}
        known = sorted((name, n) for name, n in numbers.items() if name not in self._opened)
        return repr((kinds_of(arguments, ()), self._axes.templates, known))

    def _axes_of(self, arguments: list[Any], shapes: list[Any]) -> Axes:
        names = argument_names(self.model, len(arguments))
        described = getattr(self.model, "INPUTS", None) or ()
        dims: dict[str, Any] = {}
        for e in self._grown:
            said = described[e.input][2] if e.input < len(described) else None
            if said is None or not isinstance(said[e.axis], str):
                dims[names[e.input]] = {e.axis: "past"}
        axes = of_model(self.model, names, shapes, dims)
        self._opened = []
        for e in self._grown:
            self._opened += [s for s in axes.templates[e.input][e.axis][1] if s not in self._opened]
        return axes

    def _plan(self, arguments: list[Any]) -> OpenPlan:
        room = arguments[self._grown[0].input].room.length
        states = States([(e.input, e.output, e.axis) for e in self._grown], room)
        return OpenPlan(_OnTrace(self.model), arguments, self.backend, self._axes, self._opened, states)

    def _run(
        self, plan: OpenPlan, arguments: list[Any], lengths: dict[str, int], check: Callable[[int], None]
    ) -> list[Any] | None:
        grown = self._grown
        roots = [plan.root(e.output) for e in grown]
        after = [plan.length(root, e.axis, lengths) for root, e in zip(roots, grown, strict=True)]
        for n in after:
            check(n)
        rooms = []
        for e, n in zip(grown, after, strict=True):
            x = arguments[e.input]
            if n > x.room.length:
                x.room = type(x.room)(x, e.axis, 2 * n)
            rooms.append(x.room.array.data)
        if len({room.shape[e.axis] for room, e in zip(rooms, grown, strict=True)}) > 1:
            return None
        found = plan.run(arguments, lengths, rooms)
        for e, root, n in zip(grown, roots, after, strict=True):
            x = arguments[e.input]
            found[root] = x.grown = x.room.view(n)
        results = plan.finish(found)
        return list(results) if isinstance(results, tuple) else [results]
