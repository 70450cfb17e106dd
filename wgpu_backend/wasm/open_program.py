"""Runs a module whose kernels read open sizes from its memory, where they are written when they change."""

from emberlet.errors import BackendError
from emberlet.sizes.polynomial import at

from ..run import storage
from .addresses import SIZES
from .program import Program


class OpenProgram(Program):
    """A Program of a plan with open sizes. inputs: lists of (address, the bytes reserved for it); results: (address,
    bytes as a number or Polynomial); rooms: the bytes reserved for each result."""

    def __init__(self, instance, counts, inputs, results, rooms):
        Program.__init__(self, instance, inputs, ())
        self.counts = counts
        self.open_results = results
        self.rooms = rooms
        self._sizes = None

    def fit(self, sizes):
        """The instance, prepared for a call with these sizes. Raises BackendError if the plan does not serve them."""
        if sizes == self._sizes:
            return self.instance
        counts = self.counts
        values = counts.served(sizes)
        self._sizes = None
        self._grow(sizes, values)
        results = [(place, at(n, values)) for place, n in self.open_results]
        if [i for i in range(len(results)) if not 0 <= results[i][1] <= self.rooms[i]]:
            raise BackendError("a result does not fit its memory; the module is damaged")
        self.instance.write(SIZES, storage.unsigned([at(n, values) & 0xFFFFFFFF for n in counts.block]))
        self.results = results
        self._sizes = sizes
        return self.instance

    def _grow(self, sizes, values):
        """Make room for these sizes, whose atoms have these values."""
