"""A Plan: the work for the device, as plain data."""

from emberlet.sizes.polynomial import at

KEY = "emberlet.plan"  # the metadata entry that holds a saved plan
KEY_STEP = "emberlet.step"  # that of a saved training step, beside the plan (step_writer.py)
VERSION = 2  # of the format
VERSION_OPEN = 4  # of plans with open sizes
VERSION_STORED = 3  # of plans with weights stored in fewer bits, which readers of version 2 cannot expand


class Buffer:
    """kind: "external" (given by the caller: inputs and weights), "output" or "temporary"; nbytes: its size, a
    Polynomial where it depends on open sizes (counts.py)."""

    def __init__(self, kind, nbytes):
        self.kind = kind
        self.nbytes = max(4, nbytes) if type(nbytes) is int else nbytes


class Step:
    """One dispatch: number of the kernel, numbers of the buffers bound (inputs, then the output), workgroups; pages:
    how many pages of each buffer are bound (render/arrays.py), one of each unless given."""

    def __init__(self, kernel, buffers, groups, pages=None):
        self.kernel = kernel
        self.buffers = buffers
        self.pages = [1] * len(buffers) if pages is None else pages
        self.flops = 0  # estimated arithmetic operations, and bytes read and written (profile.py)
        self.nbytes = 0
        self.groups = groups


class Plan:
    """kernels: list of (name, WGSL source), each distinct source once; buffers: list of Buffer; steps: list of Step.

    externals: buffer numbers the caller provides; outputs: per root the number of its buffer (an external's, if the
    root merely reshapes that). page_bytes: the page size of a saved plan's tensors, None for the device's own. counts:
    the Counts of a plan with open sizes, else None. computed: the ComputedIndexes of a saved plan.
    """

    def __init__(self):
        self.kernels = []
        self.buffers = []
        self.steps = []
        self.externals = []
        self.outputs = []
        self.page_bytes = None
        self.counts = None
        self.computed = []

    def text_bytes(self):
        """An estimate of the plan's own memory, in bytes."""
        total = 1024 + 256 * (len(self.steps) + len(self.buffers))
        for _, source in self.kernels:
            total += len(source)
        return total

    def summary(self):
        """Dispatches, distinct kernels, bytes of temporaries at the largest sizes."""
        largest = self.counts.largest() if self.counts else None
        temporary = 0
        for b in self.buffers:
            if b.kind == "temporary":
                temporary += at(b.nbytes, largest)
        return {"dispatches": len(self.steps), "kernels": len(self.kernels), "temporary_bytes": temporary}
