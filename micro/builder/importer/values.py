"""Constants of the model as arrays."""

from __future__ import annotations

from math import prod

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ir.value import Value

from ..kernels.layer import Array

BYTES = {"int8": 128, "uint8": 0, "int4": 128, "uint4": 0, "int2": 128, "uint2": 0}
"""Dtype of weights -> the byte that stands for a stored 0."""

NARROW = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
"""Dtype -> its bits."""

_DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")


def numpy_of(value: Value) -> Array:
    """A constant as an array: floats as float32, or float64 if stored so; numbers of 4 and 2 bits as bytes.

    Raises Problem for dtypes NumPy does not have.
    """
    bits = NARROW.get(value.dtype.name)
    if bits:
        held = np.frombuffer(bytes(value.raw()), np.uint8)[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)
        levels = (held & ((1 << bits) - 1)).reshape(-1)[: prod(value.shape)].reshape(value.shape)
        middle = 1 << (bits - 1)
        return levels if value.dtype.name[0] == "u" else (levels ^ middle).astype(np.int8) - np.int8(middle)
    if value.dtype.name not in _DTYPES:
        raise Problem(f"a constant of dtype {value.dtype} is not supported")
    x = np.frombuffer(bytes(value.raw()), value.dtype.name).reshape(value.shape)
    if not value.dtype.is_float:
        return x
    with np.errstate(over="ignore"):
        narrow = x.astype(np.float32)
    return x.astype(np.float64) if x.dtype == np.float64 and np.isfinite(narrow).all() else narrow


def byte_of(argument: Argument) -> int | None:
    """What is added to a number of an int8 or uint8 tensor to store it as a byte; None for other dtypes."""
    dtype = argument.type.dtype.name if isinstance(argument.type, TensorType) else ""
    return BYTES[dtype] if dtype in ("int8", "uint8") else None
