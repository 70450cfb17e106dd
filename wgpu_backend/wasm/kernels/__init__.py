"""Turns items of the fused graph into WebAssembly: loops, the code of values within them, and a kernel for each
kind."""
