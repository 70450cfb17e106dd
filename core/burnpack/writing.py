"""The layout of a burnpack to be written: its header, and the position of each tensor's bytes.

Runs on devices too; core/host/burnpack_writer.py writes files from it, and Record.save on MicroPython.
The layout is Burn's: names sorted, every tensor at a multiple of 256 bytes. Two names of one tensor share its bytes.
"""

from .. import dtypes
from ..errors import DTypeError, FormatError
from . import CHECKSUMS, HEADER, MAGIC, MAX_METADATA, MAX_TENSORS, NARROW, VERSION, aligned
from .checksums import crc32, placeholder
from .checksums import digits as digits_of


class Source:
    """A tensor to be written whose bytes need not exist yet.

    read() returns its bytes, little-endian and row-major, or an iterable of chunks; it is called once, when the writer
    gets there, and the result is not kept. Two sources are one tensor if they are the same object.

    scheme: of a quantized tensor, as pairs of keys and values (core/store/quantizing.py) or as a reader decoded it, and
    how many bytes it takes.
    """

    def __init__(self, dtype, shape, read, param_id=None, scheme=None, size=0):
        self.dtype = dtype
        self.shape = tuple(shape)
        self.read = read
        self.param_id = param_id
        self.scheme = scheme
        self.size = size

    @property
    def nbytes(self):
        """The tensor's size in the file, in bytes."""
        if self.scheme:
            return self.size
        count = 1
        for n in self.shape:
            count *= n
        return self.dtype.nbytes(count)


def source_of(tensor):
    """A Source for a Tensor; a Source is returned as it is."""
    if isinstance(tensor, Source):
        return tensor
    return Source(tensor.dtype, tensor.shape, lambda: tensor.backend.to_bytes(tensor))


def plan(tensors, metadata=None, scalars=None, param_ids=None):
    """The argument of `write`: (header, metadata and padding as bytes; list of (name, position in the data section,
    Source) to write; the checksums' position in the file and, for each, the index in the list, or None).

    tensors: name -> Tensor or Source; metadata: text -> text; scalars: name -> int, float or bool; param_ids: name ->
    int. Raises DTypeError for strings, FormatError past a limit of the format.
    """
    if len(tensors) > MAX_TENSORS:
        raise FormatError("{} tensors are more than the {} a burnpack may hold".format(len(tensors), MAX_TENSORS))
    texts = _checked(metadata or {})
    entries = []
    order = []
    seen = {}
    places = {}
    owners = []  # for each name, in order, the entry of `order` with its bytes
    end = 0
    for name in sorted(tensors):
        source = source_of(tensors[name])
        if source.dtype.kind == "string":
            raise DTypeError("tensor {!r} holds strings, which a burnpack cannot".format(name))
        key = id(tensors[name])  # unique while `tensors` keeps it alive
        if key not in seen:
            start = aligned(end)
            end = start + source.nbytes
            seen[key] = (start, end)
            order.append((name, start, source))
            places[key] = len(order) - 1
        owners.append(places[key])
        entry = _entry(name, source, texts) + [("data_offsets", seen[key])]
        param_id = source.param_id
        if param_id is None and param_ids:
            param_id = param_ids.get(name)
        if param_id is not None:
            entry.append(("param_id", param_id))
        entries.append((name, _Map(entry)))
    digits = placeholder(len(owners))
    checksums = _Noted(digits) if digits else None
    if checksums:
        texts[CHECKSUMS] = checksums
    contents = [("tensors", _Map(entries))]
    if texts:
        contents.append(("metadata", _Map([(key, texts[key]) for key in sorted(texts)])))
    if scalars:
        contents.append(("scalars", _Map([(key, _scalar(key, scalars[key])) for key in sorted(scalars)])))
    encoded = bytearray()
    _encode(_Map(contents), encoded)
    if len(encoded) > MAX_METADATA:
        raise FormatError(
            "{} bytes of metadata are more than the {} a burnpack may hold".format(len(encoded), MAX_METADATA)
        )
    header = bytearray(aligned(HEADER + len(encoded)))
    header[0:4] = MAGIC.to_bytes(4, "little")
    header[4:6] = VERSION.to_bytes(2, "little")
    header[6:10] = len(encoded).to_bytes(4, "little")
    header[HEADER : HEADER + len(encoded)] = encoded
    return bytes(header), order, (HEADER + checksums.at, owners) if checksums else None


def _checked(metadata):
    """A copy of the texts. Raises FormatError where one is no text or has a key of the writer's own."""
    for key in metadata:
        if not isinstance(key, str) or not isinstance(metadata[key], str):
            raise FormatError("metadata {!r}: {!r} is not a pair of texts".format(key, metadata[key]))
        if key.startswith((NARROW, CHECKSUMS)):
            raise FormatError(
                "metadata {!r}: keys that begin with {!r} are the writer's own".format(
                    key, NARROW if key != CHECKSUMS else CHECKSUMS
                )
            )
    return dict(metadata)


def _entry(name, source, texts):
    """The dtype and shape of a Source as the file says them. A dtype that Burn has no name for goes into `texts`."""
    stored = source.dtype.burn
    shape = source.shape
    if source.scheme:
        scheme = source.scheme
        stored = _Map([("QFloat", scheme if isinstance(scheme, dict) else _maps(scheme))])
    elif source.dtype is dtypes.bool:
        stored = _Map([("Bool", "Native")])
    elif stored is None:
        texts[NARROW + name] = " ".join([source.dtype.name] + [str(n) for n in shape])
        stored = "U8"
        shape = (source.nbytes,)
    return [("dtype", stored), ("shape", shape)]


def write(file, header, order, checksums):
    """Write the result of `plan` to an open, seekable binary file; returns its size. Raises FormatError if a Source
    returns a different number of bytes than it declared."""
    begin = file.tell()
    size = file.write(header)
    first = size
    found = []
    for name, start, source in order:
        size += file.write(bytes(first + start - size))
        data = source.read()
        check = 0
        for piece in (data,) if isinstance(data, (bytes, bytearray, memoryview)) else data:
            size += file.write(piece)
            if checksums:
                check = crc32(piece, check)
        found.append(check)
        data = piece = None  # freed before the next one is read
        if size != first + start + source.nbytes:
            raise FormatError(
                "tensor {!r} gave {} bytes where {} of shape {} takes {}".format(
                    name, size - first - start, source.dtype, source.shape, source.nbytes
                )
            )
    if checksums:
        at, owners = checksums
        file.seek(begin + at)
        for i in owners:
            file.write(digits_of(found[i]).encode())
        file.seek(begin + size)
    return size


def _scalar(name, value):
    if isinstance(value, bool):
        return _Map([("Bool", value)])
    if isinstance(value, float):
        return _Map([("Float", value)])
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return _Map([("Int" if value < 1 << 63 else "UInt", value)])
    raise FormatError("scalar {!r}: {!r} is not a bool, a float or an integer of 64 bits".format(name, value))


class _Noted:
    """A text that is filled in later; `at` is its position in the encoded metadata."""

    def __init__(self, text):
        self.text = text
        self.at = 0


class _Map:
    """A CBOR map with its keys in the given order, which MicroPython's dicts do not keep."""

    def __init__(self, pairs):
        self.pairs = pairs


def _maps(pairs):
    """Pairs of keys and values as a map; values that are tuples of pairs become maps too."""
    return _Map([(key, _maps(value) if isinstance(value, tuple) else value) for key, value in pairs])


def _head(major, argument, out):
    """The first bytes of a CBOR item, in the shortest form."""
    if argument < 24:
        out.append(major << 5 | argument)
        return
    width = 0
    while argument >> (8 << width):
        width += 1
    out.append(major << 5 | (24 + width))
    out.extend(argument.to_bytes(1 << width, "big"))


def _encode(value, out):
    """Append `value` as CBOR (RFC 8949)."""
    if isinstance(value, _Map):
        _head(5, len(value.pairs), out)
        for key, one in value.pairs:
            _encode(key, out)
            _encode(one, out)
    elif value is None:
        out.append(0xF6)
    elif isinstance(value, bool):
        out.append(0xF5 if value else 0xF4)
    elif isinstance(value, int):
        _head(*((0, value) if value >= 0 else (1, -1 - value)), out)
    elif isinstance(value, _Noted):
        _encode(value.text, out)
        value.at = len(out) - len(value.text)
    elif isinstance(value, str):
        raw = value.encode()
        _head(3, len(raw), out)
        out.extend(raw)
    elif isinstance(value, dict):
        _encode(_Map(list(value.items())), out)
    elif isinstance(value, float):
        import struct

        out.append(0xFB)
        out.extend(struct.pack(">d", value))
    else:
        _head(4, len(value), out)
        for one in value:
            _encode(one, out)
