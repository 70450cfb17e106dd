"""Integer kernels of the wake words' front end, in machine code; bytecode.py makes the same for every port.

Arrays hold 32-bit integers, which machine code of 64-bit processors would load without their sign: they take bytecode.
No result reaches 2**31: what is transformed has 16 bits, and each stage divides by four, so that the power in all bins
is below 2**28. The spectrum `z` has the real and the imaginary part of each bin side by side. Offsets are in bytes.

The first three arguments are in registers. So variables that are used most are arguments, whose values do not count. A
constant takes fewer instructions than a variable that holds it, and an element at a constant place fewer than one at a
variable place: hence the pointers.
"""

# ruff: noqa: F821
# mypy: ignore-errors

import micropython


@micropython.viper
def windowed(at: int, v: int, top: int, samples: ptr16, window: ptr16, order: ptr8, z: ptr32) -> int:
    """Write the 480 samples of a ring buffer of 1,024, from `at` on, times the window (12 bits), and 32 zeros to z, in
    the order that the transform takes: those at even places as real parts, the others as imaginary ones.

    Returns how often the samples can be doubled within 16 bits.
    """
    top = 0
    i = 0
    while i < 240:
        q = ptr32(int(z) + (order[i] << 3))
        v = ((samples[at] ^ 32768) - 32768) * window[0] >> 12
        at = at + 1 & 1023
        q[0] = v
        top |= v * v
        v = ((samples[at] ^ 32768) - 32768) * window[1] >> 12
        at = at + 1 & 1023
        q[1] = v
        top |= v * v
        window = ptr16(int(window) + 4)
        i += 1
    while i < 256:
        q = ptr32(int(z) + (order[i] << 3))
        q[0] = 0
        q[1] = 0
        i += 1
    v = top & 0x3FFFFFFF
    doubled = 0
    while v < 0x10000000 and doubled < 15:
        v <<= 2
        doubled += 1
    if top >> 30 and doubled:  # the reference takes no notice of -32768, which then overflows to 0
        i = 0
        while i < 512:
            if z[i] < -32767:
                z[i] = 0
            i += 1
    return doubled


@micropython.viper
def first_stage(p: ptr32, f: int, a: int, z: ptr32, doubled: int):
    """The transforms of four complex numbers each, of 256, divided by four, after as many doublings."""
    f = 8191 << doubled
    i = 0
    while i < 2048:
        p = ptr32(int(z) + i)
        a = p[0] * f + 16384 >> 15
        b = p[1] * f + 16384 >> 15
        c = p[2] * f + 16384 >> 15
        d = p[3] * f + 16384 >> 15
        r = p[4] * f + 16384 >> 15
        s = p[5] * f + 16384 >> 15
        t = p[6] * f + 16384 >> 15
        u = p[7] * f + 16384 >> 15
        v = c - t
        w = d - u
        c += t
        d += u
        t = a - r
        u = b - s
        a = r + a
        b += s
        p[0] = c + a
        p[1] = b + d
        p[2] = t + w
        p[3] = u - v
        p[4] = a - c
        p[5] = b - d
        p[6] = t - w
        p[7] = u + v
        i += 32


@micropython.viper
def stage(p: ptr32, a: int, b: int, z: ptr32, wave: ptr32, m: int, step: int):
    """The transforms of m / 2 complex numbers each, of 256, from those of m / 8 numbers, which take m bytes, divided by
    four. wave: 192 cosines, each beside its sine, of three quarters of a turn backwards; step: 512 / m."""
    k = 0
    while k < m:
        i = k * step
        q = ptr32(int(wave) + i)
        c = q[0]
        s = q[1]
        q = ptr32(int(q) + i)
        g = q[0]
        h = q[1]
        q = ptr32(int(q) + i)
        d = q[0]
        e = q[1]
        i = k
        while i < 2048:
            p = ptr32(int(z) + i + m)
            a = p[0] * 8191 + 16384 >> 15
            b = p[1] * 8191 + 16384 >> 15
            t = c * a - s * b + 16384 >> 15
            u = s * a + c * b + 16384 >> 15
            p = ptr32(int(p) + m)
            a = p[0] * 8191 + 16384 >> 15
            b = p[1] * 8191 + 16384 >> 15
            v = g * a - h * b + 16384 >> 15
            w = h * a + g * b + 16384 >> 15
            p = ptr32(int(p) + m)
            a = p[0] * 8191 + 16384 >> 15
            b = p[1] * 8191 + 16384 >> 15
            x = d * a - e * b + 16384 >> 15
            y = e * a + d * b + 16384 >> 15
            a = t - x
            b = u - y
            t += x
            u += y
            p = ptr32(int(z) + i)
            x = p[0] * 8191 + 16384 >> 15
            y = p[1] * 8191 + 16384 >> 15
            p[0] = x + v + t
            p[1] = y + w + u
            p = ptr32(int(p) + m)
            p[0] = x - v + b
            p[1] = y - w - a
            p = ptr32(int(p) + m)
            p[0] = x + v - t
            p[1] = y + w - u
            p = ptr32(int(p) + m)
            p[0] = x - v - b
            p[1] = y - w + a
            i += m << 2
        k += 8


@micropython.viper
def power(p: ptr32, c: int, d: int, z: ptr32, split: ptr32):
    """Write to the real parts the power in the bins 5 to 251 of the transform of 512 real numbers. z: the transform of
    those at even places plus 1j times the others; split: the factor of each bin from 5 to 128."""
    i = 40
    while i <= 1024:
        p = ptr32(int(z) + i)
        q = ptr32(int(z) + (2048 - i))
        a = p[0] * 16383 + 16384 >> 15
        b = p[1] * 16383 + 16384 >> 15
        x = q[0] * 16383 + 16384 >> 15
        y = 16384 - q[1] * 16383 >> 15
        c = a - x
        d = b - y
        a += x
        b += y
        x = split[0] * c - split[1] * d + 16384 >> 15
        y = split[1] * c + split[0] * d + 16384 >> 15
        split = ptr32(int(split) + 8)
        c = a + x >> 1
        d = b + y >> 1
        p[0] = c * c + d * d
        c = a - x >> 1
        d = y - b >> 1
        q[0] = c * c + d * d
        i += 8


@micropython.viper
def channels(power: ptr32, weights: ptr16, p: int, z: ptr32, widths: ptr8):
    """Replace the power in z by its weighted sum in each of 40 channels: what it has above 12 bits, then those bits.
    power: z; widths: for each edge of a channel the number of bins up to it, from bin 5 on; weights: of
    each bin, in the channel that ends above it; the rest counts in the next."""
    high = 0
    low = 0
    power = ptr32(int(power) + 40)
    k = 0
    while k <= 40:
        n = widths[k]
        a = 0
        c = 0
        d = 0
        while n:
            p = power[0]
            a = a + p
            c = (p >> 12) * weights[0] + c
            d = (p & 4095) * weights[0] + d
            power = ptr32(int(power) + 8)
            weights = ptr16(int(weights) + 2)
            n -= 1
        if k:
            low += d
            z[0] = high + c + (low >> 12)
            z[1] = low & 4095
            z = ptr32(int(z) + 8)
        high = a - c
        low = 0 - d
        k += 1


@micropython.viper
def roots(rest: int, root: int, bit: int, z: ptr32, doubled: int, out: ptr32):
    """The square roots of the sums in 40 channels, rounded, then halved as often as `doubled` says."""
    k = 0
    while k < 40:
        rest = z[0]
        root = 0
        bit = 0x10000000
        while bit > rest:
            bit >>= 2
        parts = 2
        while parts:
            while bit:
                if rest >= root + bit:
                    rest = rest - root - bit
                    root = (root >> 1) + bit
                else:
                    root >>= 1
                bit >>= 2
            parts -= 1
            if parts:
                rest = rest << 12 | z[1]
                root <<= 12
                bit = 1024
        if rest > root and (root != 65535 or z[0] >> 20):
            root += 1
        out[k] = root >> doubled
        z = ptr32(int(z) + 8)
        k += 1


@micropython.viper
def gained(v: int, n: int, x: int, signal: ptr32, noise: ptr32, gains: ptr32):
    """Replace the signal in each of 40 channels by what exceeds its noise, times a gain that falls with the noise.
    noise: its estimates, which are updated; gains: a table."""
    s = 409  # 0.025 and 0.06 of 16384
    i = 0
    while i < 40:
        x = signal[i]
        v = x << 10
        e = noise[i]
        r = 16384 - s
        e = (e >> 14) * r + (v >> 14) * s + ((e & 16383) * r + (v & 16383) * s >> 14)
        noise[i] = e
        s = 1392 - s
        a = v - e >> 10 if v > e else 0
        x = x * 819 >> 14
        if a < x:
            a = x
        if e > 2:
            v = e
            n = 1  # the bits of v
            if v > 65535:
                v >>= 16
                n += 16
            if v > 255:
                v >>= 8
                n += 8
            if v > 15:
                v >>= 4
                n += 4
            if v > 3:
                v >>= 2
                n += 2
            n += v >> 1
            x = (e << 11 - n if n < 11 else e >> n - 11) & 1023
            n = 4 * n - 6
            v = (gains[n + 2] * x >> 5) + (gains[n + 1] << 5)
            v = (v * x + 16384 >> 15) + gains[n]
        else:
            v = gains[e]
        signal[i] = (a >> 6) * v + ((a & 63) * v >> 6)
        i += 1


@micropython.viper
def logarithms(v: int, n: int, x: int, signal: ptr32, logs: ptr16):
    """Replace the signal in each of 40 channels by its logarithm. logs: a table."""
    i = 0
    while i < 40:
        x = signal[i]
        x = x * x >> 20 if x < 8192 else (x >> 6) - 64
        x <<= 3
        if x > 1:
            v = x
            n = 0  # the bits of v above the lowest
            if v > 65535:
                v >>= 16
                n += 16
            if v > 255:
                v >>= 8
                n += 8
            if v > 15:
                v >>= 4
                n += 4
            if v > 3:
                v >>= 2
                n += 2
            n += v >> 1
            x -= 1 << n
            x = x << 16 - n if n < 16 else x >> n - 16
            v = x >> 9
            n = (n << 16) + x + logs[v]
            v = n + ((logs[v + 1] - logs[v]) * (x & 511) >> 16)
            v = 45426 * (v >> 8) + (45426 * (v & 255) + 32768 >> 8) >> 8
            x = (v << 6) + 32768 >> 16
        else:
            x = 0
        signal[i] = x
        i += 1
