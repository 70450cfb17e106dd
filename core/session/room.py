"""Room: a growing state in an array with spare capacity, so that a step appends in place.

The model's own `concat((past, new))` appends: array backends ask the first operand, a `Growing`, to take the rest.
Neither operands nor earlier results change, because the memory after the past is unused.
"""

from ..tensor import Tensor

LEAST = 16  # initial positions of a room without a given capacity


class Room:
    """An array of `length` positions along `axis`. array: the Tensor of all of them."""

    def __init__(self, x, axis, length):
        shape = x.shape[:axis] + (length,) + x.shape[axis + 1 :]
        self.axis = axis
        self.length = length
        self.array = empty(x.backend, shape, x.dtype)
        self._kept = 0  # positions that others may still read
        self._owner = None
        write(self.array, x, axis, 0)

    @staticmethod
    def of(x, axis, capacity):
        """A Room that begins with x, or None on a backend whose tensors have no writable memory."""
        if x.dtype.kind == "string" or not (x.backend.name == "numpy" or isinstance(x.data, tuple)):
            return None  # the python backend stores tuples
        return Room(x, axis, capacity or max(LEAST, 2 * x.shape[axis]))

    def view(self, length):
        """The first `length` positions, as a Tensor of the same memory."""
        return first_positions(self.array, self.axis, length)

    def open(self, session, length):
        """Whether the session may write after its first `length` positions."""
        return self._owner is session and length >= self._kept

    def belong(self, session):
        """From now on only the session writes here."""
        self._owner = session

    def keep(self, length):
        """From now on two sessions share the first `length` positions."""
        self._kept = max(self._kept, length)


class Growing(Tensor):
    """The state passed to a model: the first `length` positions of a room (`view`). grown: the result of appending."""

    def __init__(self, room, length, capacity, view=None):
        x = room.view(length) if view is None else view
        Tensor.__init__(self, x.data, x.dtype, x.shape, x.backend)
        self.room = room
        self.capacity = capacity
        self.grown = None

    def grow(self, tensors, axis):
        """The concatenation of self and the other `tensors`, in place; None if that is impossible."""
        room = self.room
        if axis != room.axis or self.grown is not None:
            return None
        at = self.shape[axis]
        total = at
        for x in tensors[1:]:
            total += x.shape[axis]
        if total > room.length:
            if self.capacity is not None:
                return None  # the session itself raises when it is full
            room = self.room = Room(self, axis, 2 * total)
        for x in tensors[1:]:
            write(room.array, x, axis, at)
            at += x.shape[axis]
        self.grown = room.view(total)
        return self.grown


def in_room(given, value, arguments, length):
    """(a state after a step, its Room or None). given: the state that the model read; value: what it returned."""
    if isinstance(given, Growing):
        if given.grown is value:
            return value, given.room
        if given is value:
            return given.room.view(length), given.room
    if isinstance(value, Growing) and not any(value is x for x in arguments):
        return value.room.view(length), value.room  # the plan has written it there
    return value, None


def first_positions(x, axis, count):
    """The first positions of x along an axis."""
    sizes = x.shape[:axis] + (count,) + x.shape[axis + 1 :]
    rank = len(sizes)
    return x.backend.slice(x, (0,) * rank, sizes, (1,) * rank)


def shares(x, y):
    """Whether x and y are Tensors that share writable memory."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor) or x.backend is not y.backend:
        return False
    if isinstance(x.data, tuple):  # the python backend's storage
        return x.data[0] is y.data[0]
    if x.backend.name != "numpy":
        return False
    from ..host.sharing.memory import overlap

    return overlap(x, y)


def separate(x, others):
    """x, or a Tensor of the same elements if those of x are also elements of one of the others."""
    for y in others:
        if shares(x, y):
            return copied(x)
        if isinstance(x, Tensor) and isinstance(y, Tensor) and x.data is y.data:
            # The backends that record share a node until one of its tensors is assigned to. A node whose data were not
            # uploaded yet may be the caller's array.
            return copied(x) if getattr(x.data, "op", None) == "data" else Tensor(x.data, x.dtype, x.shape, x.backend)
    return x


def separated(results, states, near, done):
    """The results but those of the numbers `states`. None shares elements with another or with the Tensors `near`: the
    states before and after the step, and its inputs. Callers may write to all of them. done: a plan has computed them,
    so different tensors have different memory."""
    out = []
    for k in range(len(results)):
        x = results[k]
        if k in states:
            continue
        others = near + [y for y in out if isinstance(y, Tensor)]
        if done and isinstance(x, Tensor):
            others = [y for y in others if x is y or x.data is y.data]
        out.append(separate(x, others))
    return tuple(out)


def copied(x):
    """A copy of x with memory of its own."""
    if x.dtype.kind == "string":
        return x.backend.from_list(list(x.backend.to_list(x)), x.dtype, x.shape)
    return x.backend.from_bytes(bytearray(x.backend.to_bytes(x)), x.dtype, x.shape)


def empty(backend, shape, dtype):
    """A Tensor of uninitialized memory."""
    if backend.name == "numpy":
        x = backend.full(shape, 0, dtype)
        if not x.data.flags.writeable or 0 in x.data.strides:
            x = Tensor(x.data.copy(), dtype, shape, backend)
        return x
    from ..python_backend.buffers import allocate
    from ..shapes import size

    return Tensor((allocate(dtype, size(shape)), 0, None), dtype, shape, backend)


def write(array, x, axis, at):
    """Put x at position `at` of an axis of `array`."""
    if not x.size:
        return
    if array.backend.name == "numpy":
        key = (slice(None),) * axis + (slice(at, at + x.shape[axis]),)
        array.data[key] = x.data
        return
    from ..python_backend.scattering import write_region

    starts = (0,) * axis + (at,) + (0,) * (len(x.shape) - axis - 1)
    write_region(array.data[0], array.shape, starts, x.shape, (1,) * len(x.shape), x)
