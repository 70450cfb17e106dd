"""Records: a module's values by name, apart from the module, and saving them (loading.py loads them).

A burnpack is a record in a file. The stored precision is independent of the precision of computation.
"""

from .. import dtypes
from ..errors import DTypeError, EmberletError
from ..param import Param
from . import leaves

# precision -> dtype of floats, dtype of signed integers of 16 bits and more; narrower and unsigned ones stay
PRECISIONS = {
    "double": (dtypes.float64, dtypes.int64),
    "full": (dtypes.float32, dtypes.int32),
    "half": (dtypes.float16, dtypes.int16),
    "bfloat16": (dtypes.bfloat16, dtypes.int16),
}


class Record:
    """name -> Tensor, with the parameters' identities.

    tensors: dict of name -> Tensor; param_ids: dict of name -> ParamId. Reads like a dict of the tensors.
    """

    def __init__(self, tensors, param_ids=None):
        self.tensors = tensors
        self.param_ids = param_ids or {}

    def __getitem__(self, name):
        return self.tensors[name]

    def __contains__(self, name):
        return name in self.tensors

    def __len__(self):
        return len(self.tensors)

    def __iter__(self):
        return iter(self.tensors)

    def keys(self):
        return self.tensors.keys()

    def items(self):
        return self.tensors.items()

    def __repr__(self):
        return "Record({})".format(", ".join(self.tensors))

    def with_precision(self, precision):
        """The same values in another of PRECISIONS; floats that it does not hold stay as they are, with a warning.
        Raises DTypeError if an integer is out of range."""
        done = {}
        out = {}
        found = self._dtypes(precision)
        for name in self.tensors:
            tensor = self.tensors[name]
            if id(tensor) not in done:
                done[id(tensor)] = converted(name, tensor, found[name])
            out[name] = done[id(tensor)]
        return Record(out, self.param_ids)

    def _dtypes(self, precision):
        """name -> the dtype in which it is stored."""
        if precision is None:
            return {name: self.tensors[name].dtype for name in self.tensors}
        from .narrowing import choose

        return choose(
            {name: (t.dtype, lambda t=t: t) for name, t in self.tensors.items()},
            lambda dtype: stored_dtype(dtype, precision),
        )

    def save(self, path, precision=None, metadata=None):
        """Write a burnpack to `path`; returns its size in bytes. One tensor is converted at a time. The file is written
        atomically; on a desktop a name without extension gets `.bpk`."""
        from ..burnpack.writing import Source
        from .layouts import KEY

        metadata = dict(metadata or {})
        metadata.setdefault(KEY, "burn")
        done = {}
        sources = {}
        ids = {}
        found = self._dtypes(precision)
        for name in self.tensors:
            tensor = self.tensors[name]
            if id(tensor) not in done:
                dtype = found[name]
                done[id(tensor)] = Source(dtype, tensor.shape, _reader(name, tensor, dtype))
            sources[name] = done[id(tensor)]
            if name in self.param_ids:
                ids[name] = self.param_ids[name].value
        try:
            from ..host.burnpack_writer import save
        except ImportError:  # a device
            from .. import atomic_write
            from ..burnpack import writing

            layout = writing.plan(sources, metadata, None, ids)
            return atomic_write.save(path, lambda file: writing.write(file, *layout))
        return save(path, sources, metadata, param_ids=ids)


def stored_dtype(dtype, precision):
    """The dtype in which values of `dtype` are stored at `precision` (None: as they are)."""
    if precision is None:
        return dtype
    if precision not in PRECISIONS:
        raise DTypeError("unknown precision {!r}; known are {}".format(precision, ", ".join(sorted(PRECISIONS))))
    floats, integers = PRECISIONS[precision]
    if dtype.is_float and dtype.bits >= 16:
        return floats
    if dtype.kind == "int" and dtype.bits >= 16:
        return integers
    return dtype


def converted(name, tensor, dtype):
    if tensor.dtype is dtype:
        return tensor
    out = tensor.astype(dtype)
    if dtype.is_integer and dtype.bits < tensor.dtype.bits and not bool((out.astype(tensor.dtype) == tensor).all()):
        raise DTypeError("{!r} holds integers that {} cannot; save it in another precision".format(name, dtype))
    return out


def _reader(name, tensor, dtype):
    def read():
        stored = converted(name, tensor, dtype)
        return stored.backend.to_bytes(stored)

    return read


def record_of(module):
    """The Record of a module. Raises EmberletError if two parameters have one name."""
    tensors = {}
    ids = {}
    done = {}
    for name, _, _, param in leaves(module, Param):
        if name in tensors:
            raise EmberletError("two parameters of {} are called {!r}".format(type(module).__name__, name))
        if id(param) not in done:
            done[id(param)] = param.saved()
        tensors[name] = done[id(param)]
        ids[name] = param.id
    return Record(tensors, ids)
