"""Room: a state that grows, in an array with room behind it, so that a step appends in place.

A model's own `concat((past, new))` does it: the backends of arrays ask its first operand, which is a `Growing`, whether
it takes the rest. No operand changes, and no result that anybody holds: what lies behind the past belongs to nobody.
"""

from ..tensor import Tensor

LEAST = 16  # positions in a room that nobody gave a capacity


class Room:
    """An array of `length` positions along `axis`. whole: the Tensor of all of them."""

    def __init__(self, x, axis, length):
        shape = x.shape[:axis] + (length,) + x.shape[axis + 1 :]
        self.axis = axis
        self.length = length
        self.whole = empty(x.backend, shape, x.dtype)
        self._kept = 0  # positions that somebody else may still look at
        self._owner = None
        write(self.whole, x, axis, 0)

    @staticmethod
    def of(x, axis, capacity):
        """A Room that begins with x, or None on a backend whose tensors have no memory of their own to write to."""
        if x.dtype.kind == "string" or not (x.backend.name == "numpy" or isinstance(x.data, tuple)):
            return None  # tuples are what the python backend keeps
        return Room(x, axis, capacity or max(LEAST, 2 * x.shape[axis]))

    def view(self, length):
        """The first `length` positions, as a Tensor of the same memory."""
        shape = self.whole.shape
        sizes = shape[: self.axis] + (length,) + shape[self.axis + 1 :]
        return self.whole.backend.slice(self.whole, (0,) * len(shape), sizes, (1,) * len(shape))

    def open(self, session, length):
        """Whether the session may write behind its first `length` positions."""
        return self._owner is session and length >= self._kept

    def belong(self, session):
        """The session alone writes here from now on."""
        self._owner = session

    def keep(self, length):
        """Share the first `length` positions between two sessions from now on."""
        self._kept = max(self._kept, length)


class Growing(Tensor):
    """The state that a model is called with: the first `length` positions of a room (`view`). grown: what it became."""

    def __init__(self, room, length, capacity, view=None):
        x = room.view(length) if view is None else view
        Tensor.__init__(self, x.data, x.dtype, x.shape, x.backend)
        self.room = room
        self.capacity = capacity
        self.grown = None

    def grow(self, tensors, axis):
        """The concatenation of self and what follows it in `tensors`, in place; None where it cannot be."""
        room = self.room
        if axis != room.axis or self.grown is not None:
            return None
        at = self.shape[axis]
        total = at
        for x in tensors[1:]:
            total += x.shape[axis]
        if total > room.length:
            if self.capacity is not None:
                return None  # the session says that it is full, and where
            room = self.room = Room(self, axis, 2 * total)
        for x in tensors[1:]:
            write(room.whole, x, axis, at)
            at += x.shape[axis]
        self.grown = room.view(total)
        return self.grown


def shares(x, y):
    """Whether x and y are Tensors with elements in the same memory, on a backend where it can be written to."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor) or x.backend is not y.backend:
        return False
    if isinstance(x.data, tuple):  # what the python backend keeps
        return x.data[0] is y.data[0]
    if x.backend.name != "numpy":
        return False
    from ..host.sharing.memory import overlap

    return overlap(x, y)


def empty(backend, shape, dtype):
    """A Tensor with memory of its own, whatever is in it."""
    if backend.name == "numpy":
        x = backend.full(shape, 0, dtype)
        if not x.data.flags.writeable or 0 in x.data.strides:
            x = Tensor(x.data.copy(), dtype, shape, backend)
        return x
    from ..python_backend.buffers import allocate
    from ..shapes import size

    return Tensor((allocate(dtype, size(shape)), 0, None), dtype, shape, backend)


def write(whole, x, axis, at):
    """Put x at position `at` of an axis of `whole`."""
    if not x.size:
        return
    if whole.backend.name == "numpy":
        key = (slice(None),) * axis + (slice(at, at + x.shape[axis]),)
        whole.data[key] = x.data
        return
    from ..python_backend.scattering import write_region

    starts = (0,) * axis + (at,) + (0,) * (len(x.shape) - axis - 1)
    write_region(whole.data[0], whole.shape, starts, x.shape, (1,) * len(x.shape), x)
