"""A log-mel front end in integers: from 16-bit audio to the bytes that a model takes as input.

    front = LogMel(rate=16000, size=512, hop=256, count=32)
    rows = Rows(model.inputs[0], *model.input_grids[0], columns=32, unit=1 / 256)    # of emberlet.micro.stream
    while True:
        if front.push(microphone()) and rows.append(front.features()):
            model.run()

A feature is the base-2 logarithm of the power in a band, at least 0 (silence) and at most about 26.
`emberlet.micro.builder.audio.log_mel` computes the same in NumPy, for training.
"""

import sys
from array import array
from math import cos, log, pi, sin

from .frames import Frames, bits_of

try:
    if sys.maxsize >> 32:
        raise ImportError  # its machine code is for 32-bit processors
    from . import audio_kernels_viper as _kernels
except (ImportError, SyntaxError, ValueError):
    from .bytecode import in_bytecode

    _kernels = in_bytecode("audio_kernels_viper")


def mel(frequency):
    """A frequency in Hz on the mel scale (HTK's)."""
    return 2595 * log(1 + frequency / 700) / log(10)


def band_edges(rate, size, count, low, high):
    """count + 2 frequencies, evenly spaced on the mel scale, as fractional bins of a transform of `size`."""
    first, last = mel(low), mel(high)
    mels = [first + (last - first) * k / (count + 1) for k in range(count + 2)]
    return [700 * (10 ** (m / 2595) - 1) * size / rate for m in mels]


class LogMel(Frames):
    """rate: samples per second; size: samples in a frame, a power of two from 8 to 65,536; hop: samples from one
    frame to the next; count: bands between `low` and `high` Hz. Raises ValueError for other sizes, or if a band has
    no bin.
    """

    def __init__(self, rate=16000, size=512, hop=256, count=32, low=60, high=7600):
        if not 8 <= size <= 65536 or size & size - 1:
            raise ValueError("size must be a power of two from 8 to 65,536, found {}".format(size))
        super().__init__(size, hop)
        half, bits = size // 2, bits_of(size) - 1
        self._is_odd, self._order = bits & 1, array("H", range(half))
        for k in range(half):
            self._order[k] = self._order[k >> 1] >> 1 | (k & 1) << bits - 1
        self._re, self._im = array("i", [0] * half), array("i", [0] * half)
        self._window = array("H", [round(8192 * (1 - cos(2 * pi * k / size))) for k in range(size)])
        self._wave = array("i", [round(16384 * cos(2 * pi * k / size)) for k in range(half)])
        self._wave.extend(array("i", [round(16384 * sin(2 * pi * k / size)) for k in range(half)]))
        self._logs = bytearray(min(255, round(256 * log(1 + k / 256) / log(2))) for k in range(256))
        self.count, self._out = count, array("i", [0] * count)
        self._place_bands(band_edges(rate, size, count, low, high))

    def _place_bands(self, edges):
        """Triangular weights between the edges: for each band its first bin, the number of bins, and their weights."""
        spans, weights = [], bytearray()
        for k in range(self.count):
            low, middle, high = edges[k : k + 3]
            first = int(low) + 1
            bins = [b for b in range(first, min(int(high) + 1, self.size // 2)) if b < high]
            if not bins:
                raise ValueError("band {} has no bin: use fewer bands or a larger size".format(k))
            spans += [bins[0], len(bins)]
            for b in bins:
                share = (b - low) / (middle - low) if b <= middle else (high - b) / (high - middle)
                weights.append(max(1, round(64 * share)))
        self._edges, self._weights = array("H", spans), weights

    def features(self):
        """The features of the last complete frame, in units of 1/256: an array of integers, reused by each call."""
        k = _kernels  # one by one: a tuple would be allocated
        re = self._re
        im = self._im
        half = self.size // 2
        around = self._mask
        at = self._at - self._new - self.size & around
        doubled = k.windowed(self._ring, self._window, 0, at, self._order, around, re, im)
        k.fft(re, im, 0, self._wave, half, self._is_odd)
        k.power(re, im, 0, self._wave, half)
        k.bands(re, self._weights, 0, self._edges, self._logs, self.count, doubled, self._out)
        return self._out
