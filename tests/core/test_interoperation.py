"""Tensors share memory with NumPy, DLPack and the buffer protocol."""

from __future__ import annotations

import gc
import sys

import emberlet
import ml_dtypes
import numpy as np
import pytest
from emberlet.errors import ArgumentError
from support.backends import same
from support.rows import every

NATIVE = ["float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"]


@every("dtype", NATIVE)
def test_numpy_sees_the_same_memory(backend, dtype):
    a = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    x = emberlet.asarray(a)
    view = np.asarray(x)
    assert view.dtype == a.dtype
    assert np.shares_memory(view, a)
    turned = np.asarray(x.T[::-1, 1:])
    np.testing.assert_array_equal(turned, a.T[::-1, 1:])
    assert np.shares_memory(turned, a)
    described = x.__array_interface__
    assert described["shape"] == (3, 4)
    assert np.shares_memory(described["data"], a)  # an object, not an address: the array keeps it


def test_narrow_dtypes_become_those_of_ml_dtypes(backend):
    x = emberlet.asarray([0.5, -1.0], dtype="bfloat16")
    assert np.asarray(x).dtype == ml_dtypes.bfloat16
    same(emberlet.asarray(np.asarray(x)), np.asarray(x))
    assert not hasattr(emberlet.asarray([1], dtype="int4"), "__array_interface__")
    assert np.asarray(emberlet.asarray([1, -2], dtype="int4")).tolist() == [1, -2]


@every("dtype", NATIVE)
def test_dlpack_shares_memory_both_ways(backend, dtype):
    a = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    x = emberlet.from_dlpack(a, backend=backend)
    assert x.backend is backend
    same(x, a)
    assert np.shares_memory(np.asarray(x), a)
    back = np.from_dlpack(x.T[1:])
    np.testing.assert_array_equal(back, a.T[1:])
    assert np.shares_memory(back, a)
    same(emberlet.from_dlpack(a.T[::-1], backend=backend), a.T[::-1])


def test_dlpack_keeps_the_memory_alive(backend):
    x = emberlet.from_dlpack(np.full(1000, 7.0), backend=backend)
    gc.collect()
    assert x.tolist() == [7.0] * 1000
    y = np.from_dlpack(emberlet.full((1000,), 3.0) + 0)
    gc.collect()
    assert (y == 3).all()
    from emberlet.host.sharing import dlpack

    before = len(dlpack._exported)
    emberlet.ones((3,)).__dlpack__()  # nobody takes it
    gc.collect()
    assert len(dlpack._exported) == before
    del y
    gc.collect()
    assert len(dlpack._exported) == before - 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the buffer protocol is open to Python classes from 3.12 on")
def test_memoryview_of_a_tensor(backend):
    x = emberlet.asarray([[1.0, 2.0], [3.0, 4.0]]) + 0
    view = memoryview(x)
    assert view.shape == (2, 2)
    assert view.tolist() == x.tolist()


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 1, 2), (2, 0), (0, 3, 1)])
def test_a_buffer_has_the_shape_of_its_tensor(backend, shape):
    x = emberlet.zeros(shape) + 1
    assert np.asarray(x).shape == shape
    try:
        assert x.__buffer__(0).shape == shape
    except BufferError:  # then NumPy asks for an array
        assert not x.size


def test_a_stream_to_another_device_is_refused():
    with pytest.raises(ArgumentError, match="stream must be None"):
        emberlet.asarray([1.0]).to_device("python", stream=1)


def test_a_numpy_string_is_copied_also_after_arrays_were_taken() -> None:
    emberlet.asarray(np.ones(2))
    assert emberlet.asarray(np.str_("ab")).tolist() == "ab"
    with pytest.raises(ArgumentError, match="copy"):
        emberlet.asarray(np.str_("ab"), copy=False)
