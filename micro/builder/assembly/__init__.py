"""Kernels in inline assembly: an assembler for each instruction set, the kernels, and the mapping from layers to
kernels."""
