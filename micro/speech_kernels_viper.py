"""Integer kernels of the wake words' front end, in machine code. speech_kernels_bytecode.py is the same for every port.

Arrays hold 32-bit integers, which machine code of 64-bit processors would load without their sign: they take bytecode.
No result reaches 2**31.
"""

# ruff: noqa: F821
# mypy: ignore-errors

import micropython


@micropython.viper
def windowed(samples: ptr16, window: ptr16, i: int, at: int, order: ptr8, re: ptr32, im: ptr32) -> int:
    """Write the 480 samples of a ring buffer of 1,024, from `at` on, times the window (12 bits), and 32 zeros: those at
    even places to re, the others to im, in the order that the transform takes. i: 0, an argument since those are faster
    than other variables.

    Returns how often the samples can be doubled within 16 bits.
    """
    top = 0
    sign = 0x8000
    while i < 480:
        j = order[i >> 1]
        v = ((samples[at] ^ sign) - sign) * window[i] >> 12
        at = at + 1 & 1023
        re[j] = v
        w = v >> 31
        top |= (v ^ w) - w
        i += 1
        v = ((samples[at] ^ sign) - sign) * window[i] >> 12
        at = at + 1 & 1023
        im[j] = v
        w = v >> 31
        top |= (v ^ w) - w
        i += 1
    while i < 512:
        j = order[i >> 1]
        re[j] = 0
        im[j] = 0
        i += 2
    w = top & 0x7FFF
    doubled = 0
    while w < 16384 and doubled < 15:
        w <<= 1
        doubled += 1
    if top > 0x7FFF and doubled:  # the reference takes no notice of -32768, which then overflows to 0
        i = 0
        while i < 256:
            if re[i] < -32767:
                re[i] = 0
            if im[i] < -32767:
                im[i] = 0
            i += 1
    return doubled


@micropython.viper
def first_stage(re: ptr32, im: ptr32, i: int, doubled: int):
    """The transforms of four complex numbers each, of 256, divided by four, after as many doublings."""
    half = 16384
    f = 8191 << doubled
    while i < 256:
        j = i + 1
        a = re[i] * f + half >> 15
        b = im[i] * f + half >> 15
        c = re[j] * f + half >> 15
        d = im[j] * f + half >> 15
        j += 1
        p = re[j] * f + half >> 15
        q = im[j] * f + half >> 15
        j += 1
        t = re[j] * f + half >> 15
        u = im[j] * f + half >> 15
        v = c - t
        w = d - u
        c += t
        d += u
        t = a - p
        u = b - q
        a += p
        b += q
        re[i] = a + c
        im[i] = b + d
        re[j] = t - w
        im[j] = u + v
        j -= 1
        re[j] = a - c
        im[j] = b - d
        j -= 1
        re[j] = t + w
        im[j] = u - v
        i += 4


@micropython.viper
def stage(re: ptr32, im: ptr32, j: int, wave: ptr32, m: int, step: int):
    """The transforms of 4 * m complex numbers each, of 256, from those of m numbers, divided by four. wave: 192
    cosines, then 192 sines, of a whole turn backwards; step: 64 / m; j: as i above."""
    half = 16384
    f = 8191
    k = 0
    while k < m:
        j = k * step
        c = wave[j]
        s = wave[j + 192]
        g = wave[j + j]
        h = wave[j + j + 192]
        j = j + j + j
        d = wave[j]
        e = wave[j + 192]
        i = k
        while i < 256:
            j = i + m
            a = re[j] * f + half >> 15
            b = im[j] * f + half >> 15
            t = a * c - b * s + half >> 15
            u = a * s + b * c + half >> 15
            j += m
            a = re[j] * f + half >> 15
            b = im[j] * f + half >> 15
            p = a * g - b * h + half >> 15
            q = a * h + b * g + half >> 15
            j += m
            a = re[j] * f + half >> 15
            b = im[j] * f + half >> 15
            v = a * d - b * e + half >> 15
            w = a * e + b * d + half >> 15
            a = t - v
            b = u - w
            t += v
            u += w
            v = re[i] * f + half >> 15
            w = im[i] * f + half >> 15
            re[j] = v - p - b
            im[j] = w - q + a
            j -= m
            re[j] = v + p - t
            im[j] = w + q - u
            j -= m
            re[j] = v - p + b
            im[j] = w - q - a
            re[i] = v + p + t
            im[i] = w + q + u
            i += m << 2
        k += 1


@micropython.viper
def power(re: ptr32, im: ptr32, i: int, split: ptr32):
    """Write to re the power in the bins 5 to 251 of the transform of 512 real numbers. re, im: the transform of those
    at even places plus 1j times the others; split: for each bin up to 128 its factor's real part, then 128 imaginary
    parts; i: as above."""
    f = 16383
    half = 16384
    i += 5
    while i <= 128:
        j = 256 - i
        a = re[i] * f + half >> 15
        b = im[i] * f + half >> 15
        c = re[j] * f + half >> 15
        d = half - im[j] * f >> 15
        u = a - c
        v = b - d
        a += c
        b += d
        c = split[i - 1]
        d = split[i + 127]
        p = u * c - v * d + half >> 15
        q = u * d + v * c + half >> 15
        c = a + p >> 1
        d = b + q >> 1
        re[i] = c * c + d * d
        c = a - p >> 1
        d = q - b >> 1
        re[j] = c * c + d * d
        i += 1


@micropython.viper
def channels(power: ptr32, weights: ptr16, i: int, widths: ptr8, doubled: int, out: ptr32):
    """The square root of the weighted power in each of 40 channels. widths: for each edge of a channel the number of
    bins up to it, from bin 5 on; weights: of each bin, in the channel that ends above it; the rest counts in the next.
    i: as above."""
    i += 5
    w = 0
    high = 0
    low = 0
    k = 0
    while k <= 40:
        n = i + widths[k]
        a = 0
        b = 0
        c = 0
        d = 0
        while i < n:
            p = power[i]
            q = p & 4095
            p >>= 12
            v = weights[w]
            a += p
            b += q
            c += p * v
            d += q * v
            i += 1
            w += 1
        high += c
        low += d
        if k:
            high += low >> 12
            low &= 4095
            root = 0
            rest = 0
            s = 30
            while s and high >> s - 2 == 0:
                s -= 2
            while s:
                s -= 2
                rest = rest << 2 | high >> s & 3
                t = root << 2 | 1
                root <<= 1
                if rest >= t:
                    rest -= t
                    root += 1
            s = 12
            while s:
                s -= 2
                rest = rest << 2 | low >> s & 3
                t = root << 2 | 1
                root <<= 1
                if rest >= t:
                    rest -= t
                    root += 1
            if rest > root and (root != 65535 or high >> 20):
                root += 1
            out[k - 1] = root >> doubled
        high = (a << 12) - c
        low = (b << 12) - d
        k += 1


@micropython.viper
def log_gains(signal: ptr32, noise: ptr32, i: int, gains: ptr32, logs: ptr16):
    """Replace the signal in each of 40 channels by the logarithm of what exceeds its noise, times a gain that falls
    with the noise. noise: its estimates, which are updated; gains, logs: tables. i: as above."""
    s = 409  # 0.025 and 0.06 of 16384
    while i < 40:
        x = signal[i]
        v = x << 10
        e = noise[i]
        r = 16384 - s
        e = (e >> 14) * r + (v >> 14) * s + ((e & 16383) * r + (v & 16383) * s >> 14)
        noise[i] = e
        s = 1392 - s
        a = v - e >> 10 if v > e else 0
        b = x * 819 >> 14
        if a < b:
            a = b
        if e > 2:
            v = e
            n = 0
            while v > 255:
                v >>= 8
                n += 8
            while v:
                v >>= 1
                n += 1
            f = (e << 11 - n if n < 11 else e >> n - 11) & 1023
            n = 4 * n - 6
            v = (gains[n + 2] * f >> 5) + (gains[n + 1] << 5)
            v = (v * f + 16384 >> 15) + gains[n]
        else:
            v = gains[e]
        x = (a >> 6) * v + ((a & 63) * v >> 6)
        x = x * x >> 20 if x < 8192 else (x >> 6) - 64
        x <<= 3
        if x > 1:
            v = x
            n = 0 - 1
            while v > 255:
                v >>= 8
                n += 8
            while v:
                v >>= 1
                n += 1
            f = x - (1 << n)
            f = f << 16 - n if n < 16 else f >> n - 16
            v = f >> 9
            a = logs[v]
            v = (n << 16) + f + a + ((logs[v + 1] - a) * (f & 511) >> 16)
            v = 45426 * (v >> 8) + (45426 * (v & 255) + 32768 >> 8) >> 8
            x = (v << 6) + 32768 >> 16
        else:
            x = 0
        signal[i] = x
        i += 1
