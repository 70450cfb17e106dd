"""Integer kernels of MFCC, in machine code. mfcc_kernels_bytecode.py is the same for every port.

They come after those of audio_kernels_viper.py. No product or sum reaches 2**30.
"""

# ruff: noqa: F821
# mypy: ignore-errors

import micropython


@micropython.viper
def windowed(samples: ptr16, window: ptr16, i: int, at: int, order: ptr16, around: int, re: ptr32, im: ptr32) -> int:
    """As in audio_kernels_viper.py, but samples are doubled before the window, which keeps the bits of quiet ones. i:
    how many of them the window does not hide."""
    top = 0
    sign = 0x8000
    mask = around >> 1
    end = at + i
    i = at
    while i < end:
        j = samples[i & around]
        top |= j ^ j << 1  # the places where a bit differs from the one below it
        i += 1
    top &= 0xFFFE
    shift = 14
    while top < 0x4000 and shift > 1:
        top <<= 1
        shift -= 1
    if top > 0x7FFF:
        shift = 15
    i = 0
    while i <= mask:
        j = order[i >> 1]
        re[j] = ((samples[at] ^ sign) - sign) * window[i] >> shift
        at = at + 1 & around
        i += 1
        im[j] = ((samples[at] ^ sign) - sign) * window[i] >> shift
        at = at + 1 & around
        i += 1
    return 14 - shift


@micropython.viper
def roots(power: ptr32, i: int, end: int):
    """Replace the power in the bins from i to end by its square root, in steps of 1/16."""
    while i < end:
        v = power[i]
        up = 0
        if v < 0x400000:
            v <<= 8
        else:
            up = 4
        bit = 0x10000000
        while bit > v:
            bit >>= 2
        root = 0
        while bit:
            if v >= root + bit:
                v -= root + bit
                root = (root >> 1) + bit
            else:
                root >>= 1
            bit >>= 2
        power[i] = root << up
        i += 1


@micropython.viper
def logarithms(bins: ptr32, shares: ptr16, i: int, spans: ptr16, count: int, logs: ptr8, unit: int, out: ptr32):
    """The base-2 logarithm of each band's sum, in units of 1/256, plus `unit`; that of 1e-12 in silence.

    spans: how many bins are in each band's upper half, from that before the first band's on; shares: of each of these
    bins in it, of 256; logs: 256 mantissas. i: as above. The roots of loud, wide bands are shifted by `down`.
    """
    s = 0
    k = 0
    silent = 1
    above = 0
    down = 0
    here = 0
    while k <= count:
        n = i + spans[k]
        total = here
        here = 0
        j = i
        while j < n:
            here += bins[j]
            j += 1
        total += here
        up = 0
        while total >= 0x200000:
            total >>= 1
            up += 1
        if up > down:
            below = above >> up - down
        else:
            below = above << down - up
        down = up
        above = 0
        while i < n:
            v = bins[i] >> down
            below += v * shares[s]
            above += v * (256 - shares[s])
            i += 1
            s += 1
        if k:
            if below:
                silent = 0
            else:
                below = 2048 >> down  # half a step of a root: what cannot be told from nothing beside other bands
            top = down
            while below > 511:
                below >>= 1
                top += 1
            while below < 256:
                below <<= 1
                top -= 1
            out[k - 1] = (top + 8 << 8) + logs[below - 256] + unit
        k += 1
    k = 0
    while silent and k < count:
        out[k] = 0 - 10205
        k += 1


@micropython.viper
def cosines(logs: ptr32, table: ptr16, i: int, count: int, coefficients: int, out: ptr32):
    """The cosine transform of logarithms. table: `count` factors for each coefficient. i: 0, which is faster as an
    argument."""
    sign = 0x8000
    at = 0
    k = 0
    while k < coefficients:
        total = 4096
        i = 0
        while i < count:
            total += logs[i] * ((table[at] ^ sign) - sign)
            i += 1
            at += 1
        out[k] = total >> 13
        k += 1
