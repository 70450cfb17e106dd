"""Integer kernels of the log-mel front end, in machine code; bytecode.py makes the same for every port.

Arrays hold 32-bit integers, which machine code of 64-bit processors would load without their sign: they take bytecode.
No product or sum reaches 2**30.
"""

# ruff: noqa: F821
# mypy: ignore-errors

import micropython


@micropython.viper
def windowed(samples: ptr16, window: ptr16, i: int, at: int, order: ptr16, around: int, re: ptr32, im: ptr32) -> int:
    """Write half the samples of a ring buffer of around + 1, from `at` on, times the window (14 bits): those at even
    places to re, the others to im, in the order that the transform takes. i: 0, an argument since those are faster
    than other variables.

    The results are doubled until the largest has 14 bits, or halved once. Returns the number of doublings.
    """
    top = 0
    sign = 0x8000
    mask = around >> 1
    while i <= mask:
        j = order[i >> 1]
        v = ((samples[at] ^ sign) - sign) * window[i] >> 14
        at = at + 1 & around
        re[j] = v
        top |= v ^ v >> 31
        i += 1
        v = ((samples[at] ^ sign) - sign) * window[i] >> 14
        at = at + 1 & around
        im[j] = v
        top |= v ^ v >> 31
        i += 1
    half = (mask >> 1) + 1
    doubled = 0
    while top and top < 8192:
        top <<= 1
        doubled += 1
    i = 0
    if top > 16383:
        doubled = 0 - 1
        while i < half:
            re[i] = re[i] >> 1
            im[i] = im[i] >> 1
            i += 1
    elif doubled:
        while i < half:
            re[i] = re[i] << doubled
            im[i] = im[i] << doubled
            i += 1
    return doubled


@micropython.viper
def fft(re: ptr32, im: ptr32, j: int, wave: ptr32, size: int, is_odd: int):
    """The Fourier transform of complex numbers in place, divided by their number, `size`: at least 4, in the order of
    their reversed bits. wave: `size` cosines, then sines, of half a turn; is_odd: whether size is not a power of four.
    j: as i above.
    """
    i = 0
    if is_odd:
        half = 2
        while i < size:
            j = i + 1
            a = re[i]
            b = im[i]
            c = re[j]
            d = im[j]
            re[i] = a + c >> 1
            im[i] = b + d >> 1
            re[j] = a - c >> 1
            im[j] = b - d >> 1
            i += 2
    else:  # two stages, whose factors are 1 and -1j
        half = 4
        while i < size:
            j = i + 1
            a = re[i] + re[j]
            b = re[i] - re[j]
            c = im[i] + im[j]
            d = im[i] - im[j]
            j += 1
            e = re[j] + re[j + 1]
            f = re[j] - re[j + 1]
            g = im[j] + im[j + 1]
            h = im[j] - im[j + 1]
            re[i] = a + e >> 2
            im[i] = c + g >> 2
            re[j] = a - e >> 2
            im[j] = c - g >> 2
            j -= 1
            re[j] = b + h >> 2
            im[j] = d - f >> 2
            j += 2
            re[j] = b - h >> 2
            im[j] = d + f >> 2
            i += 4
    while half < size:  # two stages at a time: the transforms of 4 * half numbers from those of half as many each
        step = (size >> 1) // half
        k = 0
        while k < half:
            j = k * step
            c = wave[j]
            s = wave[j + size]
            j += j
            g = wave[j]
            h = wave[j + size]
            j += k * step
            if j < size:
                m = wave[j]
                n = wave[j + size]
            else:
                m = 0 - wave[j - size]
                n = 0 - wave[j]
            i = k
            while i < size:
                j = i + half
                a = re[j]
                b = im[j]
                p = a * g + b * h + 8192 >> 14
                q = b * g - a * h + 8192 >> 14
                j += half
                a = re[j]
                b = im[j]
                t = a * c + b * s + 8192 >> 14
                u = b * c - a * s + 8192 >> 14
                j += half
                a = re[j]
                b = im[j]
                v = a * m + b * n + 8192 >> 14
                w = b * m - a * n + 8192 >> 14
                a = t - v
                b = u - w
                t += v
                u += w
                v = re[i] + p
                w = im[i] + q
                p = v - p - p
                q = w - q - q
                re[i] = v + t >> 2
                im[i] = w + u >> 2
                re[j] = p - b >> 2
                im[j] = q + a >> 2
                j -= half
                re[j] = v - t >> 2
                im[j] = w - u >> 2
                j -= half
                re[j] = p + b >> 2
                im[j] = q - a >> 2
                i += half << 2
            k += 1
        half <<= 2


@micropython.viper
def power(re: ptr32, im: ptr32, i: int, wave: ptr32, size: int):
    """Write to re the power in each of the first `size` bins of the transform of 2 * size real numbers, divided by
    their number. re, im: the transform of those at even places plus 1j times the others; i, wave: as
    above."""
    a = re[0] + im[0] >> 1
    re[0] = a * a
    i += 1
    j = size - 1
    while i <= j:
        a = re[i]
        b = im[i]
        c = re[j]
        d = im[j]
        u = a - c
        v = b + d
        p = wave[i]
        q = wave[i + size]
        s = v * p - u * q + 8192 >> 14
        p = u * p + v * q + 8192 >> 14
        a = a + c
        b = b - d
        c = a + s + 2 >> 2
        d = b - p + 2 >> 2
        re[i] = c * c + d * d
        c = a - s + 2 >> 2
        d = b + p + 2 >> 2
        re[j] = c * c + d * d
        i += 1
        j -= 1


@micropython.viper
def bands(power: ptr32, weights: ptr8, i: int, edges: ptr16, logs: ptr8, count: int, doubled: int, out: ptr32):
    """The base-2 logarithm of each band's power, in units of 1/256; 0 if the power is below 1.

    edges: the first bin and the number of bins of each band; weights: 0…64, band after band; logs: 256 mantissas. i: as
    above.
    """
    w = 0
    k = 0
    while k < count:
        i = edges[2 * k]
        n = i + edges[2 * k + 1]
        total = 0
        while i < n:
            a = power[i]
            b = weights[w]
            total += (a >> 6) * b + ((a & 63) * b >> 6)
            i += 1
            w += 1
        total += 1
        top = 0
        v = total
        while v > 511:
            v >>= 1
            top += 1
        while v < 256:
            v <<= 1
            top -= 1
        v = (top + 8 << 8) + logs[v - 256] - (doubled << 9)
        out[k] = 0 if v < 0 else v
        k += 1
