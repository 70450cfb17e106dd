"""Sounds to listen to without a microphone: sweeps, beeps and noise, made of integers on any kind of Python.

`sound(kind, seed)` gives two seconds of 16,000 samples a second, 16 bits each, in blocks: the same ones everywhere.
"""

from array import array
from math import pi, sin

RATE = 16000
LENGTH = 2 * RATE
KINDS = ("nothing", "rise", "fall", "double")

_SINE = array("h", [round(32767 * sin(2 * pi * k / 256)) for k in range(256)])


class Random:
    """A small generator of pseudo-random numbers."""

    def __init__(self, seed):
        self.state = (seed * 2654435 + 12345) & 0x3FFFFFF
        for _ in range(8):
            self.below(2)

    def below(self, n):
        """An integer from 0 to n - 1."""
        self.state = (self.state * 29 + 17) % 33554393
        return self.state % n


def sound(kind, seed, size=256):
    """Blocks of `size` samples. kind: one of KINDS; it begins somewhere in the first second and lasts half of one."""
    random = Random(seed)
    noise = 20 + random.below(400)
    volume = 60 + random.below(180)  # of 256
    start = random.below(RATE)
    length = RATE * (40 + random.below(25)) // 100
    low = 350 + random.below(250)
    high = low * (20 + random.below(12)) // 10
    phase = 0
    block = array("h", [0] * size)
    for first in range(0, LENGTH - size + 1, size):
        for i in range(size):
            at = first + i - start
            v = 0
            if kind != "nothing" and 0 <= at < length:
                if kind == "rise":
                    pitch = low + (high - low) * at // length
                elif kind == "fall":
                    pitch = high - (high - low) * at // length
                else:
                    pitch = (low + high) // 2
                    if 3 * at // length == 1:
                        pitch = 0
                phase = (phase + pitch * 65536 // RATE) & 0xFFFF
                if pitch:
                    v = _SINE[phase >> 8] * volume >> 10
            block[i] = v + random.below(2 * noise) - noise
        yield block
