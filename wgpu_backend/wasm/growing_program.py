"""Runs a compiled model with open sizes. Its memory has room for the capacity, a value of each size; a call that
exceeds it gets a module with twice as much room."""

from emberlet.sizes.polynomial import at

from .image import Image
from .open_program import OpenProgram
from .program import started, temporaries


class GrowingProgram(OpenProgram):
    """An OpenProgram of a Plan. constants, inputs and results: as `program` takes them, with Polynomials; capacity: for
    each symbol, its expected maximum."""

    def __init__(self, plan, constants, inputs, results, capacity):
        self._plan = plan
        self._constants = constants
        self._ports = (inputs, results)
        self._capacity = tuple(capacity)
        image = _image(plan, plan.counts.values(self._capacity), None)
        OpenProgram.__init__(self, started(image, constants), plan.counts, [None] * len(inputs), (), ())
        self._place(image)

    def _place(self, image):
        """Note where an Image has the inputs, the results and the rest."""
        self._image = image
        self.temporary = temporaries(image)
        inputs, results = self._ports
        self.inputs = [(image.addresses[n], image.rooms[n]) for n, _ in inputs]
        self.open_results = [(image.addresses[n], nbytes) for n, nbytes in results]
        self.rooms = [image.rooms[n] for n, _ in results]

    def _grow(self, sizes, values):
        buffers, image = self._plan.buffers, self._image
        small = [i for i in range(len(buffers)) if at(buffers[i].nbytes, values) > image.rooms[i]]
        if not small and not [f for _, f in self._plan.kernels if at(f.scratch, values) > image.scratch_room]:
            return
        self._capacity = self.counts.grown(self._capacity, sizes)
        image = _image(self._plan, self.counts.values(self._capacity), values)
        larger = started(image, self._constants)  # first, so that this one goes on if there is no memory
        self._instance.release()
        self._instance = larger
        self._given = [False] * len(self.inputs)
        self._place(image)


def _image(plan, roomy, values):
    """The Image with room for the atoms' values `roomy` and, unless that is None, `values`."""

    def room(n):
        return max(at(n, roomy), 0 if values is None else at(n, values))

    return Image(plan, None, len(plan.counts.block), room)
