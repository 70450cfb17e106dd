"""Tensors to NumPy arrays and back, for every dtype that ml_dtypes or NumPy has; and objects of other libraries."""

from __future__ import annotations

from typing import Any

import emberlet
import ml_dtypes
import numpy as np
import pytest
from emberlet.errors import DTypeError
from emberlet.host.sharing.arrays import to_array, to_tensor
from support.rows import every

NARROW = ("int4", "uint4", "int2", "uint2", "float4_e2m1fn")
NAMES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
         "bool", "bfloat16", "float8_e4m3fn", "float8_e5m2", *NARROW)  # fmt: skip


def numbers(name: str, shape: tuple[int, ...]) -> Any:
    values = np.random.default_rng(3).integers(0 if name[0] in "ub" else -2, 2, shape)
    return values.astype(getattr(ml_dtypes, name, None) or np.dtype(name))


@pytest.mark.parametrize("backend", ["python", "numpy"])
@every("name", NAMES)
@pytest.mark.parametrize("shape", [(3, 5), (7,), (), (0, 2)], ids=str)
def test_arrays_come_back_as_they_were(name: str, shape: tuple[int, ...], backend: str) -> None:
    array = numbers(name, shape)
    x = to_tensor(array, backend)
    assert (x.dtype.name, x.shape, x.backend.name) == (name, shape, backend)
    if not name.startswith("float4"):
        assert x.astype("float32").tolist() == array.astype(np.float32).tolist()
    back = to_array(x)
    assert (back.dtype, back.shape) == (array.dtype, shape)
    assert np.array_equal(back.astype(np.float32), array.astype(np.float32))


def test_turned_arrays_and_texts_are_converted() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert np.array_equal(to_array(to_tensor(array, "python")), array)
    for texts in (np.array([["a", "b"]]), np.array([[b"a", b"b"]]), np.array([["a", "b"]], object)):
        x = to_tensor(texts, "python")
        assert (x.dtype.name, x.shape, x.tolist()) == ("string", (1, 2), [["a", "b"]])
        back = to_array(x)
        assert back.dtype == object and back.tolist() == [["a", "b"]]


def test_lists_are_converted_item_by_item_and_dicts_are_kept() -> None:
    table = {1: 0.5}
    found = to_tensor([np.ones(2), None, [table]], "numpy")
    assert found[0].tolist() == [1.0, 1.0] and found[1] is None and found[2] == [table]
    back = to_array((found[0], None, [table]))
    assert back[0].tolist() == [1.0, 1.0] and back[1] is None and back[2] == [table]


# -- objects of other libraries ---------------------------------------------------------------------------------------


class Float:
    def __float__(self) -> float:
        return 2.5


class Index:
    def __index__(self) -> int:
        return 7


class Array:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.arange(3, dtype=np.int16)


class Refused(Array):
    """Its DLPack is not available, its array is."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("not now")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OnlyRefused:
    __dlpack__, __dlpack_device__ = Refused.__dlpack__, Refused.__dlpack_device__


@pytest.mark.parametrize("backend", ["python", "numpy"])
def test_objects_of_other_kinds_become_tensors(backend: str) -> None:
    for made, dtype, values in [
        (Float(), "float32", 2.5), (Index(), "int64", 7), (Array(), "int16", [0, 1, 2]),
        (Refused(), "int16", [0, 1, 2]),
        (np.float16(0.5), "float16", 0.5), (np.array(["a", "bc"]), "string", ["a", "bc"]),
        (np.arange(3, dtype=">i4"), "int32", [0, 1, 2]), (bytearray(b"ab"), "uint8", [97, 98]),
        (memoryview(b"abcdef")[::2], "uint8", [97, 99, 101]), (memoryview(b""), "uint8", []),
        (memoryview(np.arange(6, dtype=np.int16).reshape(2, 3)), "int16", [[0, 1, 2], [3, 4, 5]]),
    ]:  # fmt: skip
        x = emberlet.asarray(made, backend=backend)
        assert (x.dtype.name, x.tolist(), x.backend.name) == (dtype, values, backend)


def test_objects_that_are_no_arrays_are_refused() -> None:
    with pytest.raises(BufferError, match="not now"):
        emberlet.asarray(OnlyRefused())
    with pytest.raises(DTypeError, match="pass numbers, nested lists, an array or a buffer"):
        emberlet.asarray(object())
    with pytest.raises(DTypeError, match="must hold str only, found int, str"):
        emberlet.asarray(np.array(["a", 1], object))
    with pytest.raises(DTypeError, match="no emberlet counterpart"):
        emberlet.asarray(np.zeros(2, np.clongdouble))
    with pytest.raises(DTypeError, match="a buffer of format"):
        emberlet.asarray(memoryview(b"ab").cast("c"))


@pytest.mark.parametrize("backend", ["python", "numpy"])
def test_copies_are_made_where_they_are_asked_for(backend: str) -> None:
    array = np.arange(4, dtype=np.float32)
    copied = emberlet.asarray(array, backend=backend, copy=True)
    shared = emberlet.asarray(array, backend=backend, copy=False)
    array[0] = 9
    assert copied.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert shared.tolist() == [9.0, 1.0, 2.0, 3.0]
    data = bytearray(b"ab")
    copied, shared = (emberlet.asarray(memoryview(data), backend=backend, copy=c) for c in (True, False))
    data[0] = 99
    assert copied.tolist() == [97, 98]
    assert shared.tolist() == [99, 98]
    with pytest.raises(ValueError, match="another dtype needs a copy"):
        emberlet.asarray(array, dtype="float64", backend=backend, copy=False)
    assert emberlet.asarray(array, dtype="float64", backend=backend).dtype.name == "float64"
    with pytest.raises(ValueError, match="strided"):
        emberlet.asarray(memoryview(b"abcd")[::2], backend=backend, copy=False)


def test_strided_arrays_are_copied_where_memory_must_be_dense() -> None:
    array = np.arange(6.0)[::2]
    with pytest.raises(ValueError, match="strided array needs a copy"):
        emberlet.asarray(array, backend="python", copy=False)
    assert emberlet.asarray(array, backend="python").tolist() == [0.0, 2.0, 4.0]
    assert np.shares_memory(np.asarray(emberlet.asarray(array, backend="numpy", copy=False)), array)


def test_tensors_as_arrays() -> None:
    x = emberlet.asarray([[1.0, 2.0]], backend="python")
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    assert not np.shares_memory(np.array(x, copy=True), np.asarray(x))
    assert np.asarray(x, dtype=np.int32).tolist() == [[1, 2]]
    assert np.asarray(x.T).tolist() == [[1.0], [2.0]]
    assert np.asarray(x[:, 1:]).tolist() == [[2.0]]
    assert np.asarray(emberlet.zeros((0, 3), backend="python")).shape == (0, 3)
    assert np.asarray(emberlet.asarray([["a"]], backend="python")).tolist() == [["a"]]
    half = emberlet.asarray([1.5], dtype="float16", backend="python")
    assert np.asarray(half).tolist() == [1.5]
    for kept in (half, emberlet.asarray([1.5], dtype="bfloat16", backend="python")):
        with pytest.raises(ValueError, match="only by a copy"):
            kept.__array__(copy=False)
    with pytest.raises(ValueError, match="another dtype"):
        x.__array__(np.dtype("int32"), copy=False)
    assert x.__array__(copy=False).tolist() == [[1.0, 2.0]]
    assert x.__array__(np.dtype("float32"), copy=False).tolist() == [[1.0, 2.0]]


def test_numpy_functions_take_tensors_anywhere_in_their_arguments() -> None:
    x = emberlet.asarray([3.0, 1.0], backend="python")
    assert np.concatenate([x, x]).tolist() == [3.0, 1.0, 3.0, 1.0]
    assert np.sum(x, axis=0, where=emberlet.asarray([True, False])) == 3.0
    assert np.linalg.norm(x, ord=1) == 4.0


def test_buffers_of_tensors() -> None:
    from emberlet.host.sharing.interop import array_interface, to_buffer

    x = emberlet.asarray([[1, 2, 3], [4, 5, 6]], dtype="int16", backend="python")
    assert to_buffer(x).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert to_buffer(emberlet.asarray([True], backend="python")).tolist() == [True]
    assert to_buffer(emberlet.asarray([], backend="python")).tolist() == []
    assert memoryview(to_buffer(emberlet.asarray(np.ones((2, 2))))).shape == (2, 2)
    with pytest.raises(BufferError, match="no shape"):
        to_buffer(emberlet.asarray([[], []], backend="python"))
    for view in (x.T, x[:1]):
        with pytest.raises(BufferError, match="view"):
            to_buffer(view)
    said = array_interface(x)
    assert (said["version"], said["shape"], said["typestr"], said["strides"]) == (3, (2, 3), "<i2", (6, 2))
    assert array_interface(x.T)["strides"] == (2, 6)
    with pytest.raises(AttributeError, match="no counterpart"):
        array_interface(emberlet.asarray([1.0], dtype="bfloat16", backend="python"))


def test_a_gpus_tensor_is_exported_as_a_copy_on_the_cpu() -> None:
    from emberlet.host.sharing.dlpack import dlpack_device, from_dlpack, to_dlpack
    from emberlet.wgpu_backend import WgpuBackend

    x = WgpuBackend(2, planning=True).from_list([1.0, 2.0, 3.0, 4.0], emberlet.float32, (2, 2))
    assert dlpack_device(x) == (15, 2)
    assert dlpack_device(emberlet.asarray([1.0], backend="python")) == (1, 0)

    class Exporter:
        def __dlpack__(self, **options: Any) -> Any:
            return to_dlpack(x, dl_device=(1, 0))

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    copied = from_dlpack(Exporter(), emberlet.get_backend("python"), None)
    assert (copied.shape, copied.tolist()) == ((2, 2), [[1.0, 2.0], [3.0, 4.0]])
    for options in ({}, {"dl_device": (1, 0), "copy": False}):
        with pytest.raises(BufferError, match="exports copies on the CPU only"):
            to_dlpack(x, **options)
    with pytest.raises(BufferError, match="no streams"):
        to_dlpack(copied, stream=1)
    with pytest.raises(BufferError, match="only to the CPU"):
        to_dlpack(copied, dl_device=(15, 0))
