"""Runs the steps of a Session (core/session) as plans. Where a state grows, a plan leaves its length open."""

from ..compiled import Compiled

AFTER = 3  # steps of the same shapes before they get a plan: making one takes as long as many steps


class Resident:
    """One serves a session and its forks. States are bytes in Python's memory between steps, like other results: a step
    copies them to the plan's memory and back. dims: the axes that plans leave open, as `compile` takes them; growing:
    those that states grow along; after: the step of the same shapes that gets a plan."""

    def __init__(self, model, backend, dims, growing, after):
        self.compiled = Compiled(model, (), backend, dims=dims)
        self._growing = growing
        self._after = after
        self._met = {}

    def step(self, arguments, check=None):
        """The results of the model, or None before the step gets a plan, and if the model cannot be one."""
        if self._after > 1:
            kind = repr([(x.dtype.name, x.shape) if hasattr(x, "dtype") else x for x in arguments])
            self._met[kind] = self._met.get(kind, 0) + 1
            if self._met[kind] < self._after:
                return None
        fixed = [name for name in self._growing if name in self.compiled.fixed]
        # A plan for one length of a growing state would serve one step.
        found = None if self.compiled.cut is not None else self.compiled.find(arguments, alone=not fixed)
        if found is None:
            return None
        planned, sizes = found
        results = planned.finish(planned.program.run(planned.words(arguments, sizes), sizes), sizes)
        return list(results) if isinstance(results, tuple) else [results]
