"""Mel-frequency cepstral coefficients (MFCC) in integers, for models trained on TensorFlow's operators
`AudioSpectrogram` and `Mfcc`, such as those of its speech commands and of keyword spotting networks.

    front = Mfcc(rate=16000, size=640, hop=320)
    rows = Rows(model.inputs[0], *model.input_grids[0], columns=10, unit=front.unit)    # of emberlet.micro.stream
    while True:
        if front.push(microphone()) and rows.append(front.features()):
            model.run()

The numbers are exact enough that the bytes of a model's input are those that the operators give.
`emberlet.micro.builder.audio.mfcc` computes the same in NumPy.
"""

import sys
from array import array

from .frames import Spectrum

try:
    if sys.maxsize >> 32:
        raise ImportError  # its machine code is for 32-bit processors
    from . import mfcc_kernels_viper as _kernels
except (ImportError, SyntaxError, ValueError):
    from . import mfcc_kernels_bytecode as _kernels

GAIN, LEAST = 8368640, -463571610
"""The logarithms of the factor of `magnitudes` and of 1e-12, which is silence, in units of 2**-24."""

LOGS = (11629080, 6802576, 3743728, 1976071, 1017112, 516263, 260117, 130563, 65408, 32736, 16376, 8190)
"""Those of 1 + 2**-k."""


def logarithm(x):
    """2**32 times the base-2 logarithm of an integer. By integers, since a board's floats are too coarse."""
    out = 0
    while x >> out + 1:
        out += 1
    x = (x << 40) >> out
    for _ in range(32):
        x = x * x >> 40
        out *= 2
        if x >> 41:
            x >>= 1
            out += 1
    return out


def bands_of_bins(rate, size, count, low, high):
    """For each bin of a transform of `size` from the first that is used: the band whose upper half it is in, from -1,
    and its share in that band, in units of 2**-28; the rest is the next band's. Returns (first bin, bands, shares).
    Raises ValueError unless 0 <= low < high < rate / 2, and if no bin is between them.

    Source: tensorflow/lite/kernels/internal/mfcc_mel_filterbank.cc.
    """
    if not 0 <= low < high < rate / 2:
        raise ValueError(
            "low must be at least 0, and high above low and below half the rate, found {} and {}".format(low, high)
        )
    rate, size, count = int(rate), int(size), int(count)  # NumPy's integers overflow
    step = rate / size
    first, last = int(1.5 + low / step), int(high / step)
    hertz = size << 10
    lowest, highest = (logarithm(700 * hertz + round(f * hertz)) for f in (low, high))  # the mel scale is logarithmic
    width, bands, shares, band = highest - lowest, [], [], 0
    for k in range(first, last + 1):
        above = (logarithm(700 * hertz + (k * rate << 10)) - lowest) * (count + 1)
        while band < count and width * (band + 1) < above:
            band += 1
        bands.append(band - 1)
        shares.append(((width * (band + 1) - above << 28) + width // 2) // width)
    if not bands:
        raise ValueError("no bin is between {} and {} Hz: use a wider range or a larger size".format(low, high))
    return first, bands, shares


def turns(count):
    """The cosine and the sine of k / count of a turn for each k below count, in units of 2**-28. By integers, since a
    board's floats are too coarse. count: at least 4."""
    turn, sums, term = 7244019458077122842 // int(count), [1 << 60, 0], 1 << 60  # of 2 * pi * 2**60
    for n in range(1, 30):
        term = (term * turn >> 60) // n
        sums[n & 1] += -term if n & 2 else term
    c, s = sums
    a, b = 1 << 60, 0
    for _ in range(count):
        yield a + (1 << 31) >> 32, b + (1 << 31) >> 32
        a, b = a * c - b * s >> 60, a * s + b * c >> 60


class Mfcc(Spectrum):
    """rate: samples per second; size: samples in a frame, from 8 to 65,536, which zeros extend to a power of two; hop:
    samples from one frame to the next; count: bands between `low` and `high` Hz; coefficients: how many are
    kept. Raises ValueError for other sizes, for more than 80 bands, for more coefficients than bands, and for
    frequencies without a bin.
    """

    unit = 1 / (1 << 20)

    def __init__(self, rate=16000, size=640, hop=320, count=40, coefficients=10, low=20, high=4000):
        super().__init__(size, hop)
        if not 0 < coefficients <= count <= 80:
            raise ValueError("count must be at most 80, and coefficients at most count")
        self.count, self.coefficients = count, coefficients
        length = 1 << self._bits
        self._first, bands, shares = bands_of_bins(rate, length, count, low, high)
        self._shares = array("i", shares)
        self._spans = array("H", (bands.count(k) for k in range(-1, count)))
        self._sums, self._out = array("i", [0] * count), array("i", [0] * coefficients)
        self._window = array("i", ((1 << 28) - c >> 1 for c, _ in turns(size)))
        self._wave = array("i", [0] * length)
        for k, (c, s) in enumerate(turns(length)):
            if 2 * k < length:
                self._wave[k], self._wave[k + length // 2] = c, s
        scale, cosines = 1 << 29, [c for c, _ in turns(4 * count)]
        while scale * scale * count > 2 << 56:  # to the square root of 2 / count, by Newton's method
            scale = scale + (2 << 56) // (count * scale) >> 1
        self._cosines = array("i", [0] * (coefficients * count))
        for k in range(coefficients * count):
            i, band = divmod(k, count)
            self._cosines[k] = scale * cosines[i * (2 * band + 1) % (4 * count)] + (1 << 27) >> 28
        self._logs = array("i", LOGS)

    def features(self):
        """The coefficients of the last complete frame, in units of `unit`: an array of integers, reused by each
        call."""
        k = _kernels
        re = self._re
        im = self._im
        wave = self._wave
        size = self._mask + 1 >> 2
        at = self._at - self._new - self.size & self._mask
        down = -k.windowed(0, 0, at, self._ring, self._window, self.size, self._order, self._mask, re, im)
        shift, half = 1, 1
        if self._is_odd:
            k.twos(0, 0, 0, re, im, size)
            shift, half = 2, 2
        known = True  # whether `shift` keeps the numbers small, which have 28 bits at first: to look takes its time
        while half < size:
            if half > 1:
                k.turned(0, 0, 0, re, im, wave, size, half)
                shift = 2 if known else self._shift(27)
            k.fours(0, 0, 0, re, im, size, half, shift)
            down += shift
            half *= 4
            known = not known
        shift = self._shift(25)
        k.parted(0, 0, 0, re, im, wave, size, shift)
        down += shift
        first = self._first
        end = first + len(self._shares)
        k.magnitudes(0, 0, 0, re, im, first, end)
        unit = self._logs[0] * (down - 1) - GAIN
        k.logarithms(0, 0, first, re, self._shares, self._spans, self.count, self._logs, unit, LEAST, self._sums)
        k.cosines(0, 0, 0, self._sums, self._cosines, self.count, self.coefficients, self._out)
        return self._out

    def _shift(self, bits):
        """By how much the numbers have to be shifted to the right to be below 2**bits."""
        top = _kernels.largest(0, 0, 0, self._re, self._im, self._mask + 1 >> 2)
        shift = 0
        while top >> shift + bits:
            shift += 1
        return shift
