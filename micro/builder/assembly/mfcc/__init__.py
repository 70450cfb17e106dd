"""The kernels of `emberlet.micro.mfcc` for ARMv6-M, which every Cortex-M runs: what mfcc_kernels_viper.py computes, bit
for bit.

Each is a function of one argument, the address of a block of words (block.py), and returns r0. tools/generated writes
them to micro/mfcc_kernels_thumb.py as `@micropython.asm_thumb` functions, whose entry and exit save r4 to r7 and lr.
"""

from __future__ import annotations

from .bands import cosines, logarithms, magnitudes
from .transform import parted, transformed
from .window import windowed

KERNELS = {make.__name__: make for make in (windowed, transformed, parted, magnitudes, logarithms, cosines)}
"""By the names of the functions that they become."""
