"""A window over a stream of rows (a sensor's readings, a spectrum's bands), kept as the bytes of a model's input.

rows = Rows(model.inputs[0], *model.input_grids[0], columns=3, hop=20)
while True:
    if rows.append(accelerometer()):    # every 20 readings, once the window is full
        model.run()
"""


class Rows:
    """to: the memoryview of a model's input; scale, zero: the quantization of its bytes; columns: numbers per row; hop:
    rows from one inference to the next; unit: the factor of incoming numbers (1 / 256 for `LogMel`, `unit` of `Mfcc`).

    Raises ValueError if the input does not hold a whole number of rows.
    """

    def __init__(self, to, scale, zero, columns, hop=1, unit=1):
        rows, rest = divmod(len(to), columns)
        if rest or not rows:
            raise ValueError("an input of {} bytes is not a whole number of rows of {}".format(len(to), columns))
        self.rows, self.columns, self.hop = rows, columns, hop
        self._to, self._zero = to, zero
        self._exact = 65536 * unit / scale
        self._factor = round(self._exact)
        self._shift, exact = 0, unit / scale * (1 << 28)
        while 0 < exact < 1 << 27:
            exact, self._shift = 2 * exact, self._shift + 1
        self._high, self._low = round(exact) >> 14, round(exact) & 16383
        self._kept = bytearray([zero] * len(to))
        self._next = 0
        self._wait = rows

    def _byte(self, v):
        """The step that a number is at, from the zero point on, where the rounded factor is too coarse."""
        if not isinstance(v, int):
            return int(v * self._exact + 32768) >> 16
        # The factor has 28 bits: two halves of each, since larger integers would be allocated.
        a, b, low = v >> 14, v & 16383, self._low
        product = a * self._high + (a * low + b * self._high + (b * low >> 14) >> 14)
        return product + (1 << self._shift >> 1) >> self._shift

    def append(self, numbers):
        """Add a row; returns whether an inference is due: the input then holds the window, oldest row first."""
        kept, at, factor, zero = self._kept, self._next, self._factor, self._zero
        end = at + self.columns
        for v in numbers:
            if at < end:  # numbers too many belong to no row
                q = (self._byte(v) if factor < 4096 else int(v * factor + 32768) >> 16) + zero
                kept[at] = 0 if q < 0 else 255 if q > 255 else q
            at += 1
        if at != end:
            raise ValueError("a row has {} numbers, found {}".format(self.columns, at - self._next))
        self._next = 0 if at == len(kept) else at
        self._wait -= 1
        if self._wait:
            return False
        self._wait = self.hop
        self.write()
        return True

    def write(self):
        """Copy the window into the input. A few views are allocated, no copies."""
        kept, at = memoryview(self._kept), self._next
        older = len(kept) - at
        self._to[:older] = kept[at:]
        if at:
            self._to[older:] = kept[:at]

    def clear(self):
        """Forget all rows: the next inference is due when the window is full again."""
        for i in range(len(self._kept)):
            self._kept[i] = self._zero
        self._next, self._wait = 0, self.rows
