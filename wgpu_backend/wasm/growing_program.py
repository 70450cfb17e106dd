"""Runs a compiled model with open sizes. Its memory has room for the capacity, a value of each size; a call that
exceeds it gets a layout with twice as much room. Rooms of states (rooms.py) may lie there between calls."""

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
        self._open = [(i, b.nbytes) for i, b in enumerate(plan.buffers) if type(b.nbytes) is not int]
        self._scratch = [f.scratch for _, f in plan.kernels if type(f.scratch) is not int]
        self._rooms = {}  # number of a buffer -> the ArenaRoom that was there last
        found = self._roomy(plan.counts.values(self._capacity), None)
        OpenProgram.__init__(self, started(found, constants), plan.counts, [None] * len(inputs), (), ())
        self._place(found)

    def run_in(self, rooms, data, sizes):
        """`run`, appending to states in the program's memory. rooms: {number of a buffer: (ArenaRoom, positions after
        the run)}."""
        for room, _ in rooms.values():
            if not room.is_in(self):
                room.move_out()
        with self.lock:
            self.usable()
            self.fit(sizes)
            for number in rooms:
                room = rooms[number][0]
                if not room.is_in(self):
                    self._leave(number)
                    self._rooms[number] = room  # first, so that an interrupt forgets no room
                    room.move_in(self, self._now.addresses[number])
            found = self.run(data, sizes)
            for room, used in rooms.values():
                room.used = used
            return found

    def release(self):
        """Free the memory; later calls raise BackendError."""
        with self.lock:
            if self.instance is not None:
                for number in self._rooms:
                    self._leave(number)
            OpenProgram.release(self)

    def _leave(self, number):
        room = self._rooms.get(number)
        if room is not None and room.is_in(self):
            room.move_out()

    def _place(self, layout):
        """Note where a Layout has the inputs, the results and the rest."""
        self._now = layout
        self.temporary = temporaries(layout)
        inputs, results = self._ports
        self.inputs = [(layout.addresses[n], layout.rooms[n]) for n, _ in inputs]
        self.open_results = [(layout.addresses[n], nbytes) for n, nbytes in results]
        self.rooms = [layout.rooms[n] for n, _ in results]

    def _grow(self, sizes, values):
        rooms, most = self._now.rooms, self._now.scratch_room
        small = [i for i, n in self._open if n.at(values) > rooms[i]]
        if not small and not [n for n in self._scratch if n.at(values) > most]:
            return
        self._capacity = self.counts.grown(self._capacity, sizes)
        layout = self._roomy(self.counts.values(self._capacity), values)
        larger = started(layout, self._constants)  # first, so that this one goes on if there is no memory
        for number in self._rooms:
            self._leave(number)
        self.instance.release()
        self.instance = larger
        self._given = [False] * len(self.inputs)
        self._place(layout)

    def _roomy(self, roomy, values):
        """The Layout with room for the atoms' values `roomy` and, unless that is None, `values`."""

        def room(n):
            return max(at(n, roomy), 0 if values is None else at(n, values))

        return self._layout(self._plan, len(self._plan.counts.block), room, self._constants)
