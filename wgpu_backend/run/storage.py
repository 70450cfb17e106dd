"""How the GPU stores each dtype, and conversions to and from that form.

WGSL computes with 32-bit words, so a result takes one: floats as f32, signed integers as i32, unsigned ones and bool as
u32. int8, uint8 and bool data uploaded to the GPU (inputs, weights) stay packed, four to a word ("i8", "u8"), and large
maps pack their results too (Fusion._pack). float16 is stored as f16 if the device has shader-f16, but always computed
in f32. 64-bit integers are stored in 32 bits if their values fit; otherwise `widen` returns None and the tensor stays
on the host, as do results that may exceed 32 bits (bounds.py). After every operation, narrow floats are rounded to
their dtype and narrow integers wrapped.
"""

import struct

from emberlet.errors import DTypeError

_BYTES = {"i8": 1, "u8": 1, "f16": 2}
_FLOAT_ROUNDING = {"float16": "round_f16", "bfloat16": "round_bf16"}


def word(dtype):
    """The storage type: "f32", "i32" or "u32"; None if the GPU cannot hold the dtype."""
    if dtype.kind == "float":
        return "f32" if dtype.bits >= 16 else None
    if dtype.kind == "int":
        return "i32"
    if dtype.kind == "uint" or dtype.kind == "bool":
        return "u32"
    return None


def packed(dtype):
    """The storage type of elements that stay four to a word: "i8" or "u8"; None for other dtypes."""
    if dtype.is_bool:
        return "u8"
    if dtype.bits == 8 and dtype.is_integer:
        return "i8" if dtype.kind == "int" else "u8"
    return None


def nbytes(word, count):
    """Bytes of `count` elements of a storage type, a multiple of 4."""
    return (count * _BYTES.get(word, 4) + 3) // 4 * 4


def register(dtype):
    """The type a value of dtype has in a kernel: its word, or "bool"."""
    return "bool" if dtype.is_bool else word(dtype)


def rounding(dtype):
    """The WGSL function that rounds or wraps a result to the dtype, such as ("round_f16", None) or ("wrap_i", 8); None
    if there is none."""
    if dtype.kind == "float":
        return (_FLOAT_ROUNDING[dtype.name], None) if dtype.name in _FLOAT_ROUNDING else None
    if dtype.bits < 32 and dtype.is_integer:
        return ("wrap_i" if dtype.kind == "int" else "wrap_u", dtype.bits)
    return None


def _numpy():
    try:
        import numpy

        return numpy
    except ImportError:
        return None


def widen(data, dtype, count, stored=None):
    """Row-major bytes of dtype as bytes of 32-bit words; None if a 64-bit integer does not fit.

    stored: the storage type; for "f16", "i8" and "u8" the bytes are only padded to a multiple of 4.

    Raises DTypeError for a dtype that the GPU cannot hold.
    """
    if dtype.bits == 32:
        return data
    if stored in _BYTES:
        missing = nbytes(stored, count) - count * _BYTES[stored]
        return bytes(data) + bytes(missing) if missing else data
    np = _numpy()
    if np is not None and dtype.bits >= 8:
        return _widen_numpy(np, data, dtype)
    values = _unpack(data, dtype, count)
    code = {"f32": "f", "i32": "i", "u32": "I"}[word(dtype)]
    if dtype.bits == 64 and code != "f":
        lo, hi = (-(1 << 31), (1 << 31) - 1) if code == "i" else (0, (1 << 32) - 1)
        for v in values:
            if v < lo or v > hi:
                return None
    return _pack_code(values, code)


def _widen_numpy(np, data, dtype):
    if dtype.name == "bfloat16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).tobytes()
    name = "uint8" if dtype.is_bool else dtype.name
    a = np.frombuffer(data, np.dtype(name).newbyteorder("<"))
    target = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}[word(dtype)]
    if dtype.bits == 64 and dtype.is_integer and a.size:
        info = np.iinfo(target)
        if a.min() < info.min or a.max() > info.max:
            return None
    with np.errstate(over="ignore"):
        return a.astype(target).tobytes()


def extremes(data, word, count):
    """The lowest and the highest of `count` >= 1 integers held as `word`."""
    np = _numpy()
    if np is not None:
        types = {"i32": np.int32, "u32": np.uint32, "i8": np.int8, "u8": np.uint8}
        a = np.frombuffer(data, types[word], count)
        return (int(a.min()), int(a.max()))
    values = struct.unpack_from("<{}{}".format(count, {"i32": "i", "u32": "I", "i8": "b", "u8": "B"}[word]), data)
    return (min(values), max(values))


def narrow(data, dtype, count, stored=None):
    """The reverse of `widen`: bytes of words as row-major bytes of dtype."""
    if dtype.bits == 32:
        return data
    if stored in _BYTES:
        return data[: _BYTES[stored] * count]
    np = _numpy()
    if np is not None and dtype.bits >= 8:
        a = np.frombuffer(data, {"f32": np.float32, "i32": np.int32, "u32": np.uint32}[word(dtype)])
        if dtype.name == "bfloat16":
            return (a.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        with np.errstate(over="ignore"):
            return a.astype("uint8" if dtype.is_bool else dtype.name).tobytes()
    return _pack(_unpack_code(data, {"f32": "f", "i32": "i", "u32": "I"}[word(dtype)], count), dtype)


def from_list(values, dtype, stored=None):
    """Python numbers as bytes of words; None if a 64-bit integer does not fit. Narrower integers wrap."""
    if dtype.is_integer and dtype.bits < 64:
        values = _wrapped(values, dtype)
    if stored in _BYTES:
        values = [float(v) for v in values] if stored == "f16" else [int(v) for v in values]
        return widen(_pack(values, dtype), dtype, len(values), stored)
    kind = word(dtype)
    if kind is None:
        raise DTypeError("dtype {} is not supported on the GPU".format(dtype))
    if kind == "f32":
        return _pack_code([float(v) for v in values], "f")
    code = "i" if kind == "i32" else "I"
    if dtype.bits == 64:
        lo, hi = (-(1 << 31), (1 << 31) - 1) if code == "i" else (0, (1 << 32) - 1)
        for v in values:
            if v < lo or v > hi:
                return None
    return _pack_code([int(v) for v in values], code)


def _wrapped(values, dtype):
    low, high = dtype.range
    span = 1 << dtype.bits
    if not values or (min(values) >= low and max(values) <= high):
        return values
    return [(int(v) - low) % span + low for v in values]


def to_list(data, dtype, count, stored=None):
    """Bytes of words as Python numbers (bools for dtype bool)."""
    if stored in _BYTES:
        values = _unpack(data[: _BYTES[stored] * count], dtype, count)
        return [v != 0 for v in values] if dtype.is_bool else list(values)
    values = _unpack_code(data, {"f32": "f", "i32": "i", "u32": "I"}[word(dtype)], count)
    if dtype.is_bool:
        return [v != 0 for v in values]
    return list(values)


def _pack_code(values, code):
    from array import array

    if code == "f":
        return bytes(array("f", [_to_f32(v) for v in values]))
    return bytes(array("i" if code == "i" else "I", values))


def unsigned(words):
    """Bytes of unsigned integers as words."""
    return struct.pack("<{}I".format(len(words)), *words)


def word_of(value, dtype):
    """The word, as an unsigned integer, that holds a Python number of dtype."""
    if dtype.is_bool:
        return 1 if value else 0
    return f32_bits(float(value)) if dtype.is_float else int(value) & 0xFFFFFFFF


def f32_bits(v):
    """The bits of a Python float as a float32, rounded to infinity beyond its range."""
    return struct.unpack("<I", struct.pack("<f", _to_f32(v)))[0]


def _to_f32(v):
    # On CPython array('f') refuses a finite double beyond f32; NumPy and the GPU make it infinite.
    # The limits are halfway to the next power of two.
    if v >= 3.4028235677973366e38:
        return float("inf")
    if v <= -3.4028235677973366e38:
        return -float("inf")
    return v


def _unpack_code(data, code, count):
    return struct.unpack("<{}{}".format(count, code), data)


def _unpack(data, dtype, count):
    """Python numbers from packed bytes of any dtype that the GPU stores."""
    bits = dtype.bits
    if bits < 8:
        out = []
        per = 8 // bits
        mask = (1 << bits) - 1
        for i in range(count):
            v = (data[i // per] >> (bits * (i % per))) & mask
            if dtype.kind == "int" and v >> (bits - 1):
                v -= 1 << bits
            out.append(v)
        return out
    if dtype.name == "bfloat16":
        halves = struct.unpack("<{}H".format(count), data)
        return [struct.unpack("<f", struct.pack("<I", h << 16))[0] for h in halves]
    return struct.unpack("<{}{}".format(count, dtype.code), data)


def _pack(values, dtype):
    bits = dtype.bits
    if bits < 8:
        per = 8 // bits
        mask = (1 << bits) - 1
        out = bytearray((len(values) + per - 1) // per)
        for i in range(len(values)):
            out[i // per] |= (values[i] & mask) << (bits * (i % per))
        return bytes(out)
    if dtype.name == "bfloat16":
        words = [struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in values]
        return struct.pack("<{}H".format(len(words)), *words)
    return struct.pack("<{}{}".format(len(values), dtype.code), *values)
