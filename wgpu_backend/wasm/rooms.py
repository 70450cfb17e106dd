"""Growing states in the memory of the plan that appends to them, so that a step copies nothing of the past."""

from emberlet.session.room import Room
from emberlet.tensor import Tensor

from ..record.node import Node

MOST_COPIES = 1 << 12  # the most rows of a state (batch times heads), which are copied one by one


class ArenaRoom(Room):
    """A Room whose first `used` positions are bytes of Python, row by row, or lie in the memory of a program
    (growing_program.py) with space behind each row. A program has one room at a time for each of its states; another
    one sends it home. moved: bytes that this took."""

    def __init__(self, x, axis, length):
        self.axis = axis
        self.length = length
        self.moved = 0
        self.like = Node("input", (), None, x.dtype, x.shape[:axis] + (length,) + x.shape[axis + 1 :], x.data.word)
        self.backend = x.backend
        self.used = x.shape[axis]
        self.rows = 1
        self.width = 4  # bytes of a position in a row
        for i, n in enumerate(x.shape):
            self.rows *= n if i < axis else 1
            self.width *= n if i > axis else 1
        self._held = _words(x)  # these bytes, or (program, address)
        self._kept = 0
        self._owner = None

    @staticmethod
    def holds(shape, axis, dtype, word):
        """Whether a state of this kind can have a room."""
        rows = 1
        for n in shape[:axis]:
            rows *= n
        return dtype.is_float and word == "f32" and 0 < rows <= MOST_COPIES

    @property
    def array(self):
        """All positions, as a Tensor."""
        return self.view(self.used)

    def view(self, length):
        """The first `length` positions, as a Tensor that is read when it is needed: no step changes them."""
        shape = self.like.shape[: self.axis] + (length,) + self.like.shape[self.axis + 1 :]
        return Tensor(_View(self, shape), self.like.dtype, shape, self.backend)

    def words(self, length):
        """The bytes of the first `length` positions."""
        while True:
            held = self._held
            if not isinstance(held, tuple):
                return held if length == self.used else self._cut(held, length)
            program, address = held
            with program.lock:
                if self._held is held:
                    return self._read(program.instance, address, length)

    def is_in(self, program):
        """Whether its positions lie in that program's memory."""
        held = self._held
        return isinstance(held, tuple) and held[0] is program

    def move_in(self, program, address):
        """Copy the positions to a program's memory, whose lock is held."""
        data, size = self._held, self.used * self.width
        for i in range(self.rows if size else 0):
            program.instance.write(address + i * self.length * self.width, data[i * size : (i + 1) * size])
        self.moved += self.rows * size
        self._held = (program, address)

    def move_out(self):
        """Copy the positions to Python's memory, if they lie in a program's."""
        held = self._held
        if isinstance(held, tuple):
            with held[0].lock:
                if self._held is held:
                    self._held = self._read(held[0].instance, held[1], self.used)
                    self.moved += self.rows * self.used * self.width

    def _read(self, instance, address, length):
        size, apart = length * self.width, self.length * self.width
        return b"".join([instance.read(address + i * apart, size) for i in range(self.rows)])

    def _cut(self, data, length):
        size, apart = min(length, self.used) * self.width, self.used * self.width
        rest = bytes(length * self.width - size)  # of a longer past that was rewound; nobody looks at it
        return b"".join([bytes(data[i * apart : i * apart + size]) + rest for i in range(self.rows)])


class _View(Node):
    """The first positions of a room, as data that are read when they are needed."""

    __slots__ = ("room",)

    def __init__(self, room, shape):
        self.room = room
        Node.__init__(self, "data", (), None, room.like.dtype, shape, room.like.word)

    @property
    def arg(self):
        """The bytes."""
        return self.room.words(self.shape[self.room.axis])

    @arg.setter
    def arg(self, words):
        pass


def _words(x):
    """The bytes of a state's words."""
    source = x.data
    while source.op == "slice" and not any(source.arg[0]):  # what `rewind` leaves of it
        source = source.srcs[0]
    if isinstance(source, _View):
        room, axis = source.room, source.room.axis
        if x.shape[:axis] == source.shape[:axis] and x.shape[axis + 1 :] == source.shape[axis + 1 :]:
            return room.words(x.shape[axis])
    return x.backend._words(x)
