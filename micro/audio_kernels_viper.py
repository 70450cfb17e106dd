"""Integer kernels of the log-mel front end, in machine code. audio_kernels_bytecode.py is the same for every port.

Arrays hold 32-bit integers. On 64-bit processors machine code loads them without their sign; shifting left and right by
E bits restores it. No product or sum reaches 2**30.
"""

# ruff: noqa: F821
# mypy: ignore-errors

import sys

import micropython

E = 32 if sys.maxsize > 1 << 32 else 0


@micropython.viper
def windowed(samples: ptr16, at: int, ring: int, window: ptr16, size: int, re: ptr32, im: ptr32) -> int:
    """Write `size` samples of a ring buffer of length `ring`, starting at `at`, times the window (14 bits) to re; zeros
    to im.

    The results are doubled until the largest has 14 bits. Returns the number of doublings.
    """
    top = 0
    i = 0
    while i < size:
        v = samples[at]
        at += 1
        if at == ring:
            at = 0
        if v & 0x8000:
            v -= 0x10000
        v = v * window[i] >> 14
        re[i] = v
        im[i] = 0
        if v < 0:
            v = 0 - v
        if v > top:
            top = v
        i += 1
    doubled = 0
    while top and top < 8192:
        top <<= 1
        doubled += 1
    e = int(E)
    i = 0
    while i < size:
        v = re[i]
        v = v << e >> e
        re[i] = v << doubled if top <= 16384 else v >> 1
        i += 1
    return doubled if top <= 16384 else -1


@micropython.viper
def fft(re: ptr32, im: ptr32, wave: ptr32, bits: int):
    """The Fourier transform in place, divided by its size, 1 << bits. wave: half as many cosines, then sines."""
    e = int(E)
    n = 1 << bits
    j = 0
    i = 1
    while i < n:
        m = n >> 1
        while j & m:
            j ^= m
            m >>= 1
        j |= m
        if i < j:
            v = re[i]
            re[i] = re[j]
            re[j] = v
            v = im[i]
            im[i] = im[j]
            im[j] = v
        i += 1
    half = 1
    step = n >> 1
    while half < n:
        k = 0
        while k < half:
            c = wave[k * step]
            c = c << e >> e
            s = wave[k * step + (n >> 1)]
            s = s << e >> e
            i = k
            while i < n:
                j = i + half
                a = re[j]
                a = a << e >> e
                b = im[j]
                b = b << e >> e
                p = a * c + b * s + 8192 >> 14
                q = b * c - a * s + 8192 >> 14
                a = re[i]
                a = a << e >> e
                b = im[i]
                b = b << e >> e
                re[i] = a + p >> 1
                im[i] = b + q >> 1
                re[j] = a - p >> 1
                im[j] = b - q >> 1
                i += half << 1
            k += 1
        half <<= 1
        step >>= 1


@micropython.viper
def bands(re: ptr32, im: ptr32, edges: ptr16, weights: ptr8, logs: ptr8, count: int, doubled: int, out: ptr32):
    """The base-2 logarithm of each band's power, in units of 1/256; 0 if the power is below 1.

    edges: the first bin and the number of bins of each band; weights: 0…64, band after band; logs: 256 mantissas.
    """
    e = int(E)
    w = 0
    k = 0
    while k < count:
        i = edges[2 * k]
        n = edges[2 * k + 1]
        total = 0
        while n:
            a = re[i]
            a = a << e >> e
            b = im[i]
            b = b << e >> e
            a = a * a + b * b
            total += ((a >> 12) * weights[w] << 6) + ((a & 4095) * weights[w] >> 6)
            i += 1
            w += 1
            n -= 1
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
