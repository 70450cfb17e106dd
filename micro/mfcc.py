"""Mel-frequency cepstral coefficients (MFCC) in integers, for models trained on TensorFlow's operators
`AudioSpectrogram` and `Mfcc`, such as those of its speech commands and of keyword spotting networks.

    front = Mfcc(rate=16000, size=640, hop=320)
    rows = Rows(model.inputs[0], *model.input_grids[0], columns=10, unit=1 / 256)    # of emberlet.micro.stream
    while True:
        if front.push(microphone()) and rows.append(front.features()):
            model.run()

`emberlet.micro.builder.audio.mfcc` computes the same in NumPy.
"""

import sys
from array import array
from math import cos, log, pi, sqrt

from .audio import Spectrum
from .audio import _kernels as _transform

try:
    if sys.maxsize >> 32:
        raise ImportError  # its machine code is for 32-bit processors
    from . import mfcc_kernels_viper as _kernels
except (ImportError, SyntaxError, ValueError):
    from . import mfcc_kernels_bytecode as _kernels


def mel(frequency):
    """A frequency in Hz on the mel scale, with TensorFlow's factor."""
    return 1127 * log(1 + frequency / 700)


def bands_of_bins(rate, size, count, low, high):
    """For each bin of a transform of `size` from the first that is used: the band whose upper half it is in, from -1,
    and its share in that band; the rest is the next band's. Returns (first bin, bands, shares). Raises ValueError
    unless 0 <= low < high < rate / 2, and if no bin is between them.

    Source: tensorflow/lite/kernels/internal/mfcc_mel_filterbank.cc.
    """
    if not 0 <= low < high < rate / 2:
        raise ValueError(
            "low must be at least 0, and high above low and below half the rate, found {} and {}".format(low, high)
        )
    step = rate / size
    first, last = int(1.5 + low / step), int(high / step)
    space = (mel(high) - mel(low)) / (count + 1)
    bands, shares, band = [], [], 0
    for k in range(first, last + 1):
        m = mel(k * step)
        while band < count and mel(low) + space * (band + 1) < m:
            band += 1
        bands.append(band - 1)
        shares.append((mel(low) + space * (band + 1) - m) / space)
    if not bands:
        raise ValueError("no bin is between {} and {} Hz: use a wider range or a larger size".format(low, high))
    return first, bands, shares


class Mfcc(Spectrum):
    """rate: samples per second; size: samples in a frame, from 8 to 65,536, which zeros extend to a power of two; hop:
    samples from one frame to the next; count: bands between `low` and `high` Hz; coefficients: how many are
    kept. Raises ValueError for other sizes, for more than 80 bands, for more coefficients than bands, and for
    frequencies without a bin.
    """

    def __init__(self, rate=16000, size=640, hop=320, count=40, coefficients=10, low=20, high=4000):
        super().__init__(size, hop)
        if not 0 < coefficients <= count <= 80:
            raise ValueError("count must be at most 80, and coefficients at most count")
        self.count, self.coefficients = count, coefficients
        self._first, bands, shares = bands_of_bins(rate, 1 << self._bits, count, low, high)
        self._shares = array("H", [round(256 * s) for s in shares])
        self._spans = array("H", [bands.count(k) for k in range(-1, count)])
        if max(self._spans) > 256:
            raise ValueError("a band has more than 512 bins: use more bands or a smaller size")
        self._sums, self._out = array("i", [0] * count), array("i", [0] * coefficients)
        scale = 8192 * sqrt(2 / count) * log(2)
        places = [(i, k) for i in range(coefficients) for k in range(count)]
        self._cosines = array("H", [round(scale * cos(i * pi * (k + 0.5) / count)) & 0xFFFF for i, k in places])

    def features(self):
        """The coefficients of the last complete frame, in units of 1/256: an array of integers, reused by each call."""
        k = _kernels  # one by one: a tuple would be allocated
        t = _transform
        re = self._re
        im = self._im
        around = self._mask
        half = around + 1 >> 2
        at = self._at - self._new - self.size & around
        doubled = k.windowed(self._ring, self._window, self.size, at, self._order, around, re, im)
        doubled += t.fft(re, im, 0, self._wave, half, self._is_odd, 1)
        t.power(re, im, 0, self._wave, half)
        first = self._first
        k.roots(re, first, first + len(self._shares))
        # A root is in steps of 1/16, a share of 1/256, a sample of 2**-15, and the transform is divided by its length.
        unit = self._bits - 15 - 12 - doubled << 8
        k.logarithms(re, self._shares, first, self._spans, self.count, self._logs, unit, self._sums)
        k.cosines(self._sums, self._cosines, 0, self.count, self.coefficients, self._out)
        return self._out
