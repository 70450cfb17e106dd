"""Reading a burnpack (`.bpk`): Burn's file of named tensors. docs/burnpack.md describes the format byte by byte.

Opening one decodes its table of contents and checks every entry; the tensors stay in the given bytes, the mapped file
or flash, and are used in place. A file is never trusted: anything inconsistent raises FormatError before memory is
allocated for it.
"""

import sys

from .. import dtypes

MAGIC = 0x4255524E
VERSION = 1
HEADER = 10
ALIGNMENT = 256
MAX_METADATA = 100 << 20
MAX_TENSORS = 100000
MAX_TENSOR = (2 if sys.maxsize < 1 << 32 else 10) << 30
MAX_FILE = 500 << 30
MAX_RANK = 64
MAX_U64 = (1 << 64) - 1

# See special_types.py, checksums.py.
NARROW = "emberlet.dtype."
CHECKSUMS = "emberlet.crc32"


def aligned(n):
    """n rounded up to a multiple of 256."""
    return (n + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


class Entry:
    """One tensor of a burnpack, not read yet.

    dtype: that of `Burnpack.tensor` (float32 for a quantized one); shape: tuple of int; start, end: byte offsets in the
    file; param_id: int or None; stored: the dtype's name in the file.
    """

    __slots__ = ("dtype", "end", "param_id", "shape", "start", "stored")

    def __init__(self, dtype, shape, start, end, param_id, stored):
        self.dtype = dtype
        self.shape = shape
        self.start = start
        self.end = end
        self.param_id = param_id
        self.stored = stored

    @property
    def nbytes(self):
        """The tensor's size in the file, in bytes."""
        return self.end - self.start

    @property
    def is_quantized(self):
        """Whether the file stores it quantized; `Burnpack.tensor` dequantizes it."""
        return isinstance(self.stored, dict) and "QFloat" in self.stored

    def __repr__(self):
        return "Entry({}, {}, bytes {}..{})".format(self.dtype, self.shape, self.start, self.end)


class Burnpack:
    """An open burnpack.

    tensors: name -> Entry; metadata: text -> text; scalars: name -> int, float or bool; data: the bytes of the file.
    Raises FormatError, beginning with `origin`, where the bytes are not a burnpack.
    """

    def __init__(self, data, origin="burnpack"):  # noqa: C901
        if not hasattr(data, "read"):  # else the file itself, read slice by slice
            data = memoryview(data)
        self.data = data
        self.origin = origin
        size = len(data)
        if size < HEADER:
            self.bad("header", size, HEADER)
        if size > MAX_FILE:
            self.bad("limit", size, "bytes", MAX_FILE)
        magic = int.from_bytes(data[0:4], "little")
        if magic != MAGIC:
            self.bad("magic", magic, MAGIC)
        version = int.from_bytes(data[4:6], "little")
        if version != VERSION:
            self.bad("version", version, VERSION)
        length = int.from_bytes(data[6:10], "little")
        if length > MAX_METADATA:
            self.bad("limit", length, "bytes of metadata", MAX_METADATA)
        if HEADER + length > size:
            self.bad("truncated", "its metadata", HEADER + length, size)

        from . import cbor

        contents = cbor.decode(data[0 : HEADER + length], HEADER, origin)
        if not isinstance(contents, dict) or not isinstance(contents.get("tensors"), dict):
            self.bad("contents")
        tensors = contents["tensors"]
        if len(tensors) > MAX_TENSORS:
            self.bad("limit", len(tensors), "tensors", MAX_TENSORS)
        self.data_start = aligned(HEADER + length)
        for name in tensors:
            tensors[name] = self._entry(name, tensors[name])
        self.tensors = tensors
        self.metadata = {}
        self.checksums = None
        texts = self._map(contents, "metadata")
        for key in texts:
            if not isinstance(texts[key], str):
                self.bad("text", key)
            if key.startswith(NARROW):
                from .special_types import narrow

                narrow(self, key, texts[key])
            elif key == CHECKSUMS:
                self.checksums = texts[key]
            else:
                self.metadata[key] = texts[key]
        self.scalars = self._map(contents, "scalars")
        for key in self.scalars:
            from .special_types import scalar

            self.scalars[key] = scalar(self, key, self.scalars[key])

    @staticmethod
    def from_bytes(data, origin="burnpack"):
        """Open a burnpack that lies in memory (bytes, bytearray, memoryview), without copying it."""
        return Burnpack(data, origin)

    @staticmethod
    def from_file(path, zero_copy=False):
        """Open the burnpack at `path`, or at `path`.bpk if there is no such file and the name has no extension.

        CPython reads each tensor on request. With zero_copy it maps the file instead, and tensors share its pages: the
        file must then not be changed in place, because accessing a truncated page ends the process (replacing the file
        by renaming is safe). MicroPython uses the file in place if the file system allows it (ROMFS), else reads it.
        Raises OSError if there is no file, FormatError if it is not a burnpack.
        """
        from .file import contents

        return Burnpack(*contents(path, zero_copy))

    def __repr__(self):
        return "Burnpack({!r}, {} tensors)".format(self.origin, len(self.tensors))

    def verify(self):
        """Compare every tensor with its checksum in the file. Returns False if the file has no checksums, else True.

        Raises FormatError, naming the tensors whose bytes have changed.
        """
        from .checksums import verify

        return verify(self)

    def raw(self, name):
        """The bytes of the tensor `name`, a memoryview. Raises FormatError for an unknown name."""
        entry = self._find(name)
        return self.data[entry.start : entry.end]

    def tensor(self, name, backend=None):
        """The tensor `name` on `backend`, sharing the file's bytes if the backend can use them in place.

        A quantized tensor is returned as float32. Raises FormatError for an unknown name.
        """
        from ..backend import get_backend

        entry = self._find(name)
        backend = get_backend(backend)
        if entry.dtype is dtypes.bool or not isinstance(entry.stored, str):
            from .special_types import special

            return special(self, name, entry, backend)
        return backend.from_bytes(self.raw(name), entry.dtype, entry.shape)

    # -- checks -----------------------------------------------------------------------------------------------------

    def bad(self, what, *found):
        """Refuse the file. The message is loaded only now, so that it takes no memory on a device unless a file is
        bad."""
        from .errors import refuse

        refuse(self.origin, what, found)

    def _find(self, name):
        entry = self.tensors.get(name)
        if entry is None:
            self.bad("name", name, ", ".join(sorted(self.tensors)[:8]) or "none")
        return entry

    def _map(self, contents, key):
        found = contents.get(key)
        if not isinstance(found, dict) and found is not None:
            self.bad("map", key)
        return found or {}

    def unsigned(self, value, name, what):
        """`value`, checked to be an unsigned 64-bit integer. Raises FormatError for anything else."""
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_U64:
            self.bad("unsigned", name, what, value)
        return value

    def _entry(self, name, found):  # noqa: C901
        if not isinstance(found, dict):
            self.bad("descriptor", name)
        shape = found.get("shape")
        offsets = found.get("data_offsets")
        if not isinstance(shape, list):
            self.bad("shape", name)
        if len(shape) > MAX_RANK:
            self.bad("tensor_limit", name, len(shape), "dimensions", MAX_RANK)
        if not isinstance(offsets, list) or len(offsets) != 2:
            self.bad("offsets", name)
        start = self.unsigned(offsets[0], name, "start")
        end = self.unsigned(offsets[1], name, "end")
        if end < start:
            self.bad("backwards", name, end, start)
        if end - start > MAX_TENSOR:
            self.bad("tensor_limit", name, end - start, "bytes", MAX_TENSOR)
        if self.data_start + end > len(self.data) and end:
            self.bad("truncated", "tensor {!r}".format(name), self.data_start + end, len(self.data))
        count = 1
        for n in shape:
            count *= self.unsigned(n, name, "dimension")
            if count > MAX_U64:
                self.bad("product", name, shape)
        param_id = found.get("param_id")
        if param_id is not None:
            self.unsigned(param_id, name, "param_id")
        stored = found.get("dtype")
        dtype = None
        if stored:
            for d in dtypes.ALL:
                if d.burn == stored:
                    dtype = d
        if dtype is None:
            from .special_types import special_dtype

            dtype, itemsize = special_dtype(self, name, stored)
        else:
            itemsize = dtype.itemsize
        if itemsize and end - start != count * itemsize:
            self.bad("length", name, end - start, shape, stored, count * itemsize)
        return Entry(dtype, tuple(shape), self.data_start + start, self.data_start + end, param_id, stored)
