"""Indices that a saved plan computes from its inputs: it also computes the lowest and the highest, which are checked
after each run.

In the file: [dtype, where the two are (a buffer, or an address), the length of the axis, whether indices count from its
end too, the words of the error, the number of the axis].
"""

import struct

from emberlet.errors.indices import refuse
from emberlet.sizes.polynomial import at

from ..run import storage
from .checks import MAX_RANK, dtype_of, integer, list_of, text_of


def part_of(found, most):
    """Where the two numbers are. Raises ValueError if this is no such index."""
    return integer(list_of(found, "a computed index", 6)[1], "the place of a computed index", most)


class ComputedIndex:
    """buffer: the number of the buffer that holds the lowest and the highest index, or their address; length: of the
    axis, which may be a Polynomial."""

    nbytes = 8

    def __init__(self, found, buffer, length):
        dtype = dtype_of(found[0])
        self.word = storage.word(dtype)
        if not dtype.is_integer or dtype.bits < 32:
            raise ValueError("a computed index is of {}".format(dtype))
        self.buffer = buffer
        self.length = length
        if type(found[3]) is not bool:
            raise ValueError("a computed index does not say whether it counts from the end")
        self.from_end = found[3]
        self.message = text_of(found[4], "the words of an error")
        self.axis = integer(found[5], "an axis", MAX_RANK)

    def check(self, words, values):
        """Raise IndexingError unless the two numbers are inside. values: those of the atoms of open sizes, or None."""
        low, high = struct.unpack("<2I" if self.word == "u32" else "<2i", bytes(words))
        length = self.length if values is None else at(self.length, values)
        if low <= high:  # there are any
            refuse(low, high, -length if self.from_end else 0, length, self.message, self.axis)

    def __repr__(self):
        return "the computed index of axis {}".format(self.axis)
