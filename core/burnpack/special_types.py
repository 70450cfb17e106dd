"""The rarer contents of a burnpack: scalars, bools, quantized tensors, and dtypes that Burn has no name for.

A tensor of these last is stored as U8 of shape [bytes], so that every reader can open the file; an entry of the
metadata under "emberlet.dtype." and the tensor's name holds its dtype and shape: "int4 3 5".
"""

from .. import dtypes
from . import MAX_RANK, MAX_U64, NARROW


def narrow(pack, key, text):
    """Give the tensor that `key` names the dtype and shape of `text`. Raises FormatError if its bytes do not fit."""
    name = key[len(NARROW) :]
    entry = pack.tensors.get(name)
    words = text.split(" ")
    dtype = dtypes.BY_NAME.get(words[0])
    if entry is None or entry.stored != "U8" or dtype is None or dtype.burn or not dtype.bits:
        pack.bad("narrow", key, text, name)
    count = 1
    shape = []
    for word in words[1 : MAX_RANK + 2]:
        if not word or not all(c in "0123456789" for c in word):
            pack.bad("narrow_shape", key, text)
        shape.append(pack.unsigned(int(word) if len(word) < 21 else -1, name, "a dimension"))
        count *= shape[-1]
    if len(shape) > MAX_RANK or count > MAX_U64 or dtype.nbytes(count) != entry.nbytes:
        pack.bad("narrow_length", name, entry.nbytes, text)
    entry.dtype = dtype
    entry.shape = tuple(shape)


def scalar(pack, key, found):
    """The Python number of one scalar, {"Int": i64}, {"UInt": u64}, {"Float": f64} or {"Bool": bool}."""
    if isinstance(found, dict) and len(found) == 1:
        for kind in found:
            value = found[kind]
            if kind == "Bool" and isinstance(value, bool):
                return value
            if kind == "Float" and isinstance(value, float):
                return value
            if isinstance(value, int) and not isinstance(value, bool):
                if kind == "Int" and -(1 << 63) <= value < 1 << 63:
                    return value
                if kind == "UInt" and 0 <= value <= MAX_U64:
                    return value
    pack.bad("scalar", key)


def special_dtype(pack, name, stored):
    """(DType, bytes per element) of a stored dtype that is not a plain name; (float32, 0) for a quantized one, which is
    only checked when it is read, so that one invalid tensor does not make the others unreadable."""
    if stored == "Flex32":
        return dtypes.float32, 4
    if stored in ({"Bool": "Native"}, {"Bool": "U8"}):
        return dtypes.bool, 1
    if stored == {"Bool": "U32"}:
        return dtypes.bool, 4
    if not isinstance(stored, dict) or len(stored) != 1 or "QFloat" not in stored:
        pack.bad("dtype", name, stored)
    return dtypes.float32, 0


def special(pack, name, entry, backend):
    """The tensor of an entry that cannot be used in place: quantized, or bool, whose bytes in a file may be other than
    0 and 1."""
    if entry.is_quantized:
        from .quantized import dequantize

        return dequantize(pack.raw(name), entry, backend, "{}: tensor {!r}".format(pack.origin, name))
    stored = dtypes.uint32 if entry.stored == {"Bool": "U32"} else dtypes.uint8
    return backend.cast(backend.from_bytes(pack.raw(name), stored, entry.shape), dtypes.bool)
