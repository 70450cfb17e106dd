"""What goes into a saved model and what comes out: bytes of words, checked and converted."""

from emberlet import dtypes
from emberlet.errors import FormatError, IndexingError

from ..run import storage


class Ported:
    """A model with a `program` that runs on words. origin: the file's name; inputs, outputs: lists of Port, and of
    OpenPort where the plan leaves sizes open."""

    _sizes = None

    def _bad(self, message):
        raise FormatError("{}: as a plan it {}".format(self.origin, message))

    counts = None  # the Counts of a plan that leaves sizes open

    def sizes(self, inputs):
        """The numbers of the sizes that the plan leaves open, by these inputs; None for a plan that leaves none open.
        Raises FormatError where the inputs do not fit."""
        if self.counts is None:
            return None
        from .open_ports import sizes_of

        self._check_number(inputs)
        try:
            self._sizes = sizes_of(self.counts, self.inputs, inputs, self._sizes)
        except ValueError as error:
            self._bad(error)
        return self._sizes

    def ports(self, sizes, ports):
        """The inputs or outputs of a call with these sizes."""
        if sizes is None:
            return ports
        values = self.counts.values(sizes)
        return [p.closed(values) if hasattr(p, "closed") else p for p in ports]

    def _check_number(self, inputs):
        if len(inputs) != len(self.inputs):
            self._bad("takes {} inputs, {} were given".format(len(self.inputs), len(inputs)))

    def words(self, inputs, sizes=None):
        """The inputs, as `run` takes them, as bytes of what the GPU holds. Raises FormatError, IndexingError."""
        self._check_number(inputs)
        ports = self.ports(sizes, self.inputs)
        out = []
        for i in range(len(inputs)):
            port = ports[i]
            data = inputs[i]
            if data is None:
                out.append(None)
                continue
            self._check_type(data, port)
            if hasattr(data, "backend"):
                data = data.backend.to_bytes(data)
            elif hasattr(data, "tobytes") and not isinstance(data, memoryview):
                data = data.tobytes()
            elif type(data).__name__ == "array":  # MicroPython's have no tobytes
                data = bytes(data)
            try:
                nbytes = len(memoryview(data))
            except TypeError:
                self._bad("takes an array or bytes for {}, and was given a {}".format(port, type(data).__name__))
            if nbytes != port.dtype.nbytes(port.count):
                self._bad("takes {} bytes for {}".format(port.dtype.nbytes(port.count), port))
            words = storage.widen(data, port.dtype, port.count, storage.packed(port.dtype))
            if words is None:
                self._bad("takes no integers beyond 32 bits for {}".format(port))
            if port.length is not None and port.count:
                self._check_indices(words, port)
            out.append(words)
        return out

    def _check_indices(self, words, port):
        word = storage.packed(port.dtype) or storage.word(port.dtype)
        low, high = storage.extremes(words, word, port.count)
        if low < -port.length or high >= port.length:
            index = low if low < -port.length else high
            raise IndexingError(
                "{}: index {} of {} is outside an axis of length {}".format(self.origin, index, port, port.length)
            )

    def _check_type(self, data, port):
        """Refuse an array of the right length in another dtype or shape, whose bytes would be taken for the input's.
        Unsigned integers may be bits of anything, and one axis may hold any shape, row by row.
        """
        dtype = getattr(data, "dtype", None)
        name = getattr(dtype, "name", port.dtype.name)
        if name != port.dtype.name and not (name in dtypes.BY_NAME and dtypes.BY_NAME[name].kind == "uint"):
            self._bad("takes {}, and was given {} {}".format(port, name, tuple(data.shape)))
        if getattr(dtype, "isnative", True) is False:
            self._bad("takes {} in the machine's byte order; .astype('{}') converts it".format(port, name))
        shape = tuple(getattr(data, "shape", None) or port.shape)
        if shape != port.shape and len(shape) != 1:
            self._bad("takes {}, and was given {} {}".format(port, name, shape))

    def narrowed(self, data, ports):
        """What the GPU holds for these ports as TensorData."""
        from emberlet.data import TensorData

        out = []
        for i in range(len(data)):
            port = ports[i]
            out.append(TensorData(storage.narrow(data[i], port.dtype, port.count), port.shape, port.dtype))
        return out

    def run(self, *inputs):
        """TensorData of every output. inputs, in order: Tensors, or row-major bytes (or arrays) of their dtypes; None
        for one that is the same as in the call before, which then needs no upload."""
        sizes = self.sizes(inputs)
        return self.narrowed(self.program.run(self.words(inputs, sizes), sizes), self.ports(sizes, self.outputs))

    async def run_async(self, *inputs):
        """`run`, awaited: the only way under MicroPython. Calls may overlap, and run in order."""
        sizes = self.sizes(inputs)
        found = await self.program.run_async(self.words(inputs, sizes), sizes=sizes)
        return self.narrowed(found, self.ports(sizes, self.outputs))
