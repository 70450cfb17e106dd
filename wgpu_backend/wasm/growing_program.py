"""Runs a compiled model with open sizes. Its memory has room for the capacity, a value of each size; a call that
exceeds it gets a layout with twice as much room."""

from emberlet.sizes.polynomial import at

from .open_program import OpenProgram
from .program import started, temporaries


class GrowingProgram(OpenProgram):
    """An OpenProgram of a Plan. layout: as an ArenaBackend's (../arena.py); constants, inputs and results: as `program`
    takes them, with Polynomials; capacity: for each symbol, its expected maximum."""

    def __init__(self, layout, plan, constants, inputs, results, capacity):
        self._layout = layout
        self._plan = plan
        self._constants = constants
        self._ports = (inputs, results)
        self._capacity = tuple(capacity)
        found = self._roomy(plan.counts.values(self._capacity), None)
        OpenProgram.__init__(self, started(found, constants), plan.counts, [None] * len(inputs), (), ())
        self._place(found)

    def _place(self, layout):
        """Note where a Layout has the inputs, the results and the rest."""
        self._now = layout
        self.temporary = temporaries(layout)
        inputs, results = self._ports
        self.inputs = [(layout.addresses[n], layout.rooms[n]) for n, _ in inputs]
        self.open_results = [(layout.addresses[n], nbytes) for n, nbytes in results]
        self.rooms = [layout.rooms[n] for n, _ in results]

    def _grow(self, sizes, values):
        buffers, layout = self._plan.buffers, self._now
        small = [i for i in range(len(buffers)) if at(buffers[i].nbytes, values) > layout.rooms[i]]
        if not small and not [f for _, f in self._plan.kernels if at(f.scratch, values) > layout.scratch_room]:
            return
        self._capacity = self.counts.grown(self._capacity, sizes)
        layout = self._roomy(self.counts.values(self._capacity), values)
        larger = started(layout, self._constants)  # first, so that this one goes on if there is no memory
        self.instance.release()
        self.instance = larger
        self._given = [False] * len(self.inputs)
        self._place(layout)

    def _roomy(self, roomy, values):
        """The Layout with room for the atoms' values `roomy` and, unless that is None, `values`."""

        def room(n):
            return max(at(n, roomy), 0 if values is None else at(n, values))

        return self._layout(self._plan, len(self._plan.counts.block), room)
