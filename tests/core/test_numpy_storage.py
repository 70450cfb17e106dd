"""Bytes and arrays of the numpy backend: whole bytes are not copied, narrower elements are packed lowest bits first."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.errors import FormatError
from emberlet.host.numpy_backend import storage
from hypothesis import given
from hypothesis import strategies as st
from support.rows import every

STORED = [d for d in dtypes.ALL if d.kind != "string"]


@pytest.mark.parametrize("dtype", STORED, ids=str)
@given(data=st.data())
def test_bytes_come_back(dtype, data):
    """Compared with how the plain-Python backend reads the same bytes."""
    count = data.draw(st.integers(0, 9))
    packed = bytearray(data.draw(st.binary(min_size=dtype.nbytes(count), max_size=dtype.nbytes(count))))
    if dtype.is_bool:
        packed = bytearray(b & 1 for b in packed)
    if count * dtype.bits % 8:
        packed[-1] &= (1 << count * dtype.bits % 8) - 1  # what lies behind the last element
    array = storage.from_bytes(packed, dtype, (count,))
    assert bytes(storage.to_bytes(array, dtype)) == bytes(packed)
    plain = get_backend("python")
    want = plain.to_list(plain.from_bytes(bytes(packed), dtype, (count,)))
    with np.errstate(invalid="ignore"):  # signaling NaNs
        found = array.astype(np.float64 if dtype.is_float else object).tolist()
    assert list(map(repr, found)) == list(map(repr, want))  # which distinguishes -0.0 from 0.0, but not NaN from NaN


@pytest.mark.parametrize("dtype", [d for d in STORED if d.bits >= 8], ids=str)
def test_whole_bytes_are_not_copied(dtype):
    given = np.zeros(6 * dtype.itemsize, np.uint8)
    array = storage.from_bytes(given, dtype, (2, 3))
    assert np.shares_memory(array, given)
    assert np.shares_memory(np.frombuffer(storage.to_bytes(array, dtype), np.uint8), given)


@every("dtype", STORED)
@pytest.mark.parametrize("more", [-1, 1])
def test_another_number_of_bytes_is_refused(dtype, more):
    with pytest.raises(FormatError, match=rf"takes {dtype.nbytes(8)} bytes, found {dtype.nbytes(8) + more}"):
        storage.from_bytes(bytes(dtype.nbytes(8) + more), dtype, (8,))
