"""Converts NumPy arrays to tensors and back, with ml_dtypes for the dtypes that NumPy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...backend import Backend, get_backend
from ...tensor import Tensor
from ..numpy_backend.storage import codes_of, pack_codes


def to_tensor(value: Any, backend: Backend | str) -> Any:
    """Convert an array to a Tensor, and a list item by item; a dict or None is returned unchanged."""
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, list):
        return [to_tensor(v, backend) for v in value]
    backend = get_backend(backend)
    array = np.asarray(value)
    if array.dtype.kind in "OUST":
        items = [v.decode() if isinstance(v, bytes) else str(v) for v in array.ravel().tolist()]
        return backend.from_list(items, dtypes.string, array.shape)
    dtype = dtypes.dtype(array.dtype.name)
    return backend.from_bytes(_packed(array, dtype.bits), dtype, array.shape)


def _packed(array: Any, bits: int) -> bytes:
    """The elements as bytes. Those under 8 bits are packed several to a byte, the first in the lowest bits."""
    raw = np.ascontiguousarray(array)
    if bits >= 8:
        return bytes(raw.tobytes())
    return pack_codes(raw.view(np.uint8).ravel(), bits).tobytes()


def to_array(value: Any) -> Any:
    """Convert a Tensor to a NumPy array, and a list item by item; a dict or None is returned unchanged."""
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, list | tuple):
        return [to_array(v) for v in value]
    assert isinstance(value, Tensor)
    if value.dtype is dtypes.string:
        return np.array(value.backend.to_list(value), dtype=object).reshape(value.shape)
    name = value.dtype.name
    if hasattr(np, name) and value.dtype is not dtypes.bool:
        return np.frombuffer(value.backend.to_bytes(value), dtype=name).reshape(value.shape)
    if value.dtype is dtypes.bool:
        return np.frombuffer(value.backend.to_bytes(value), dtype=np.bool_).reshape(value.shape)
    import ml_dtypes

    narrow = getattr(ml_dtypes, name)
    if value.dtype.bits >= 8:
        return np.frombuffer(value.backend.to_bytes(value), dtype=narrow).reshape(value.shape)
    bits = value.dtype.bits
    codes = codes_of(np.frombuffer(value.backend.to_bytes(value), dtype=np.uint8), bits, value.size)
    if value.dtype.kind == "int":  # ml_dtypes keeps signed narrow integers extended to a byte
        codes = ((codes ^ (1 << (bits - 1))) - (1 << (bits - 1))).astype(np.uint8)
    return codes.view(narrow).reshape(value.shape)
