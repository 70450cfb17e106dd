"""Tensors share memory with NumPy, DLPack and the buffer protocol."""

from __future__ import annotations

import array
import copy
import gc
import pickle
import sys

import emberlet
import ml_dtypes
import numpy as np
import pytest
from emberlet.errors import ArgumentError, DTypeError, UnsupportedError
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


def test_memory_that_cannot_be_written_says_so(backend):
    x = backend.from_bytes(bytes(8), emberlet.float32, (2,))
    assert memoryview(x.__array_interface__["data"]).readonly
    assert not np.asarray(x).flags.writeable


def test_arrays_ask_for_copies_and_dtypes(backend):
    x = emberlet.asarray([1.0, 2.0])
    assert not np.shares_memory(np.array(x, copy=True), np.asarray(x))
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.array(x, dtype=np.float64, copy=False)


def test_narrow_dtypes_become_those_of_ml_dtypes(backend):
    x = emberlet.asarray([0.5, -1.0], dtype="bfloat16")
    assert np.asarray(x).dtype == ml_dtypes.bfloat16
    same(emberlet.asarray(np.asarray(x)), np.asarray(x))
    assert not hasattr(emberlet.asarray([1], dtype="int4"), "__array_interface__")
    assert np.asarray(emberlet.asarray([1, -2], dtype="int4")).tolist() == [1, -2]


def test_arrays_of_any_layout_become_tensors(backend):
    a = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    same(emberlet.asarray(a.transpose(2, 0, 1)[::-2]), a.transpose(2, 0, 1)[::-2])
    same(emberlet.asarray(a.astype(">i2")), a)
    same(emberlet.asarray(np.float32(2.5)), np.float32(2.5))
    for texts in (np.array(["a", "bc"]), np.array(["a", "bc"], object)):
        x = emberlet.asarray(texts)
        assert (x.dtype, x.tolist()) == (emberlet.string, ["a", "bc"])
    with pytest.raises(DTypeError, match="int"):
        emberlet.asarray(np.array(["a", 1], object))
    assert emberlet.asarray([np.float32(1), 2]).tolist() == [1, 2]
    if backend.name == "loops":
        with pytest.raises(UnsupportedError, match="complex numbers are on the backends numpy and python"):
            emberlet.asarray(np.array([1j]))
    else:
        same(emberlet.asarray(np.array([1j, 2])), np.array([1j, 2]))
    with pytest.raises(DTypeError, match="object"):
        emberlet.asarray(object())


def test_buffers_become_tensors_without_a_copy(backend):
    a = array.array("f", [1, 2, 3])
    x = emberlet.asarray(a)
    assert x.dtype is emberlet.float32
    a[0] = 9
    assert x.tolist() == [9, 2, 3]
    assert emberlet.asarray(bytearray(b"\x01\x02")).dtype is emberlet.uint8
    assert emberlet.asarray(memoryview(bytes(4)).cast("i")).dtype is emberlet.int32
    y = emberlet.asarray(a, copy=True)
    a[0] = 7
    assert y.tolist() == [9, 2, 3]


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


def test_dlpack_says_what_it_cannot_do(backend):
    x = emberlet.ones((2,))
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="device"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        emberlet.asarray([1], dtype="int4").__dlpack__()
    same(emberlet.from_dlpack(emberlet.asarray([1, 2]), backend="python"), np.array([1, 2]))
    assert not np.shares_memory(np.from_dlpack(x, copy=True), np.asarray(x))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the buffer protocol is open to Python classes from 3.12 on")
def test_memoryview_of_a_tensor(backend):
    x = emberlet.asarray([[1.0, 2.0], [3.0, 4.0]]) + 0
    view = memoryview(x)
    assert view.shape == (2, 2)
    assert view.tolist() == x.tolist()


def test_buffer_of_a_tensor(backend):
    x = emberlet.asarray([[1.0, 2.0], [3.0, 4.0]]) + 0
    view = x.__buffer__(0)
    assert (view.format, view.shape) == ("f", (2, 2))
    with pytest.raises(BufferError):
        emberlet.asarray([1], dtype="int4").__buffer__(0)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 1, 2), (2, 0), (0, 3, 1)])
def test_a_buffer_has_the_shape_of_its_tensor(backend, shape):
    x = emberlet.zeros(shape) + 1
    assert np.asarray(x).shape == shape
    try:
        assert x.__buffer__(0).shape == shape
    except BufferError:  # then NumPy asks for an array
        assert not x.size


def test_copies_and_pickles_name_the_backend(backend):
    x = emberlet.asarray([[1.0, 2.0]])
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x + 0))):
        assert twin.backend is backend
        assert twin.dtype is x.dtype
        assert twin.tolist() == x.tolist()


def test_a_stream_to_another_device_is_refused():
    with pytest.raises(ArgumentError, match="stream must be None"):
        emberlet.asarray([1.0]).to_device("python", stream=1)


def test_a_numpy_string_is_copied_also_after_arrays_were_taken() -> None:
    emberlet.asarray(np.ones(2))
    assert emberlet.asarray(np.str_("ab")).tolist() == "ab"
    with pytest.raises(ArgumentError, match="copy"):
        emberlet.asarray(np.str_("ab"), copy=False)
