"""A stream of 16-bit samples, from which frames that overlap are taken, and the memory for their spectra."""

from array import array


class Frames:
    """size: samples in a frame; hop: from one frame to the next. Raises ValueError if hop is not from 1 to size."""

    def __init__(self, size, hop):
        if not isinstance(hop, int) or not 0 < hop <= size:
            raise ValueError("hop must be an integer from 1 to {}, found {!r}".format(size, hop))
        length = 16
        while length < 2 * size:  # a frame, and what follows it in the call of `push` that completes it
            length *= 2
        self.size, self.hop, self._mask = size, hop, length - 1
        self._ring = array("H", [0] * length)
        self._view = memoryview(self._ring)
        self._at = self._new = 0

    def push(self, samples):
        """Add at most `hop` 16-bit samples; returns True when a frame is complete. Raises ValueError for more, and
        TypeError for bytes and floats."""
        count, at, mask = len(samples), self._at, self._mask
        if count > self.hop:
            raise ValueError("at most {} samples at a time, found {}".format(self.hop, count))
        first = min(count, mask + 1 - at)
        try:
            self._view[at : at + first] = samples if first == count else memoryview(samples)[:first]
            if first < count:
                self._view[: count - first] = memoryview(samples)[first:]
        except (TypeError, ValueError, NotImplementedError):  # not an array of 16 bits
            self._refuse_bytes(samples)
            for k in range(count):
                self._ring[at + k & mask] = int(samples[k] | 0) & 0xFFFF  # "| 0" refuses floats
        self._at = at + count & mask
        self._new += count
        if self._new < self.hop:
            return False
        self._new -= self.hop
        return True

    def _refuse_bytes(self, samples):
        try:
            memoryview(bytearray())[:] = samples[:0]  # fails unless its items are bytes
        except (TypeError, ValueError, NotImplementedError):
            return
        raise TypeError("found bytes: read sound into array('h', bytes({})) and push that".format(2 * self.hop))


def bits_of(size):
    """How many bits count the samples of a frame of `size`, which zeros extend to a power of two. Raises ValueError if
    it is not from 8 to 65,536."""
    bits = 3
    if not 8 <= size <= 65536:
        raise ValueError("size must be from 8 to 65,536, found {}".format(size))
    while 1 << bits < size:
        bits += 1
    return bits
