"""An input or output of a saved plan."""

from ..run import storage

MAX_BYTES = 1 << 31  # of a buffer


class Port:
    """An input or output: name, dtype, shape, number of its buffer."""

    def __init__(self, name, dtype, shape, buffer):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.buffer = buffer
        self.length = None  # of the axis that the elements index, if they are indices
        self.count = 1
        for d in shape:
            self.count *= d

    @property
    def given(self):
        """Bytes of an input on the GPU: narrow elements stay packed, four to a word."""
        return storage.nbytes(storage.packed(self.dtype), self.count)

    def __repr__(self):
        return "{}: {} {}".format(self.name, self.dtype, self.shape)


def called(data):
    """How a message names a value that is not an input."""
    name = type(data).__name__
    return "a JavaScript value; pass what its .to_py() gives" if name == "JsProxy" else name
