"""Motions to recognize without a sensor: readings of an accelerometer, 50 a second, the same on any kind of Python.

`motion(kind, seed, count)` gives `count` readings (x, y, z), in hundredths of the earth's acceleration.
"""

from math import pi, sin

KINDS = ("rest", "walk", "shake", "circle", "tap")


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


def motion(kind, seed, count=64):
    """Readings of one motion; how fast and how strong it is differs with the seed."""
    random = Random(seed)
    tilt_x, tilt_y = random.below(60) - 30, random.below(60) - 30
    strength = 60 + random.below(80)
    noise = 2 + random.below(5)
    start = random.below(50)
    period = {"walk": 24 + random.below(12), "shake": 7 + random.below(4), "circle": 30 + random.below(20)}.get(kind, 1)
    tap = 10 + random.below(30)
    for k in range(count):
        t = 2 * pi * (k + start) / period
        x, y, z = tilt_x, tilt_y, 95
        if kind == "walk":
            z += int(strength * 0.4 * sin(t))
            x += int(strength * 0.15 * sin(t / 2))
        elif kind == "shake":
            x += int(strength * 1.3 * sin(t))
            y += int(strength * 0.3 * sin(t + 1))
        elif kind == "circle":
            x += int(strength * 0.8 * sin(t))
            y += int(strength * 0.8 * sin(t + pi / 2))
        elif kind == "tap" and (k + start) % (tap + 20) < 3:
            z += strength * 2 * (1 - 2 * (k & 1))
        yield (
            x + random.below(2 * noise) - noise,
            y + random.below(2 * noise) - noise,
            z + random.below(2 * noise) - noise,
        )
