"""TensorData: elements that belong to no backend, as bytes with a shape and a dtype."""

from . import dtypes
from .errors import FormatError
from .shapes import size


class TensorData:
    """Row-major little-endian bytes (bytes, bytearray or memoryview), a shape and a dtype.

    The layout is that of Backend.from_bytes: bool takes a byte, elements below 8 bits are packed. Strings are kept as a
    list. Raises FormatError if the bytes do not fill the shape.
    """

    def __init__(self, data, shape, dtype):
        self.shape = tuple(shape)
        self.dtype = dtypes.dtype(dtype)
        self.bytes = data
        if self.dtype.kind == "string":
            if len(data) != size(self.shape):
                raise FormatError("shape {} holds {} strings, found {}".format(self.shape, size(self.shape), len(data)))
        elif len(data) != self.dtype.nbytes(size(self.shape)):
            raise FormatError(
                "{} of shape {} takes {} bytes, found {}".format(
                    self.dtype, self.shape, self.dtype.nbytes(size(self.shape)), len(data)
                )
            )

    @classmethod
    def from_list(cls, values, shape=None, dtype=None):
        """From nested lists, or a flat list and a shape; the dtype follows from the values unless given."""
        from .functional.arrays import asarray
        from .functional.movement.rearranging import reshape

        if dtype is not None and dtypes.dtype(dtype).kind == "string":
            return cls(list(values), (len(values),) if shape is None else shape, dtype)
        x = asarray(values, dtype=dtype, backend="python")
        if shape is not None:
            x = reshape(x, shape)
        return x.to_data()

    def to_tensor(self, backend=None):
        """A tensor on a backend, sharing these bytes if the backend can."""
        from .backend import get_backend

        backend = get_backend(backend)
        if self.dtype.kind == "string":
            return backend.from_list(self.bytes, self.dtype, self.shape)
        return backend.from_bytes(self.bytes, self.dtype, self.shape)

    def __array__(self, dtype=None, copy=None):
        """A NumPy array of the elements."""
        from .host.sharing.interop import array_of

        return array_of(self, dtype, copy)

    def to_vec(self):
        """The elements as a flat list of Python numbers, bools or str."""
        if self.dtype.kind == "string":
            return list(self.bytes)
        x = self.to_tensor("python")
        return x.backend.to_list(x)

    def to_list(self):
        """The elements as nested lists."""
        return self.to_tensor("python").tolist()

    def convert(self, dtype):
        """The same numbers in another dtype."""
        dtype = dtypes.dtype(dtype)
        return self if dtype is self.dtype else self.to_tensor("python").astype(dtype).to_data()

    def __len__(self):
        return size(self.shape)

    def __iter__(self):
        return iter(self.to_vec())

    def __eq__(self, other):
        return (
            isinstance(other, TensorData)
            and self.shape == other.shape
            and self.dtype is other.dtype
            and (self.bytes == other.bytes if self.dtype.kind == "string" else bytes(self.bytes) == bytes(other.bytes))
        )

    def __repr__(self):
        return "TensorData(shape={}, dtype={}, {} bytes)".format(self.shape, self.dtype, len(self.bytes))


if hasattr(memoryview, "cast"):  # not on MicroPython
    from .host.interface.elsewhere.params import attach_data

    attach_data(TensorData)
