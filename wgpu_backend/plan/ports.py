"""Inputs and outputs of a saved model: checked, and converted to and from words."""

from emberlet import dtypes
from emberlet.errors import FormatError, IndexingError

from ..run import storage
from .port import called


class OtherSizesError(FormatError):
    """The plan does not serve the sizes of a call: one made for them does."""


class Ported:
    """A model whose `program` runs on words. origin: the file's name; inputs, outputs: lists of Port, and of OpenPort
    if the plan has open sizes."""

    computed = ()  # ComputedIndex: results of the program after those for `outputs`
    _sizes = None

    def _bad(self, message, error=FormatError):
        raise error("{}: the model {}".format(self.origin, message))

    counts = None  # the Counts of a plan with open sizes

    def sizes(self, inputs):
        """The values of the plan's open sizes for these inputs; None if it has none. Raises FormatError if the inputs
        do not fit, OtherSizesError if the plan does not serve their sizes."""
        if self.counts is None:
            return None
        from .open_ports import OtherSizes, sizes_of

        self._check_number(inputs)
        try:
            self._sizes = sizes_of(self.counts, self.inputs, inputs, self._sizes)
        except OtherSizes as error:
            self._bad(error, OtherSizesError)
        except ValueError as error:
            self._bad(error)
        return self._sizes

    def ports(self, sizes, ports):
        """The inputs or outputs of a call with these sizes."""
        if sizes is None:
            return ports
        from .open_ports import closed

        values = self.counts.values(sizes)
        return [closed(p, values) for p in ports]

    def _check_number(self, inputs):
        if len(inputs) != len(self.inputs):
            self._bad("takes {} inputs, but got {}".format(len(self.inputs), len(inputs)))

    def words(self, inputs, sizes=None):
        """The inputs of `run` as bytes of the GPU's words. Raises FormatError, IndexingError."""
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
            elif type(data).__name__ == "array":  # MicroPython's array has no tobytes
                data = bytes(data)
            try:
                nbytes = len(memoryview(data))
            except TypeError:
                self._bad("takes an array or bytes for {}, but got {}".format(port, called(data)))
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
        """Refuse an array of the right size but another dtype or shape, whose bytes would be misread. Unsigned integers
        may stand for the bits of any dtype, and one axis for any shape, in row-major order.
        """
        dtype = getattr(data, "dtype", None)
        name = getattr(dtype, "name", port.dtype.name)
        if name != port.dtype.name and not (name in dtypes.BY_NAME and dtypes.BY_NAME[name].kind == "uint"):
            self._bad("takes {}, but got {} {}".format(port, name, tuple(data.shape)))
        if getattr(dtype, "isnative", True) is False:
            self._bad("takes {} in the machine's byte order; .astype('{}') converts it".format(port, name))
        shape = tuple(getattr(data, "shape", None) or port.shape)
        if shape != port.shape and len(shape) != 1:
            self._bad("takes {}, but got {} {}".format(port, name, shape))

    def narrowed(self, data, ports):
        """The words of these ports as TensorData."""
        from emberlet.tensor_data import TensorData

        out = []
        for i in range(len(data)):
            port = ports[i]
            out.append(TensorData(storage.narrow(data[i], port.dtype, port.count), port.shape, port.dtype))
        return out

    def finished(self, data, sizes, ports):
        """What `run` of the program gives as TensorData of these outputs. Raises IndexingError if the plan computed an
        index outside of its axis."""
        values = None if sizes is None else self.counts.values(sizes)
        for i in range(len(self.computed)):
            self.computed[i].check(data[len(ports) + i], values)
        return self.narrowed(data[: len(ports)], ports)

    def run(self, *inputs):
        """TensorData of every output. inputs, in order: Tensors, or row-major bytes (or arrays) of their dtypes; None
        for one that is unchanged since the previous call and needs no upload."""
        sizes = self.sizes(inputs)
        found = self.program.run(self.words(inputs, sizes), sizes)
        return self.finished(found, sizes, self.ports(sizes, self.outputs))

    async def run_async(self, *inputs):
        """The awaitable form of `run`, the only one under MicroPython. Calls may overlap; they run in order."""
        sizes = self.sizes(inputs)
        found = await self.program.run_async(self.words(inputs, sizes), sizes=sizes)
        return self.finished(found, sizes, self.ports(sizes, self.outputs))
