"""Turns Values of the kernel IR into Wasm code inside nested loops, for one position or for four neighboring ones.

Every Value is computed once, in the outermost possible loop. The four positions are those of one counter, the *lane*
counter, which then advances by four. Where vectors have more lanes, as many positions take the place of four. A load
whose index grows by one with it becomes a vector load; values independent of it are computed once; operations without a
vector form are computed lane by lane.
"""
