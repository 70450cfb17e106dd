"""Integer kernels of MFCC, in machine code; bytecode.py makes the same for every port.

Numbers have up to 29 bits and a sign. Factors are in units of 2**-28; each is split into two halves of 14 bits, as is
the number that it multiplies, of which the product of the lower halves is left out. So no product or sum reaches 2**30.
Complex numbers are pairs of words. They are turned by three shears, of which each changes one of the two: `wave` has,
for each angle of a quarter of a turn, the upper and the lower half of -tan(angle / 2) and of its sine, each 16 bits
with a sign. Arguments that come first are variables in truth: those are the fastest.
"""

# ruff: noqa: F821
# mypy: ignore-errors

import micropython


@micropython.viper
def windowed(
    i: int, s: int, at: int, samples: ptr16, window: ptr16, size: int, order: ptr16, around: int, z: ptr32
) -> int:
    """Write `size` samples of a ring buffer of around + 1, from `at` on, times the window, to z in the order that the
    transform takes, in pairs as complex numbers, and zeros to the rest. window: 13 bits and 15 more for each sample,
    and for one behind the last.

    Samples are doubled until the loudest has 14 bits, or halved once; returns how often, and 2**15 times each product
    is written. A neighbor may count as the loudest: pairs of samples are looked at.
    """
    top = 0
    sign = 0x8000
    i = at - (at & 1)
    end = at + size
    end += end & 1
    while i < end:
        s = samples[i & around]
        top |= s ^ s << 1  # the places where a bit differs from the one below it
        i += 1
    top &= 0xFFFE
    up = 0 - 1
    while top < 0x8000 and up < 13:
        top <<= 1
        up += 1
    more = up + 1
    i = around >> 1
    while i >= 0:
        z[i] = 0
        i -= 1
    i = 0
    pair = 0
    while i < size + size:
        j = order[pair]
        pair += 1
        s = (samples[at] ^ sign) - sign << more
        at = at + 1 & around
        z[j] = s * window[i] + (s * window[i + 1] + 16384 >> 15)
        s = (samples[at] ^ sign) - sign << more
        at = at + 1 & around
        z[j + 1] = s * window[i + 2] + (s * window[i + 3] + 16384 >> 15)
        i += 4
    return up


@micropython.viper
def largest(i: int, top: int, v: int, z: ptr32) -> int:
    """A number from the largest of i numbers, without its sign, to less than twice that."""
    while i:
        i -= 1
        v = z[i]
        top |= v ^ v >> 31
    return top


@micropython.viper
def twos(i: int, a: int, b: int, z: ptr32):
    """The transforms of two neighbors each, of i words."""
    while i:
        i -= 4
        a = z[i]
        b = z[i + 2]
        z[i] = a + b
        z[i + 2] = a - b
        a = z[i + 1]
        b = z[i + 3]
        z[i + 1] = a + b
        z[i + 3] = a - b


@micropython.viper
def turned(x: int, y: int, i: int, z: ptr32, wave: ptr16, size: int, half: int):
    """Turn the transforms of `half` numbers that `fours` adds: the second by twice the angle of the third, backward,
    and the fourth forward. size: of z, in complex numbers."""
    quarter = size >> 1
    end = size + size
    step = half << 3
    leg = 1
    while leg < 4:
        k = 1
        while k < half:
            i = k * (quarter // half)
            more = 0
            if leg == 1:
                i += i
                if i >= quarter:  # a quarter of a turn more
                    i -= quarter
                    more = 1
            i <<= 2
            c = (wave[i] ^ 0x8000) - 0x8000
            p = (wave[i + 1] ^ 0x8000) - 0x8000
            s = wave[i + 2]
            q = (wave[i + 3] ^ 0x8000) - 0x8000
            i = leg * half + k << 1
            if leg == 3:  # forward
                i += 1
            while i < end:
                y = z[i]
                x = z[i ^ 1]
                h = y >> 14
                x += h * c + (h * p + (y & 16383) * c + 8192 >> 14)
                h = x >> 14
                y += h * s + (h * q + (x & 16383) * s + 8192 >> 14)
                h = y >> 14
                x += h * c + (h * p + (y & 16383) * c + 8192 >> 14)
                if more:
                    z[i] = x
                    z[i + 1] = 0 - y
                else:
                    z[i] = y
                    z[i ^ 1] = x
                i += step
            k += 1
        leg += 1


@micropython.viper
def fours(i: int, a: int, b: int, z: ptr32, size: int, half: int, shift: int):
    """Two stages: the transforms of 4 * half complex numbers from those of half as many each, all shifted to the right
    first. size: of z, in words."""
    half += half
    while i < size:
        j = i + half
        p = z[j] >> shift
        q = z[j + 1] >> shift
        j += half
        t = z[j] >> shift
        u = z[j + 1] >> shift
        j += half
        v = z[j] >> shift
        w = z[j + 1] >> shift
        a = t - v
        b = u - w
        t += v
        u += w
        v = (z[i] >> shift) + p
        w = (z[i + 1] >> shift) + q
        p = v - p - p
        q = w - q - q
        z[i] = v + t
        z[i + 1] = w + u
        z[j] = p - b
        z[j + 1] = q + a
        j -= half
        z[j] = v - t
        z[j + 1] = w - u
        j -= half
        z[j] = p + b
        z[j + 1] = q - a
        i += 2
        if i & half:
            i += 3 * half


@micropython.viper
def parted(i: int, x: int, y: int, z: ptr32, wave: ptr16, size: int, shift: int):
    """Twice the bins from 1 to size - 1 of the transform of 2 * size real numbers, from that of those at even places
    plus 1j times the others, all shifted to the right first."""
    i = 1
    while i + i <= size:
        j = i + i
        a = z[j] >> shift
        b = z[j + 1] >> shift
        j = size - i << 1
        y = z[j] >> shift
        x = z[j + 1] >> shift
        a += y
        y = a - y - y
        b -= x
        x += b + x
        j = i << 2
        c = (wave[j] ^ 0x8000) - 0x8000
        p = (wave[j + 1] ^ 0x8000) - 0x8000
        s = wave[j + 2]
        q = (wave[j + 3] ^ 0x8000) - 0x8000
        h = y >> 14
        x += h * c + (h * p + (y & 16383) * c + 8192 >> 14)
        h = x >> 14
        y += h * s + (h * q + (x & 16383) * s + 8192 >> 14)
        h = y >> 14
        x += h * c + (h * p + (y & 16383) * c + 8192 >> 14)
        j = i + i
        z[j] = a + x
        z[j + 1] = b - y
        j = size - i << 1
        z[j] = a - x
        z[j + 1] = b + y
        i += 1


@micropython.viper
def magnitudes(x: int, y: int, i: int, z: ptr32, k: int, end: int):
    """Replace the bins from k to `end` by the magnitude there, times 1.647, in the first word of each: turns of
    atan(2**-i) bring each onto the real axis (CORDIC)."""
    k += k
    while k < end + end:
        x = z[k]
        y = z[k + 1]
        if x < 0:
            x = 0 - x
        if y < 0:
            y = 0 - y
        up = 0
        t = x | y
        if t < 0x4000:
            up = 10
        while t << up < 0x400000 and up < 22:
            up += 4
        x <<= up
        y <<= up
        x += 4
        i = 0
        while i < 10:
            t = x >> i
            x += y >> i
            y -= t
            if y < 0:
                y = 0 - y
            i += 1
        z[k] = x + (1 << up >> 1) >> up
        k += 2


@micropython.viper
def logarithms(
    v: int,
    a: int,
    i: int,
    bins: ptr32,
    shares: ptr16,
    spans: ptr16,
    count: int,
    logs: ptr32,
    unit: int,
    least: int,
    out: ptr32,
):
    """The natural logarithm of each band's sum, in units of 2**-20, plus `unit`, and `least` at least: both in 2**-24.

    spans: how many bins are in each band's upper half, from that before the first band's on; shares: of each of these
    bins in it; logs: of 1 + 2**-i, in 2**-24. Sums are in two words, of which the lower has 14 bits.
    """
    s = 0
    k = 0
    high = 0
    low = 0
    while k <= count:
        end = i + spans[k]
        top = high
        bottom = low
        high = 0
        low = 0
        while i < end:
            v = bins[i + i]
            n = shares[s]
            a = (shares[s + 1] ^ 0x8000) - 0x8000
            t = v >> 14
            a = t * n + (t * a + (v & 16383) * n + 8192 >> 14)
            top += a >> 14
            bottom += a & 16383
            v -= a
            high += v >> 14
            low += v & 16383
            i += 1
            s += 2
        top += bottom >> 14
        bottom &= 16383
        a = unit
        while top > 0x7FFF:
            bottom = bottom >> 1 | (top & 1) << 13
            top >>= 1
            a += logs[0]
        v = (top << 14) + bottom
        if v > 0:
            while v < 0x10000000:
                v <<= 1
                a -= logs[0]
            n = 1
            while n < 12:  # make it 2 by factors of 1 + 2**-n
                t = v + (v >> n)
                if t > 0x20000000:
                    n += 1
                else:
                    v = t
                    a -= logs[n]
            a -= 0x20000000 - v >> 5
        if v <= 0 or a < least:
            a = least
        if k:
            out[k - 1] = a + 8 >> 4
        k += 1


@micropython.viper
def cosines(i: int, a: int, b: int, logs: ptr32, table: ptr16, count: int, coefficients: int, out: ptr32):
    """The cosine transform of logarithms. table: the halves of `count` factors for each
    coefficient."""
    at = 0
    k = 0
    while k < coefficients:
        high = 0
        low = 64
        i = 0
        while i < count:
            a = logs[i]
            n = (table[at] ^ 0x8000) - 0x8000
            b = (table[at + 1] ^ 0x8000) - 0x8000
            t = a >> 14
            high += t * n
            a &= 16383
            low += t * b + a * n + (a * b >> 14) >> 7
            i += 1
            at += 2
        out[k] = high + (low >> 7)
        k += 1
