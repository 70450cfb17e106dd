"""GPU memory that is lent to tensors, in sizes that a pool can give out again."""

import sys

FINALIZERS = sys.implementation.name != "micropython"  # MicroPython never calls __del__


class Allocation:
    """GPU memory that returns to its device's pool when nothing refers to it any more.

    gpu: the buffer; pages: [self], or an Allocation per page if it exceeds the limit of a binding (then gpu is None).
    """

    __slots__ = ("_failures", "_parts", "device", "gpu", "nbytes")

    def __init__(self, device, gpu, nbytes, parts=None):
        # No calls from here on. Interrupts only occur at calls, so either all of this is done or none of it.
        self.gpu = gpu
        self.nbytes = nbytes
        self._parts = parts
        self._failures = device.failures
        if gpu is not None:
            device.live_bytes += nbytes
            if FINALIZERS:
                # The garbage collector may finalize an Allocation together with its buffer unless another reference
                # holds the buffer; a finalized buffer must not get into the pool.
                device.lent[gpu] = nbytes
        self.device = device

    @property
    def pages(self):
        """The Allocations that hold the tensor, in order: itself or its parts."""
        return self._parts or [self]

    def free(self):
        """Return the memory to the pool now."""
        gpu = self.gpu
        self.gpu = None
        if gpu is not None:
            self.device.recycle(gpu, self.nbytes, self._failures == self.device.failures)
        for part in self._parts or ():
            part.free()

    def __del__(self):
        # Do nothing if __init__ was interrupted, or if the interpreter is tearing down this module at exit.
        if hasattr(self, "device") and size_class is not None:
            self.free()


def size_class(nbytes):
    """Buffers are pooled by size: the next of 4 steps per power of two, at least 256 bytes."""
    size = 256
    while size * 2 <= nbytes:
        size *= 2
    step = size // 4
    return max(size, (nbytes + step - 1) // step * step)


def page_size(limits):
    """The largest binding in bytes, a multiple of 256."""
    return min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"]) // 256 * 256
