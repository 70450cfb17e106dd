"""The features of microWakeWord and of TensorFlow Lite Micro's micro_speech, to the byte: from 16-bit audio at 16 kHz
to 40 numbers every 10 or 20 ms.

    front = MicroFrontend()
    rows = Rows(wake.inputs[0], *wake.input_grids[0], columns=40, hop=3, unit=10 / 256)    # of emberlet.micro.stream
    while True:
        if front.push(microphone()) and rows.append(front.features()):
            wake.run()

A frame of 30 ms is windowed and transformed. The square roots of the power in 40 bands of the mel scale, from 125 to
7,500 Hz, lose their stationary noise (noise reduction) and are divided by it (PCAN, per-channel amplitude
normalization); the features are their logarithms. All of it is integers, and so are the tables: a board's floats are
too coarse to compute them.
"""

import sys
from array import array

try:
    if sys.maxsize >> 32:
        raise ImportError  # its machine code is for 32-bit processors
    from . import speech_kernels_viper as _kernels
except (ImportError, SyntaxError, ValueError):
    from . import speech_kernels_bytecode as _kernels


class MicroFrontend:
    """hop: samples from one frame of 480 to the next: 160 for microWakeWord, 320 for micro_speech. Raises ValueError if
    it is not from 1 to 480."""

    def __init__(self, hop=160):
        if not 0 < hop <= 480:
            raise ValueError("hop must be from 1 to 480, found {}".format(hop))
        from .speech_tables import GAINS, LOGS, QUARTER, WEIGHTS, WIDTHS, WINDOW, unpacked

        self.hop = hop
        self._ring = array("H", [0] * 1024)
        self._view = memoryview(self._ring)
        self._at = 0
        self._window, self._weights, self._logs = unpacked("H", WINDOW), unpacked("H", WEIGHTS), unpacked("H", LOGS)
        self._gains, self._widths = unpacked("i", GAINS), WIDTHS
        turn = unpacked("i", QUARTER)  # cosines of a quarter of a turn of 512 steps
        turn.extend(array("i", (-turn[256 - k] for k in range(129, 257))))
        turn.extend(array("i", (turn[512 - k] for k in range(257, 512))))
        self._wave = array("i", (turn[2 * k] for k in range(192)))
        self._wave.extend(array("i", (turn[2 * k + 128 & 511] for k in range(192))))
        self._split = array("i", (turn[k + 128] for k in range(1, 129)))
        self._split.extend(array("i", (-turn[k] for k in range(1, 129))))
        self._order = bytearray((k & 3) << 6 | (k >> 2 & 3) << 4 | (k >> 4 & 3) << 2 | k >> 6 for k in range(256))
        self._re, self._im = array("i", [0] * 256), array("i", [0] * 256)
        self._out, self._noise = array("i", [0] * 40), array("i", [0] * 40)
        self.reset()

    def reset(self):
        """Forget all samples and the noise: the next frame is complete after 480 samples."""
        self._new = self.hop - 480
        for k in range(40):
            self._noise[k] = 0

    def push(self, samples):
        """Add at most `hop` 16-bit samples; returns True when a frame is complete. Raises ValueError for more."""
        if len(samples) > self.hop:
            raise ValueError("at most {} samples at a time, found {}".format(self.hop, len(samples)))
        at, count = self._at, len(samples)
        first = min(count, 1024 - at)
        try:
            self._view[at : at + first] = samples if first == count else memoryview(samples)[:first]
            if first < count:
                self._view[: count - first] = memoryview(samples)[first:]
        except (TypeError, ValueError, NotImplementedError):  # not an array of 16 bits
            for k in range(count):
                self._ring[at + k & 1023] = int(samples[k] | 0) & 0xFFFF  # "| 0" refuses floats
        self._at = at + count & 1023
        self._new += count
        if self._new < self.hop:
            return False
        self._new -= self.hop
        return True

    def features(self):
        """The features of the last frame: an array of 40 integers, reused by each call. To be called once for each
        frame, since it updates the estimate of the noise. microWakeWord's models take them times 10 / 256."""
        k = _kernels  # one by one: a tuple would be allocated
        re = self._re
        im = self._im
        out = self._out
        doubled = k.windowed(self._ring, self._window, 0, self._at - self._new - 480 & 1023, self._order, re, im)
        k.first_stage(re, im, 0, doubled)
        k.stage(re, im, 0, self._wave, 4, 16)
        k.stage(re, im, 0, self._wave, 16, 4)
        k.stage(re, im, 0, self._wave, 64, 1)
        k.power(re, im, 0, self._split)
        k.channels(re, self._weights, 0, self._widths, doubled, out)
        k.log_gains(out, self._noise, 0, self._gains, self._logs)
        return out
