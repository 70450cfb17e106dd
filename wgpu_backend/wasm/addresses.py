"""Addresses in the memory of every module. JavaScript knows them too (web/package/threads.mjs and wasm.mjs)."""

# Words of the threads' barrier, in lines of 64 bytes. READY: a word for each thread, 1 when its instance is made.
# STOPPED: 1 if a thread failed, so that no other waits; 2 if a thread never arrived.
ARRIVED, WAITING, TURN, STOPPED, READY = 0, 4, 64, 128, 192

SIZES = 256  # the open sizes that kernels read, a word each; buffers lie behind them
