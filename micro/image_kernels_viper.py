"""Kernels that shrink pictures, in machine code; bytecode.py makes the same for every port."""

# ruff: noqa: F821
# mypy: ignore-errors

import micropython


@micropython.viper
def shrink_bytes(src: ptr8, dst: ptr8, sizes: ptr16, levels: ptr8):
    """Average boxes of bytes. sizes: source width, height, channels, destination width, height."""
    w = sizes[0]
    h = sizes[1]
    c = sizes[2]
    cols = sizes[3]
    rows = sizes[4]
    to = 0
    y = 0
    while y < rows:
        top = y * h // rows
        bottom = (y + 1) * h // rows
        x = 0
        while x < cols:
            left = x * w // cols
            right = (x + 1) * w // cols
            count = (bottom - top) * (right - left)
            k = 0
            while k < c:
                total = count >> 1
                i = top
                while i < bottom:
                    p = (i * w + left) * c + k
                    j = left
                    while j < right:
                        total += src[p]
                        p += c
                        j += 1
                    i += 1
                dst[to] = levels[total // count]
                to += 1
                k += 1
            x += 1
        y += 1


@micropython.viper
def shrink_rgb565(src: ptr8, dst: ptr8, sizes: ptr16, levels: ptr8):
    """Average boxes of 16-bit pixels. sizes: source width, height, index of a pixel's high byte (0 or 1), destination
    width, height, channels (1: gray, 3: red, green, blue)."""
    w = sizes[0]
    h = sizes[1]
    high = sizes[2]
    cols = sizes[3]
    rows = sizes[4]
    c = sizes[5]
    to = 0
    y = 0
    while y < rows:
        top = y * h // rows
        bottom = (y + 1) * h // rows
        x = 0
        while x < cols:
            left = x * w // cols
            right = (x + 1) * w // cols
            count = (bottom - top) * (right - left)
            red = 0
            green = 0
            blue = 0
            i = top
            while i < bottom:
                p = (i * w + left) * 2
                j = left
                while j < right:
                    a = src[p + high]
                    b = src[p + 1 - high]
                    red += a >> 3
                    green += (a & 7) << 3 | b >> 5
                    blue += b & 31
                    p += 2
                    j += 1
                i += 1
            red = (red * 255 + count * 15) // (count * 31)
            green = (green * 255 + count * 31) // (count * 63)
            blue = (blue * 255 + count * 15) // (count * 31)
            if c == 1:
                dst[to] = levels[red * 77 + green * 150 + blue * 29 + 128 >> 8]
                to += 1
            else:
                dst[to] = levels[red]
                dst[to + 1] = levels[green]
                dst[to + 2] = levels[blue]
                to += 3
            x += 1
        y += 1
