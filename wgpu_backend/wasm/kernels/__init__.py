"""From an item of the fused graph to WebAssembly: loops, the code of values within them, and a kernel of each kind."""
