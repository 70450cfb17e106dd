"""The features of microWakeWord, to the byte: from 16-bit audio at 16 kHz to 40 numbers every 10 ms. Every 20 ms, they
are those of TensorFlow Lite Micro's micro_speech, by the same code: only those every 10 ms have been compared.

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

from .frames import Frames

try:
    if sys.maxsize >> 32:
        raise ImportError  # its machine code is for 32-bit processors
    from . import speech_kernels_viper as _kernels
except (ImportError, SyntaxError, ValueError):
    from .bytecode import in_bytecode

    _kernels = in_bytecode("speech_kernels_viper")


class MicroFrontend(Frames):
    """hop: samples from one frame of 480 to the next: 160 for microWakeWord, 320 for micro_speech. Raises ValueError if
    it is not from 1 to 480."""

    def __init__(self, hop=160):
        super().__init__(480, hop)
        from .speech_tables import GAINS, LOGS, QUARTER, WEIGHTS, WIDTHS, WINDOW, unpacked

        self._window, self._weights = memoryview(unpacked("H", WINDOW)), memoryview(unpacked("H", WEIGHTS))
        self._gains, self._logs, self._widths = unpacked("i", GAINS), unpacked("H", LOGS), WIDTHS
        turn = unpacked("i", QUARTER)  # cosines of a quarter of a turn of 512 steps
        turn.extend(array("i", (-turn[256 - k] for k in range(129, 257))))
        turn.extend(array("i", (turn[512 - k] for k in range(257, 512))))
        self._wave = memoryview(array("i", (turn[k + 128 * odd & 511] for k in range(0, 384, 2) for odd in (0, 1))))
        self._split = memoryview(
            array("i", (-turn[k] if odd else turn[k + 128] for k in range(5, 129) for odd in (0, 1)))
        )
        self._order = bytearray((k & 3) << 6 | (k >> 2 & 3) << 4 | (k >> 4 & 3) << 2 | k >> 6 for k in range(256))
        self._z = memoryview(array("i", [0] * 512))
        self._out, self._noise = array("i", [0] * 40), array("i", [0] * 40)
        self.reset()

    def reset(self):
        """Forget all samples and the noise: the next frame is complete after 480 samples."""
        self._new = self.hop - self.size
        for k in range(40):
            self._noise[k] = 0

    def features(self):
        """The features of the last frame: an array of 40 integers, reused by each call. To be called once for each
        frame, since it updates the estimate of the noise. microWakeWord's models take them times 10 / 256."""
        k = _kernels  # one by one: a tuple would be allocated
        z = self._z
        out = self._out
        at = self._at - self._new - self.size & self._mask
        doubled = k.windowed(at, 0, 0, self._ring, self._window, self._order, z)
        k.first_stage(z, 0, 0, z, doubled)
        k.stage(z, 0, 0, z, self._wave, 32, 16)
        k.stage(z, 0, 0, z, self._wave, 128, 4)
        k.stage(z, 0, 0, z, self._wave, 512, 1)
        k.power(z, 0, 0, z, self._split)
        k.channels(z, self._weights, 0, z, self._widths)
        k.roots(0, 0, 0, z, doubled, out)
        k.gained(0, 0, 0, out, self._noise, self._gains)
        k.logarithms(0, 0, 0, out, self._logs)
        return out
