"""Mel-frequency cepstral coefficients (MFCC) in integers, for models trained on TensorFlow's operators
`AudioSpectrogram` and `Mfcc`, such as those of its speech commands and of keyword spotting networks.

    front = Mfcc(rate=16000, size=640, hop=320)
    rows = Rows(model.inputs[0], *model.input_grids[0], columns=10, unit=front.unit)    # of emberlet.micro.stream
    while True:
        if front.push(microphone()) and rows.append(front.features()):
            model.run()

The numbers are exact enough that the bytes of a model's input are those that the operators give.
`emberlet.micro.builder.audio.mfcc` computes the same in NumPy. On a Cortex-M whose firmware has MicroPython's inline
assembler, the kernels are those of mfcc_kernels_thumb.py.
"""

import sys
from array import array

from .frames import Frames, bits_of

try:
    if sys.maxsize >> 32:
        raise ImportError  # its machine code is for 32-bit processors
    try:
        from . import mfcc_kernels_thumb as _kernels  # Cortex-M, where the firmware has the inline assembler
    except (ImportError, SyntaxError, ValueError):
        from . import mfcc_kernels_viper as _kernels
except (ImportError, SyntaxError, ValueError):
    from .bytecode import in_bytecode

    _kernels = in_bytecode("mfcc_kernels_viper")

GAIN, LEAST = 8368622, -463571610
"""The logarithms of the factor of `magnitudes`, less what its turns leave out on average, and of 1e-12, which is
silence, in units of 2**-24."""

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


def halves(factors):
    """The upper and the lower half of each factor, of 14 bits each, with a sign."""
    out = array("H", bytes(4 * len(factors)))
    for k, x in enumerate(factors):
        high = x + 8192 >> 14
        out[2 * k], out[2 * k + 1] = high & 0xFFFF, x - (high << 14) & 0xFFFF
    return out


def shears(length):
    """For each of the first quarter of `length` angles of a turn, and a quarter of a turn: the halves of
    -tan(angle / 2) and of its sine."""
    wave = array("i", bytes(2 * length + 8))
    for k, (c, s) in enumerate(turns(length)):
        if 4 * k <= length:
            wave[2 * k], wave[2 * k + 1] = -(s << 28) // ((1 << 28) + c), s
    return halves(wave)


def places(length):
    """For each pair of `length` numbers, as complex ones, the place that the transform takes it from, in words. Of the
    four parts of a transform, the fourth begins with the last number: its factors are those of the third, conjugated.
    """
    order = array("H", bytes(length))
    for k in range(length >> 1):
        size, rest = length >> 1, k
        while size > 2:
            size >>= 2
            part = rest & 3
            order[k] += (0, 2, 1, 3)[part] * 2 * size
            rest = (rest >> 2) + (part == 3) & size - 1
        order[k] += 2 * rest
    return order


class Mfcc(Frames):
    """rate: samples per second; size: samples in a frame, from 8 to 65,536, which zeros extend to a power of two; hop:
    samples from one frame to the next; count: bands between `low` and `high` Hz; coefficients: how many are
    kept. Raises ValueError for other sizes, for more than 80 bands, for more coefficients than bands, and for
    frequencies without a bin.
    """

    unit = 1 / (1 << 20)

    def __init__(self, rate=16000, size=640, hop=320, count=40, coefficients=10, low=20, high=4000):
        bits = bits_of(size)
        super().__init__(size, hop)
        if not 0 < coefficients <= count <= 80:
            raise ValueError("count must be at most 80, and coefficients at most count")
        self.count, self.coefficients = count, coefficients
        length = 1 << bits
        self._first, bands, shares = bands_of_bins(rate, length, count, low, high)
        self._shares = halves(shares)
        self._spans = array("H", (bands.count(k) for k in range(-1, count)))
        self._sums, self._out = array("i", [0] * count), array("i", [0] * coefficients)
        self._window = array("H", bytes(4 * (size + 1)))
        for k, (c, _) in enumerate(turns(size)):
            w = (1 << 28) - c >> 1
            self._window[2 * k], self._window[2 * k + 1] = w >> 15, w & 32767
        self._wave, self._order, self._z = shears(length), places(length), array("i", [0] * length)
        scale, cosines = 1 << 29, [c for c, _ in turns(4 * count)]
        while scale * scale * count > 2 << 56:  # to the square root of 2 / count, by Newton's method
            scale = scale + (2 << 56) // (count * scale) >> 1
        self._cosines = halves(
            [
                scale * cosines[i * (2 * band + 1) % (4 * count)] + (1 << 27) >> 28
                for i in range(coefficients)
                for band in range(count)
            ]
        )
        self._logs, self._block = array("i", LOGS), None
        self._is_odd = bits & 1 == 0  # half as many complex numbers are a power of two, not of four
        if hasattr(_kernels, "address"):  # those in assembly take all from one block of words
            at = _kernels.address
            self._block = array(
                "i",
                (0, at(self._ring), at(self._window), at(self._order), at(self._z), at(self._wave), size, self._mask)
                + (length, self._is_odd, self._first, self._first + len(bands), at(self._shares), at(self._spans))
                + (count, at(self._logs), 0, LEAST, at(self._sums), at(self._cosines), coefficients, at(self._out)),
            )

    def features(self):
        """The coefficients of the last complete frame, in units of `unit`: an array of integers, reused by each
        call."""
        at = self._at - self._new - self.size & self._mask
        k = _kernels
        block = self._block
        if block:
            block[0] = at
            down = -k.windowed(block)
            down += k.transformed(block)
            down += k.parted(block)
            k.magnitudes(block)
            block[16] = self._logs[0] * (down - 1) - GAIN
            k.logarithms(block)
            k.cosines(block)
        else:
            self._compute(at)
        return self._out

    def _compute(self, at):
        """The same without assembly, for the frame that begins at a place of the ring."""
        k = _kernels
        z = self._z
        wave = self._wave
        length = self._mask + 1 >> 1
        size = length >> 1
        down = -k.windowed(0, 0, at, self._ring, self._window, self.size, self._order, self._mask, z)
        shift, half = 1, 1
        if self._is_odd:
            k.twos(length, 0, 0, z)
            shift, half = 2, 2
        while half < size:
            if half > 1:
                shift = self._shift(27) if 2 < half < 16 else 2  # 2 is always enough, but early bits last
                k.turned(0, 0, 0, z, wave, size, half)
            k.fours(0, 0, 0, z, length, half, shift)
            down += shift
            half *= 4
        shift = self._shift(26)
        k.parted(0, 0, 0, z, wave, size, shift)
        down += shift
        first = self._first
        end = first + (len(self._shares) >> 1)
        k.magnitudes(0, 0, 0, z, first, end)
        unit = self._logs[0] * (down - 1) - GAIN
        k.logarithms(0, 0, first, z, self._shares, self._spans, self.count, self._logs, unit, LEAST, self._sums)
        k.cosines(0, 0, 0, self._sums, self._cosines, self.count, self.coefficients, self._out)

    def _shift(self, bits):
        """By how much the numbers have to be shifted to the right to be below 2**bits."""
        top = _kernels.largest(self._mask + 1 >> 1, 0, 0, self._z)
        shift = 0
        while top >> shift + bits:
            shift += 1
        return shift
