"""Kernels in inline assembly: an assembler for each instruction set, the kernels, and which layer gets which."""
