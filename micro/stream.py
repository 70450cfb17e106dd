"""A window over a stream of rows (a sensor's readings, a spectrum's bands), kept as the bytes of a model's input.

rows = Rows(model.inputs[0], *model.input_grids[0], columns=3, hop=20)
while True:
    if rows.append(accelerometer()):    # every 20 readings, once the window is full
        model.run()
"""


class Rows:
    """to: the memoryview of a model's input; scale, zero: the quantization of its bytes; columns: numbers per row; hop:
    rows from one inference to the next; unit: the factor of incoming numbers (1 / 256 for `LogMel`).

    Raises ValueError if the input does not hold a whole number of rows.
    """

    def __init__(self, to, scale, zero, columns, hop=1, unit=1):
        rows, rest = divmod(len(to), columns)
        if rest or not rows:
            raise ValueError("an input of {} bytes is not a whole number of rows of {}".format(len(to), columns))
        self.rows, self.columns, self.hop = rows, columns, hop
        self._to, self._zero = to, zero
        self._factor = round(65536 * unit / scale)
        self._kept = bytearray([zero] * len(to))
        self._next = 0
        self._wait = rows

    def append(self, numbers):
        """Add a row; returns whether an inference is due: the input then holds the window, oldest row first."""
        kept, at, factor, zero = self._kept, self._next, self._factor, self._zero
        end = at + self.columns
        for v in numbers:
            if at < end:  # numbers too many belong to no row
                q = (int(v * factor + 32768) >> 16) + zero
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
