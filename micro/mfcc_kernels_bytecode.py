"""Integer kernels of MFCC, for every port; `check --fix` makes them from mfcc_kernels_viper.py.

Numbers have up to 29 bits and a sign. Factors are in units of 2**-28; each is split into two halves of 14 bits, as is
the number that it multiplies, of which the product of the lower halves is left out. So no product or sum reaches 2**30.
Arguments that come first are variables in truth: those are the fastest.
"""


def windowed(i, s, at, samples, window, size, order, around, re, im):
    """Write `size` samples of a ring buffer of around + 1, from `at` on, times the window, and zeros behind them: those
    at even places to re, the others to im, in the order that the transform takes.

    Samples are doubled until the loudest has 14 bits, or halved once; returns how often, and 2**15 times each product
    is written.
    """
    top = 0
    j = at
    while i < size:
        s = samples[j & around]
        top |= s ^ s << 1  # the places where a bit differs from the one below it
        i += 1
        j += 1
    top &= 0xFFFE
    up = 0 - 1
    while top < 0x8000 and up < 13:
        top <<= 1
        up += 1
    more = up + 1
    sign = 0x8000
    i = 0
    while i < size:
        s = (samples[at] ^ sign) - sign << more
        at = at + 1 & around
        w = window[i]
        s = s * (w >> 15) + (s * (w & 32767) + 16384 >> 15)
        j = order[i >> 1]
        if i & 1:
            im[j] = s
        else:
            re[j] = s
        i += 1
    around >>= 1
    while i <= around:
        j = order[i >> 1]
        if i & 1:
            im[j] = 0
        else:
            re[j] = 0
        i += 1
    return up


def largest(i, top, v, re, im, size):
    """A number from the largest of re and im, without its sign, to less than twice that."""
    while i < size:
        v = re[i]
        top |= v ^ v >> 31
        v = im[i]
        top |= v ^ v >> 31
        i += 1
    return top


def twos(i, a, b, re, im, size):
    """The transforms of two neighbors each."""
    while i < size:
        a = re[i]
        b = re[i + 1]
        re[i] = a + b
        re[i + 1] = a - b
        a = im[i]
        b = im[i + 1]
        im[i] = a + b
        im[i + 1] = a - b
        i += 2


def turned(i, a, b, re, im, wave, size, half):
    """Multiply by their factors the transforms of `half` numbers that `fours` adds. wave: `size` cosines, then sines,
    of half a turn."""
    step = (size >> 1) // half
    leg = 1
    while leg < 4:
        times = step * (3 - leg if leg < 3 else 3)
        k = 1
        while k < half:
            i = k * times
            if i < size:
                a = wave[i]
                b = wave[i + size]
            else:
                a = 0 - wave[i - size]
                b = 0 - wave[i]
            c = a + 8192 >> 14
            p = a - (c << 14)
            s = b + 8192 >> 14
            q = b - (s << 14)
            i = leg * half + k
            while i < size:
                a = re[i]
                b = im[i]
                u = a >> 14
                a &= 16383
                v = b >> 14
                b &= 16383
                re[i] = u * c + v * s + (u * p + a * c + v * q + b * s + 8192 >> 14)
                im[i] = v * c - u * s + (v * p + b * c - u * q - a * s + 8192 >> 14)
                i += half << 2
            k += 1
        leg += 1


def fours(i, a, b, re, im, size, half, shift):
    """Two stages: the transforms of 4 * half numbers from those of half as many each, all shifted to the right
    first."""
    r = 1 << shift >> 1
    while i < size:
        j = i + half
        p = re[j] + r >> shift
        q = im[j] + r >> shift
        j += half
        t = re[j] + r >> shift
        u = im[j] + r >> shift
        j += half
        v = re[j] + r >> shift
        w = im[j] + r >> shift
        a = t - v
        b = u - w
        t += v
        u += w
        v = (re[i] + r >> shift) + p
        w = (im[i] + r >> shift) + q
        p = v - p - p
        q = w - q - q
        re[i] = v + t
        im[i] = w + u
        re[j] = p - b
        im[j] = q + a
        j -= half
        re[j] = v - t
        im[j] = w - u
        j -= half
        re[j] = p + b
        im[j] = q - a
        i += 1
        if i & half:
            i += 3 * half


def parted(i, a, b, re, im, wave, size, shift):
    """Twice the bins from 1 to size - 1 of the transform of 2 * size real numbers, from that of those at even places
    plus 1j times the others, all shifted to the right first. wave: as above."""
    r = 1 << shift >> 1
    i = 1
    j = size - 1
    while i <= j:
        a = re[i] + r >> shift
        b = im[i] + r >> shift
        c = re[j] + r >> shift
        d = im[j] + r >> shift
        u = a - c
        v = b + d
        a += c
        b -= d
        d = wave[i]
        c = d + 8192 >> 14
        d -= c << 14
        n = wave[i + size]
        m = n + 8192 >> 14
        n -= m << 14
        p = u >> 14
        u &= 16383
        q = v >> 14
        v &= 16383
        s = q * c - p * m + (q * d + v * c - p * n - u * m + 8192 >> 14)
        p = p * c + q * m + (p * d + u * c + q * n + v * m + 8192 >> 14)
        re[i] = a + s
        im[i] = b - p
        re[j] = a - s
        im[j] = b + p
        i += 1
        j -= 1


def magnitudes(x, y, i, re, im, k, end):
    """Replace re in the bins from k to `end` by the magnitude there, times 1.647: turns of atan(2**-i) bring each onto
    the real axis (CORDIC)."""
    while k < end:
        x = re[k]
        y = im[k]
        if x < 0:
            x = 0 - x
        up = 0
        t = x | y ^ y >> 31
        while t < 0x100000 and up < 14:
            t <<= 7
            up += 7
        x <<= up
        y <<= up
        i = 0
        while i < 12:
            t = x >> i
            if y < 0:
                x -= y >> i
                y += t
            else:
                x += y >> i
                y -= t
            i += 1
        re[k] = x + (1 << up >> 1) >> up
        k += 1


def logarithms(v, a, i, bins, shares, spans, count, logs, unit, least, out):
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
            v = bins[i]
            a = shares[s]
            n = a + 8192 >> 14
            a -= n << 14
            t = v >> 14
            a = t * n + (t * a + (v & 16383) * n + 8192 >> 14)
            top += a >> 14
            bottom += a & 16383
            v -= a
            high += v >> 14
            low += v & 16383
            i += 1
            s += 1
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


def cosines(i, a, b, logs, table, count, coefficients, out):
    """The cosine transform of logarithms. table: `count` factors for each coefficient."""
    at = 0
    k = 0
    while k < coefficients:
        high = 0
        low = 64
        i = 0
        while i < count:
            a = logs[i]
            b = table[at]
            n = b + 8192 >> 14
            b -= n << 14
            t = a >> 14
            high += t * n
            low += t * b + (a & 16383) * n >> 7
            i += 1
            at += 1
        out[k] = high + (low >> 7)
        k += 1
