"""The open sizes of a plan to be made: its symbols, and the states that a call appends to in place."""

from ..sizes.polynomial import atom_values, broken
from ..sizes.scope import HIGHEST
from ..tensor import Tensor


class Rooms:
    """States that a call appends to in place. states: list of (argument, output, axis); length: positions that their
    buffers have room for; fixed: whether plans may treat that number as a constant."""

    def __init__(self, states, length, fixed):
        self.states = states
        self.length = length
        self.fixed = fixed

    def serves(self, other):
        """Whether a plan for these Rooms serves a call with `other`."""
        return other is not None and self.states == other.states and (not self.fixed or self.length == other.length)


def rooms_of(entries, arguments, kind, capacity):
    """The Rooms of the states that may be appended to in place, those in a room of that kind (core/session/room.py);
    None if there are none, or if their rooms have different lengths."""
    states, length = [], None
    for e in entries:
        x = arguments[e.input]
        room = None if e.axis is None else getattr(x, "room", None)
        if room is None or not isinstance(room, kind) or not x.size:
            continue
        if length is not None and room.length != length:
            return None
        length = room.length
        states.append((e.input, e.output, e.axis))
    return Rooms(states, length, capacity is not None) if states else None


class Opening:
    """What a plan is to leave open: the symbols `opened` of Axes, whose values in the current arguments are `numbers`.
    rooms: the Rooms of the call, None if no state is appended to in place."""

    def __init__(self, axes, opened, numbers, attempt, shapes, kinds, rooms=None):
        self.axes = axes
        self.kinds = kinds
        self.names = [name for name in axes.symbols if name in opened]
        self.closed = {name: numbers[name] for name in numbers if name not in opened}
        self.scope, self.symbols = axes.scope(opened, numbers, attempt)
        self.shapes = axes.shapes(self.symbols, shapes)
        self.capacity = [axes.capacity(name, numbers[name]) for name in self.names]
        self.rooms = rooms
        self.room = rooms.length if rooms else None
        if rooms and not rooms.fixed:
            self.room = self.scope.symbol("room of the states", 1, HIGHEST, 97)
            self.capacity.append(rooms.length)

    def lengths(self, shapes, kinds):
        """{symbol: its length} for arguments of these shapes and kinds; None where the plan does not serve them."""
        found = self.axes.numbers(shapes) if kinds == self.kinds else None
        if found is None or [name for name in self.closed if found[name] != self.closed[name]]:
            return None
        return found

    def values(self, arguments):
        """The values of the scope's atoms for these arguments, None where the plan does not serve them."""
        found = self.lengths(shapes_of(arguments), kinds_of(arguments, ()))
        if found is None or not all(found[name] for name in self.names):
            return None
        values = atom_values(self.scope.atoms, found)
        return None if broken(self.scope.guards, values) else values

    def numbers(self, numbers, rooms):
        """The values of the open sizes in a call, as a tuple."""
        found = [numbers[name] for name in self.names]
        return tuple(found + [rooms.length] if self.rooms and not self.rooms.fixed else found)


def value_of(x):
    """A Tensor's elements, as bytes that are compared; of text, as text."""
    if not x.dtype.bits:
        return repr(x.tolist())
    return bytes(x.backend.to_bytes(x))


def shapes_of(arguments):
    """The shape of each tensor, None of what is none."""
    return [getattr(x, "shape", None) for x in arguments]


def kinds_of(arguments, fixed):
    """The dtype of each tensor, with the shape and value of a fixed one, and what else there is, as text."""
    kinds = [x.dtype.name if isinstance(x, Tensor) else repr(x) for x in arguments]
    for i in fixed:
        x = arguments[i] if i < len(arguments) else None
        if isinstance(x, Tensor):
            kinds[i] = (kinds[i], x.shape, value_of(x))
    return kinds
