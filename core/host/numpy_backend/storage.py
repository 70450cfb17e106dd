"""Which NumPy dtype holds which emberlet dtype, and bytes in and out.

The narrow types (bfloat16, 8-, 6- and 4-bit floats, 4- and 2-bit integers) are held in the dtypes of ml_dtypes; without
that package, using one raises UnsupportedError. Strings are object arrays.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import FormatError, UnsupportedError
from ...shapes import size
from ..extras import sentence

Array = np.ndarray[Any, np.dtype[Any]]

# glibc gives large freed blocks back to the system at once, and every page of the next one then costs a fault: more
# than most operations on it. Its limits follow the largest block freed so far: this one, which is never touched and so
# takes no memory, makes it keep up to 32 MB for reuse.
if sys.platform == "linux":
    np.empty(1 << 24, np.uint8)

# Those that neither Python's arrays nor NumPy have.
NARROW = tuple(d.name for d in dtypes.ALL if d.code is None and d.kind in ("float", "int", "uint"))

# By name: a str knows its hash, a DType computes it in Python.
_BY_NAME: dict[str, np.dtype[Any]] = {
    d.name: np.dtype(object if d is dtypes.string else d.name) for d in dtypes.ALL if d.name not in NARROW
}
_FROM_NUMPY = {_BY_NAME[d.name]: d for d in dtypes.ALL if d.name in _BY_NAME}

# Arithmetic in the narrow types happens here, and the result is rounded back.
WIDE: dict[str, np.dtype[Any]] = {
    d.name: np.dtype(np.float32) if d.is_float else np.dtype(np.int32) for d in dtypes.ALL if d.name in NARROW
}
WIDE["float16"] = np.dtype(np.float32)


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype that holds `dtype`. Raises UnsupportedError if ml_dtypes is missing or too old for it."""
    found = _BY_NAME.get(dtype.name)
    if found is None and dtype.kind == "complex":
        found = np.dtype(dtype.name)
    if found is None:
        found = _narrow().get(dtype.name)
    if found is None:
        raise UnsupportedError(sentence(f"{dtype} on backend 'numpy'", ["ml_dtypes"]))
    return found


@cache
def _narrow() -> dict[str, np.dtype[Any]]:
    """The dtypes of the narrow types by name; none of them without ml_dtypes, some where it is old."""
    try:
        import ml_dtypes
    except ImportError:  # pragma: no cover - the extra numpy brings it, but not every browser has it
        return {}
    return {name: np.dtype(getattr(ml_dtypes, name)) for name in NARROW if hasattr(ml_dtypes, name)}


def emberlet_dtype(dtype: np.dtype[Any]) -> DType | None:
    """The emberlet dtype for a NumPy one (of either byte order), or None."""
    if dtype.kind in "US":
        return dtypes.string
    if dtype.kind == "c":
        return dtypes.dtype(dtype.name) if dtype.name in ("complex64", "complex128") else None
    found = _FROM_NUMPY.get(dtype)
    if found is None and "ml_dtypes" in sys.modules:
        found = next((dtypes.BY_NAME[name] for name, narrow in _narrow().items() if narrow == dtype), None)
    if found is None and dtype.isbuiltin == 0 and dtype.byteorder in "<>":
        found = _FROM_NUMPY.get(dtype.newbyteorder("="))
    return found


def from_bytes(data: Any, dtype: DType, shape: tuple[int, ...]) -> Array:
    """An array over row-major little-endian bytes (see Backend.from_bytes). Raises FormatError on a wrong length."""
    count = size(shape)
    target = numpy_dtype(dtype)
    view = memoryview(data).cast("B") if not isinstance(data, np.ndarray) else data
    if len(view) != dtype.nbytes(count):
        raise FormatError(f"{dtype} of shape {shape} takes {dtype.nbytes(count)} bytes, found {len(view)}")
    if dtype.bits >= 8:
        return np.frombuffer(view, np.uint8).view(target).reshape(shape)
    return unpack(np.frombuffer(view, np.uint8), dtype, count).reshape(shape)


def unpack(packed: Array, dtype: DType, count: int) -> Array:
    """Elements of 6, 4 or 2 bits from bytes that hold the first one in their lowest bits."""
    codes = codes_of(packed, dtype.bits, count)
    if dtype.is_float:
        return codes.view(numpy_dtype(dtype))
    if dtype.kind == "int":
        sign = 1 << (dtype.bits - 1)
        return ((codes ^ sign).astype(np.int8) - sign).astype(numpy_dtype(dtype))
    return codes.astype(numpy_dtype(dtype))


def to_bytes(array: Array, dtype: DType) -> memoryview:
    """The elements as bytes in the layout of `from_bytes`; a view where the array is contiguous."""
    flat: Array = np.ascontiguousarray(array).reshape(-1)
    if dtype.bits >= 8:
        return flat.view(np.uint8).data
    return pack_codes(flat.view(np.uint8) if dtype.is_float else flat.astype(np.int8).view(np.uint8), dtype.bits).data


def codes_of(packed: Array, bits: int, count: int) -> Array:
    """The codes (count) of `bits` bits each from a stream of them, lowest bits first, as uint8."""
    if 8 % bits == 0:
        shifts = np.arange(8 // bits, dtype=np.uint8) * bits
        return ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
    single = np.unpackbits(packed, count=count * bits, bitorder="little").reshape(count, bits)
    return np.packbits(single, axis=1, bitorder="little").reshape(-1)


def pack_codes(codes: Array, bits: int) -> Array:
    """The reverse of `codes_of`: the lowest `bits` bits of each uint8 as a stream, the last byte filled with zeros."""
    if 8 % bits == 0:
        per_byte = 8 // bits
        codes = codes & ((1 << bits) - 1)
        codes = np.concatenate([codes, np.zeros(-len(codes) % per_byte, np.uint8)]).reshape(-1, per_byte)
        packed: Array = np.bitwise_or.reduce(codes << (np.arange(per_byte, dtype=np.uint8) * bits), axis=1)
        return packed.astype(np.uint8)
    return np.packbits(np.unpackbits(codes[:, None], axis=1, count=bits, bitorder="little"), bitorder="little")
