"""Addresses in the memory of every module. JavaScript knows them too (web/package/threads.mjs and wasm.mjs)."""

# Words that threads share, in lines of 64 bytes. TICKET, 8 bytes: the number of a run, and in the lower half that of
# the range which is taken next, 0 between runs. COUNT: threads of the run. DONE: 1 and the ranges that are done.
# WAITING: threads that sleep until it is more. STOPPED: 1 if a thread failed, so that no other waits; 2 if a thread was
# waited for in vain. READY: a word for each thread, 1 when its instance is made.
TICKET, COUNT, DONE, WAITING, STOPPED, READY = 0, 8, 64, 68, 128, 192

SIZES = 256  # the open sizes that kernels read, a word each; buffers lie behind them
