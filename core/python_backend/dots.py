"""The sum of products of two sequences of one length, as fast as this CPython can."""

try:
    from math import sumprod as dot  # from Python 3.12 on, and twice to four times as fast
except ImportError:
    from operator import mul

    def dot(a, b):
        return sum(map(mul, a, b))
