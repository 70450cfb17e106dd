"""Results that are inputs of the next run, such as the state of an LSTM, stay in the GPU's memory."""

from emberlet.errors import BackendError

from .runtime import Results


class Call:
    """What a Program asks while it submits: here, of a caller whose values lie in the program's own buffers."""

    def lend_buffers(self, program):
        """Lend buffers to the program: none."""

    def restore(self, encoder):
        """Record the copies of values to the program's inputs: none."""

    def submitted(self):
        """Called once the work is submitted."""


class Carried(Call):
    """The states of one caller of a SavedPlan, in their own buffers, which other callers' runs do not change.

    pairs: list of (position of an input, position of the result that is its value in the next run). All states start as
    zeros. Raises BackendError if an input and its result differ in dtype or shape.
    """

    def __init__(self, saved, pairs):
        self._program = saved.program
        self._device = self._program.device
        self.inputs = {}  # position of an input -> its Allocation
        self._results = {}  # position of an input -> number of the buffer of its result
        fed = [result for _, result in pairs]
        for given, result in pairs:
            port = saved.inputs[given]
            source = saved.outputs[result]
            if port.dtype is not source.dtype or port.shape != source.shape or port.given != source.count * 4:
                raise BackendError(
                    "{} cannot carry {}: their dtypes and shapes must be the same, and of 16 bits or more".format(
                        port, source
                    )
                )
        for given, result in pairs:
            self.inputs[given] = self._device.allocate(saved.inputs[given].given, saved.plan.page_bytes)
            self._results[given] = saved.outputs[result].buffer
        self.wanted = [i for i in range(len(saved.outputs)) if i not in fed]
        read = self.wanted + list(range(len(saved.outputs), len(self._program.results)))
        self.out = Results(self._program, [self._program.results[i] for i in read])
        self.reset()

    def reset(self):
        """Set all states to zero."""
        self._device.clear([self.inputs[i] for i in self.inputs])

    def restore(self, encoder):
        """Record the copies of the states to the program's inputs."""
        for i in self.inputs:
            copy_pages(encoder, self.inputs[i], self._program.allocations[self._program.inputs[i][0]])

    def save(self, encoder):
        """Record the copies of the program's results to the states."""
        for i in self.inputs:
            copy_pages(encoder, self._program.allocations[self._results[i]], self.inputs[i])

    def free(self):
        """Free their memory."""
        for i in self.inputs:
            self.inputs[i].free()
        self.inputs = {}
        self.out.free()


def copy_pages(encoder, source, target):
    """Record the copy of one Allocation to another."""
    sources = source.pages
    targets = target.pages
    for i in range(len(targets)):
        size = min(sources[i].nbytes, targets[i].nbytes)
        encoder.copy_buffer_to_buffer(sources[i].gpu, 0, targets[i].gpu, 0, size)
