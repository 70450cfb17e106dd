"""Runs the steps of a Session (core/session) on NumPy as plans that leave the length of the past open.

A growing state is kept in an array with spare capacity (core/session/room.py). A plan reads it there and appends the
new part in place. States that are replaced are ordinary inputs and results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...backend.axes import argument_names, of_model
from ...backend.opening import kinds_of, rooms_of, shapes_of
from ...errors import BackendError
from ...tensor import Tensor
from .backend import NumpyBackend
from .compile.compiled import Compiled
from .compile.open_sizes.plan import OpenPlan

AFTER = 3  # steps of a kind before it gets a plan: making a plan takes as long as several steps


class Resident:
    """entries: the states, with `input`, `output` and `axis` (core/session). One serves a session and its forks."""

    def __init__(self, model: Any, entries: list[Any], backend: NumpyBackend) -> None:
        self.entries = entries
        self._grown = [e for e in entries if e.axis is not None]
        self.compiled = _Steps(model, backend, self._grown)

    def step(self, arguments: list[Any], check: Callable[[int], None]) -> list[Any] | None:
        """The model's results; None if no plan serves such a step. check: called with the new length, raises if that is
        too long."""
        rooms = rooms_of(self.entries, arguments, object, None)
        if self._grown and (rooms is None or len(rooms.states) < len(self._grown)):
            return None
        alone = not self._grown and self.compiled.is_frequent((kinds_of(arguments, ()), shapes_of(arguments)))
        found = self.compiled.find(arguments, rooms, alone)
        if found is None:
            return None
        plan, lengths = found
        if lengths is None:
            results = plan.finish(plan.arrays([x.data if isinstance(x, Tensor) else x for x in arguments]))
        else:
            data = self._appended(plan, arguments, lengths, check)
            if data is None:
                return None
            results = plan.finish(data)
        return list(results) if isinstance(results, tuple) else [results]

    def _appended(
        self, plan: OpenPlan, arguments: list[Any], lengths: dict[str, int], check: Callable[[int], None]
    ) -> list[Any] | None:
        """The results of a plan that appends to the states in place; None if their rooms have different lengths."""
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
        return found


class _Steps(Compiled):
    """The plans of a session's steps. grown: the entries of states that grow, whose lengths plans leave open; refused:
    {a kind of step: why it has no plan}."""

    def __init__(self, model: Any, backend: NumpyBackend, grown: list[Any]) -> None:
        super().__init__(model, (), backend)
        self.refused: dict[str, BackendError] = {}
        self._grown = grown
        self._met: dict[str, int] = {}

    def is_frequent(self, kind: Any) -> bool:
        """Whether this is at least the AFTERth step of its kind."""
        key = repr(kind)
        self._met[key] = self._met.get(key, 0) + 1
        return self._met[key] >= AFTER

    def _new_open(self, arguments: list[Any], shapes: list[Any], rooms: Any) -> Any:
        if not self._grown:
            return None, None
        kind = self._kind(arguments, shapes)
        if not self.is_frequent(kind) or repr(kind) in self.refused:
            return None, None
        return super()._new_open(arguments, shapes, rooms)

    def _attempted(self, arguments: list[Any], numbers: dict[str, int], attempt: int, rooms: Any) -> OpenPlan | None:
        try:
            return self._make_opened(arguments, self._opened, numbers, attempt, rooms)
        except BackendError as error:
            self.refused[repr(self._kind(arguments, shapes_of(arguments)))] = error
            return None

    def _kind(self, arguments: list[Any], shapes: list[Any]) -> Any:
        """What is equal for all steps that one plan could serve: every length except the open ones."""
        axes: Any = self._axes
        numbers = axes.numbers(shapes) if axes else None
        if numbers is None:
            self._axes = axes = self._axes_of(arguments, shapes)
            numbers = axes.numbers(shapes) or {}
        known = sorted((name, n) for name, n in numbers.items() if name not in self._opened)
        return kinds_of(arguments, ()), axes.templates, known

    def _axes_of(self, arguments: list[Any], shapes: list[Any]) -> Any:
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
