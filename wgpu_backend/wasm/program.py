"""A module that keeps its memory between calls: each call writes the inputs and reads the results."""

from emberlet.errors import BackendError

from ..device import lock


def program(layout, constants, inputs, results):
    """The Program of a Layout. constants: {number of a constant buffer: its bytes}; inputs and results: lists of
    (buffer number, nbytes)."""
    instance = started(layout, constants)
    inputs, results = [[(layout.addresses[n], nbytes) for n, nbytes in part] for part in (inputs, results)]
    return Program(instance, inputs, results, temporaries(layout))


def temporaries(layout):
    """(address, nbytes) of the memory that each run writes before it reads it."""
    buffers = layout.plan.buffers
    return [(layout.addresses[n], layout.rooms[n]) for n in range(len(buffers)) if buffers[n].kind != "external"]


def started(layout, constants):
    """An instance of a Layout whose memory holds the constants."""
    instance = layout.instance()
    for number in constants:
        if number in layout.held:
            continue
        instance.write(layout.addresses[number], constants[number])
    return instance


class Program:
    """An instance ready to run; like run/runtime.py's Program on a GPU, with the same methods.

    inputs, results, temporary: lists of (address, nbytes); instance: None after `release`. Calls from
    several threads run one after the other; what runs the instance without `run` holds `lock`.
    """

    def __init__(self, instance, inputs, results, temporary=()):
        self.inputs = inputs
        self.results = results
        self.temporary = temporary
        self.owner = None
        self.instance = instance
        self._given = [False] * len(inputs)
        self.lock = lock()

    def run(self, data, sizes=None):
        """The bytes of the results, given those of the inputs; None leaves an input unchanged. Raises BackendError if
        an input is None that was never given, and after `release`. sizes: the values of the plan's open sizes."""
        with self.lock:
            instance = self.usable()
            if sizes is not None:
                instance = self.fit(sizes)
            for i in range(len(self.inputs)):
                if data[i] is not None:
                    if sizes is not None and len(data[i]) > self.inputs[i][1]:
                        raise BackendError("an input does not fit its memory; the module is damaged")
                    instance.write(self.inputs[i][0], data[i])
                    self._given[i] = True
                elif not self._given[i]:
                    raise BackendError("input {} was left unchanged, but no earlier call passed it".format(i))
            instance.run()
            return [instance.read(at, nbytes) for at, nbytes in self.results]

    def usable(self):
        """The instance. Raises BackendError after `release`."""
        if self.instance is None:
            raise BackendError("this program was released; load or compile the model again")
        return self.instance

    async def run_async(self, data, sizes=None):
        """`run`, without waiting."""
        return self.run(data, sizes)

    def threads(self):
        """How many threads the next run has; 0 after `release`."""
        with self.lock:
            if self.instance is None:
                return 0
            return self.instance.threads() if hasattr(self.instance, "threads") else 1

    def release(self):
        """Free the memory; later calls raise BackendError."""
        with self.lock:
            if self.instance is not None:
                self.instance.release()
            self.instance = None

    def disown(self, owner):
        """Nothing to do: modules are not shared."""
