"""Runs the steps of a Session (core/session) as plans. Where a state grows, a plan leaves its length open and appends
in place: the state stays in the plan's memory (rooms.py)."""

import sys

from emberlet.backend.axes import closed
from emberlet.backend.opening import rooms_of
from emberlet.session.room import LEAST, Growing

from ..compiled import Compiled
from ..resident import longest
from .rooms import ArenaRoom

AFTER = 3  # steps of the same shapes before they get a plan: making one takes as long as many steps


class Resident:
    """One serves a session and its forks. States that do not grow are bytes in Python's memory between steps, like
    other results. entries: the states, with `input`, `output` and `axis` (core/session); dims: the axes that plans
    leave open, as `compile` takes them; growing: those that states grow along; after: the step of the same shapes that
    gets a plan."""

    def __init__(self, model, entries, capacity, backend, dims, growing, after):
        self.entries = entries
        self.capacity = capacity
        shared = None
        if sys.implementation.name != "micropython":
            from emberlet.host.sharing.engines import shared as of_model

            from ..run.shared_plans import SharedPlans

            key = (repr(backend), capacity, repr([(e.input, e.output, e.axis) for e in entries]))
            self._shares = of_model(model, key, SharedPlans)  # which lives as long as something has it
            shared = self._shares.what
        self.compiled = Compiled(model, (), backend, dims=dims, shared=shared)
        self._growing = growing
        self._after = after
        self._met = {}

    def step(self, arguments, check=None):
        """The results of the model, or None before the step gets a plan, and if the model cannot be one. check: called
        with the new length of a state before it is written; raises if that is too long."""
        if self._after > 1:
            kind = repr([(x.dtype.name, x.shape) if hasattr(x, "dtype") else x for x in arguments])
            self._met[kind] = self._met.get(kind, 0) + 1
            if self._met[kind] < self._after:
                return None
        fixed = [name for name in self._growing if name in self.compiled.fixed]
        rooms = rooms_of(self.entries, arguments, ArenaRoom, self.capacity)
        # A plan for one length of a growing state would serve one step.
        found = None if self.compiled.cut is not None else self.compiled.find(arguments, rooms, alone=not fixed)
        if found is None:
            return None
        planned, sizes = found
        if planned.in_place:
            return self._appended(planned, sizes, arguments, check)
        results = planned.finish(planned.program.run(planned.words(arguments, sizes), sizes), sizes)
        results = list(results) if isinstance(results, tuple) else [results]
        for e in self.entries:
            if e.axis is not None and e.output < len(results):
                results[e.output] = self._with_room(results[e.output], e.axis)
        return results

    def _appended(self, planned, sizes, arguments, check):
        """The results of a plan that appends to states in place."""
        states = [(arguments[a],) + place for a, place in planned.in_place.items()]
        values = planned.plan.counts.values(sizes)
        most = longest(self.entries, planned.structure, planned.roots, values)
        if check is not None:
            check(most)
        if [x for x, _, _ in states if most > x.room.length]:
            for x, _, _ in states:
                x.room = ArenaRoom(x, x.room.axis, 2 * most)
            return self.step(arguments)
        rooms = {n: (x.room, closed(planned.roots[k].shape[x.room.axis], values)) for x, n, k in states}
        data = planned.program.run_in(rooms, planned.words(arguments, sizes), sizes)
        grown = {}
        for x, number, k in states:
            x.grown = grown[k] = x.room.view(rooms[number][1])
        tensors = planned.tensors(data, sizes, grown)
        found = planned.assembled(tensors, sizes)
        return list(found) if isinstance(found, tuple) else [found]

    def _with_room(self, x, axis):
        """A state with room to grow, if it can have one."""
        node = getattr(x, "data", None)
        if node is None or not x.size or not ArenaRoom.holds(x.shape, axis, x.dtype, node.word):
            return x
        room = ArenaRoom(x, axis, self.capacity or max(LEAST, 2 * x.shape[axis]))
        return Growing(room, x.shape[axis], self.capacity)
