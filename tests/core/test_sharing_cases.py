"""What crosses the border to NumPy, DLPack and the buffer protocol, and what is refused there, case by case."""

from __future__ import annotations

import array as arrays
import ctypes
from types import SimpleNamespace
from typing import Any

import emberlet
import ml_dtypes
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import Backend, get_backend
from emberlet.errors import DTypeError
from emberlet.host.sharing import dlpack, interop, memory
from emberlet.host.sharing.arrays import to_array, to_tensor
from emberlet.tensor import Tensor
from support.rows import every

PYTHON, NUMPY = get_backend("python"), get_backend("numpy")
BOTH = pytest.mark.parametrize("backend", [PYTHON, NUMPY], ids=["python", "numpy"])
NATIVE = "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()


def made(values: Any, dtype: str = "float32", backend: Any = PYTHON) -> Any:
    return emberlet.asarray(values, dtype=dtype, device=backend)


class Only:
    """An object with some methods of another's alone."""

    def __init__(self, of: Any, *names: str) -> None:
        for name in names:
            setattr(type(self), name, property(lambda self, name=name: getattr(of, name)))


def only(of: Any, *names: str) -> Any:
    return type("Only", (Only,), {})(of, *names)


# -- to NumPy


@BOTH
@pytest.mark.parametrize("dtype", NATIVE)
def test_numpy_reads_every_dtype_it_has_by_its_interface(dtype: str, backend: Any) -> None:
    x = made([[0, 1, 1], [1, 0, 1]], dtype, backend)
    found = interop.array_interface(x)
    assert np.dtype(found["typestr"]) == np.dtype(dtype) and found["version"] == 3 and found["shape"] == (2, 3)
    read = np.asarray(only(x, "__array_interface__"))
    assert read.dtype == np.dtype(dtype) and read.tolist() == [[0, 1, 1], [1, 0, 1]]
    turned = F.permute_dims(x, (1, 0))
    assert np.asarray(only(turned, "__array_interface__")).tolist() == [[0, 1], [1, 0], [1, 1]]


@BOTH
def test_an_interface_says_whether_the_memory_may_be_written(backend: Any) -> None:
    x = made([1.0, 2.0], "float32", NUMPY)
    for view in (x, x[::-1]):
        assert not memoryview(interop.array_interface(view)["data"]).readonly
        view.data.flags.writeable = False
        assert memoryview(interop.array_interface(view)["data"]).readonly
    fixed = Tensor((memoryview(bytes(8)).cast("f"), 0, None), dtypes.float32, (2,), PYTHON)
    assert interop.array_interface(fixed)["data"].readonly
    with pytest.raises(AttributeError, match=r"NumPy.*bfloat16"):
        interop.array_interface(made([1.0], "bfloat16", backend))


@BOTH
@pytest.mark.parametrize("dtype", NATIVE)
def test_an_array_shares_the_memory_where_numpy_can(dtype: str, backend: Any) -> None:
    x = made([[0, 1, 1], [1, 0, 1]], dtype, backend)
    shares = backend is NUMPY or dtype != "float16"
    a = interop.to_numpy(x)
    assert a.dtype == np.dtype(dtype) and a.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert np.shares_memory(a, interop.to_numpy(x)) is shares
    assert not np.shares_memory(a, interop.to_numpy(x, copy=True))
    if shares:
        assert np.shares_memory(a, interop.to_numpy(x, copy=False))
    else:
        with pytest.raises(ValueError, match="reaches NumPy only by a copy"):
            interop.to_numpy(x, copy=False)
    assert np.shares_memory(a, interop.to_numpy(x, dtype)) is shares
    other = "float32" if dtype == "float64" else "float64"
    assert interop.to_numpy(x, other).dtype == np.dtype(other)
    with pytest.raises(ValueError, match=r"needs a copy|only by a copy"):
        interop.to_numpy(x, other, copy=False)


def test_views_and_empty_tensors_share_too() -> None:
    x = made([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for view in (x[1:], x[:, 1:], F.permute_dims(x, (1, 0)), F.flip(x)):
        assert interop.to_numpy(view).tolist() == view.tolist()
    for shape in ((0,), (2, 0), (0, 3)):
        assert interop.to_numpy(F.zeros(shape, device=PYTHON)).shape == shape
    assert interop.to_numpy(made(["a", "b"], "string")).tolist() == ["a", "b"]
    assert interop.to_numpy(made([["a"], ["b"]], "string")).shape == (2, 1)


@BOTH
def test_numpys_functions_take_tensors_in_any_argument(backend: Any) -> None:
    x = made([3.0, 1.0], "float32", backend)
    assert np.concatenate([x, x]).tolist() == [3, 1, 3, 1]
    assert np.concatenate((x, [2.0])).tolist() == [3, 1, 2]
    assert np.clip(x, a_min=made(2.0, "float32", backend), a_max=None).tolist() == [3, 2]


# -- the buffer protocol


@BOTH
@pytest.mark.parametrize("dtype", [d for d in NATIVE if d != "float16"])
def test_a_memoryview_has_the_format_and_shape(dtype: str, backend: Any) -> None:
    x = made([[0, 1, 1], [1, 0, 1]], dtype, backend)
    view = interop.to_buffer(x)
    assert view.tolist() == [[0, 1, 1], [1, 0, 1]] and view.shape == (2, 3)
    assert np.asarray(view).dtype == np.dtype(dtype)


def test_what_has_no_memoryview_is_a_buffer_error() -> None:
    x = made([[1.0, 2.0], [3.0, 4.0]])
    for view in (x[1:], x[:, :1], F.permute_dims(x, (1, 0))):
        with pytest.raises(BufferError, match="the tensor is a view; make it contiguous"):
            interop.to_buffer(view)
    for text in ("float16", "bfloat16", "string"):
        with pytest.raises(BufferError, match="cannot be shared; copy it with"):
            interop.to_buffer(made(["a"], text) if text == "string" else made([1.0], text))
    assert interop.to_buffer(made(np.zeros(0, np.float32))).tolist() == []
    with pytest.raises(BufferError, match=r"a memoryview has no shape \(0, 2\)"):
        interop.to_buffer(made(np.zeros((0, 2), np.float32)))
    assert interop.to_buffer(made(3.0)).tolist() == 3.0


@BOTH
@pytest.mark.parametrize(
    ("code", "dtype"),
    [("d", "float64"), ("f", "float32"), ("q", "int64"), ("i", "int32"), ("h", "int16"), ("b", "int8"),
     ("Q", "uint64"), ("I", "uint32"), ("H", "uint16"), ("B", "uint8"), ("l", "int64"), ("L", "uint64")],
)  # fmt: skip
def test_buffers_of_any_number_become_tensors(code: str, dtype: str, backend: Any) -> None:
    given = arrays.array(code, [1, 2, 3, 4])
    x = interop.from_array(given, None, backend)
    assert x.dtype.name == (dtype if code not in "lL" else f"{dtype.rstrip('0123456789')}{8 * given.itemsize}")
    assert x.tolist() == [1, 2, 3, 4] and x.backend is backend
    copied = interop.from_array(given, None, backend, copy=True)
    given[0] = 9
    assert copied.tolist() == [1, 2, 3, 4] and x.tolist() == [9, 2, 3, 4]
    square = memoryview(bytes(range(4))).cast("B", (2, 2))
    assert interop.from_array(square, None, backend).tolist() == [[0, 1], [2, 3]]
    assert interop.from_array(memoryview(b"\1\0").cast("?"), None, backend).tolist() == [True, False]


@BOTH
def test_strided_buffers_are_copied_or_refused(backend: Any) -> None:
    strided = memoryview(arrays.array("i", range(6)))[::2]
    assert interop.from_array(strided, None, backend).tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="copy=False"):
        interop.from_array(strided, None, backend, copy=False)
    assert interop.from_array(memoryview(bytes(3)), None, backend, copy=False).shape == (3,)
    with pytest.raises(DTypeError, match="a buffer of format 'c' has no emberlet dtype"):
        interop.from_array(memoryview(b"ab").cast("c"), None, backend)
    with pytest.raises(ValueError, match="copy=False"):
        interop.from_array(b"ab", dtypes.int32, backend, copy=False)
    assert interop.from_array(b"ab", dtypes.int32, backend).dtype is dtypes.int32
    assert interop.from_array(b"ab", dtypes.uint8, backend, copy=False).dtype is dtypes.uint8


class JsProxy:
    pass


@BOTH
def test_numbers_of_other_libraries_are_tensors_without_axes(backend: Any) -> None:
    class Index:
        def __index__(self) -> int:
            return 7

    class Real:
        def __float__(self) -> float:
            return 1.5

    assert (interop.from_array(Index(), None, backend).dtype, interop.from_array(Index(), None, backend).item()) == (
        dtypes.int64, 7
    )  # fmt: skip
    assert interop.from_array(Real(), None, backend).item() == 1.5
    assert interop.from_array(Real(), None, backend).dtype is dtypes.float32
    with pytest.raises(DTypeError, match=r"JavaScript.*\.to_py"):
        interop.from_array(JsProxy(), None, backend)
    with pytest.raises(DTypeError, match="cannot make a tensor from object; pass numbers, nested lists"):
        interop.from_array(object(), None, backend)


# -- from NumPy


@BOTH
def test_arrays_of_any_order_and_layout_become_tensors(backend: Any) -> None:
    base = np.arange(6, dtype=np.float32).reshape(2, 3)
    for a in (base, base.T, base[:, ::2], base[::-1], base.astype(">f4"), base[0, 0]):
        assert interop.from_array(a, None, backend).tolist() == a.tolist()
        assert interop.from_array(a, None, backend, copy=True).tolist() == a.tolist()
    if backend is PYTHON:
        with pytest.raises(ValueError, match="copy=False"):
            interop.from_array(base.T, None, backend, copy=False)
    else:
        assert np.shares_memory(interop.from_array(base.T, None, backend, copy=False).data, base)
    shared = interop.from_array(base, None, backend, copy=False)
    kept = interop.from_array(base, None, backend, copy=True)
    base[0, 0] = 9
    assert (shared.tolist()[0][0], kept.tolist()[0][0]) == (9, 0)
    assert interop.from_array(only(base, "__array__"), None, backend).tolist() == base.tolist()


@BOTH
def test_texts_of_numpy_are_strings_and_other_objects_are_refused(backend: Any) -> None:
    for a in (np.array([["a", "bc"]]), np.array([["a", "bc"]], object)):
        x = interop.from_array(a, None, backend)
        assert x.dtype is dtypes.string and x.tolist() == [["a", "bc"]]
    with pytest.raises(DTypeError, match="an array of objects must hold str only, found int, str"):
        interop.from_array(np.array(["a", 1], object), None, backend)
    with pytest.raises(DTypeError, match=r"NumPy.*datetime64\[s\]"):
        interop.from_array(np.array([1], "datetime64[s]"), None, backend)


# -- DLPack


class Exporter:
    """An object with DLPack only."""

    def __init__(self, of: Any, device: tuple[int, int] = (1, 0), fails: Exception | None = None) -> None:
        self.of, self.device, self.fails = of, device, fails

    def __dlpack__(self, **options: Any) -> Any:
        if self.fails is not None:
            raise self.fails
        return self.of.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


@BOTH
@pytest.mark.parametrize("dtype", NATIVE)
def test_dlpack_brings_every_dtype_and_layout(dtype: str, backend: Any) -> None:
    base = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    for a in (base, base.T, base[:, ::2], base[::-1], base[:, ::-1], base[1:], base[:0], np.array(1, dtype)):
        x = dlpack.from_dlpack(Exporter(a), backend)
        assert x.dtype.name == dtype and x.tolist() == a.tolist() and x.shape == a.shape and x.backend is backend
        copied = dlpack.from_dlpack(Exporter(a), backend, copy=True)
        assert copied.tolist() == a.tolist()
    shared = dlpack.from_dlpack(Exporter(base), backend) if dtype != "float16" or backend is NUMPY else None
    kept = dlpack.from_dlpack(Exporter(base), backend, copy=True)
    base[0, 0] = 1
    assert shared is None or bool(shared.tolist()[0][0])
    assert not kept.tolist()[0][0]


@BOTH
@pytest.mark.parametrize("dtype", NATIVE)
def test_numpy_takes_tensors_by_dlpack(dtype: str, backend: Any) -> None:
    x = made([[0, 1, 1], [1, 0, 1]], dtype, backend)
    if dtype == "float16" and backend is PYTHON:
        with pytest.raises(BufferError, match="cannot be shared"):
            dlpack.to_dlpack(x)
        return
    for view in (x, F.permute_dims(x, (1, 0)), x[1:], x[:, 1:]):
        read = np.from_dlpack(view)
        assert read.tolist() == view.tolist() and read.dtype == np.dtype(dtype)
    kept = x.__dlpack__(copy=True)
    taken = dlpack.from_dlpack(SimpleNamespace(__dlpack__=lambda: kept, __dlpack_device__=lambda: (1, 0)), backend)
    x[0, 0] = True if dtype == "bool" else 1
    assert taken.tolist() == [[0, 1, 1], [1, 0, 1]]


def test_a_capsule_is_used_once_and_frees_its_memory() -> None:
    before = len(dlpack._exported)
    capsule = made([1.0, 2.0]).__dlpack__()
    assert len(dlpack._exported) == before + 1
    held = [capsule]
    holder = SimpleNamespace(__dlpack__=lambda: held[0], __dlpack_device__=lambda: (1, 0))
    x = dlpack.from_dlpack(holder, NUMPY)
    with pytest.raises(BufferError, match="DLPack"):
        dlpack.from_dlpack(holder, NUMPY)
    assert x.tolist() == [1.0, 2.0]
    del capsule
    held.clear()
    assert len(dlpack._exported) == before + 1
    del x
    assert len(dlpack._exported) == before
    unused = made([1.0]).__dlpack__()
    del unused
    assert len(dlpack._exported) == before


@BOTH
def test_streams_devices_and_copies_that_dlpack_cannot_give_are_refused(backend: Any) -> None:
    x = made([1.0], "float32", backend)
    assert x.__dlpack_device__() == (1, 0)
    assert x.__dlpack__(dl_device=(1, 0), max_version=(1, 0), copy=False)
    with pytest.raises(BufferError, match="stream must be None"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"DLPack.*\(2, 0\).*CPU"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match=r"CPU.*DLPack.*\(2, 1\)"):
        dlpack.from_dlpack(Exporter(np.zeros(1), (2, 1)), backend)
    other = NUMPY if backend is PYTHON else PYTHON
    with pytest.raises(ValueError, match="copy=False"):
        dlpack.from_dlpack(x, other, copy=False)
    assert dlpack.from_dlpack(x, other).backend is other
    assert dlpack.from_dlpack(x, backend, copy=False).tolist() == [1.0]
    kept = dlpack.from_dlpack(x, backend, copy=True)
    x[0] = 5.0
    assert kept.tolist() == [1.0]


@pytest.mark.parametrize(("code", "bits", "lanes"), [(3, 32, 1), (2, 128, 1), (2, 32, 2), (5, 64, 1)])
def test_dtypes_that_dlpack_alone_has_are_refused(code: int, bits: int, lanes: int) -> None:
    x = made([1.0])
    capsule = x.__dlpack__()
    address = dlpack._pointer_of(capsule, b"dltensor")
    t = dlpack._DLManagedTensor.from_address(address).dl_tensor
    t.code, t.bits, t.lanes = code, bits, lanes
    holder = SimpleNamespace(__dlpack__=lambda: capsule, __dlpack_device__=lambda: (1, 0))
    with pytest.raises(DTypeError, match=rf"\(code {code}, {bits} bits, {lanes} lanes\) has no emberlet dtype"):
        dlpack.from_dlpack(holder, PYTHON)


def test_without_strides_the_memory_is_row_major_and_an_offset_is_counted() -> None:
    x = made([[1.0, 2.0], [3.0, 4.0]])
    capsule = x.__dlpack__()
    t = dlpack._DLManagedTensor.from_address(dlpack._pointer_of(capsule, b"dltensor")).dl_tensor
    t.strides = ctypes.POINTER(ctypes.c_int64)()
    t.byte_offset, t.shape[0] = 8, 1
    holder = SimpleNamespace(__dlpack__=lambda: capsule, __dlpack_device__=lambda: (1, 0))
    assert dlpack.from_dlpack(holder, PYTHON).tolist() == [[3.0, 4.0]]


@BOTH
@pytest.mark.parametrize("error", [BufferError("b"), DTypeError("d"), RuntimeError("r"), TypeError("t")])
def test_where_dlpack_fails_the_array_is_asked(error: Exception, backend: Any) -> None:
    with pytest.raises(type(error), match=f"^{error}$"):
        interop.from_array(Exporter(np.zeros(1), fails=error), None, backend)

    class Both(Exporter):
        def __array__(self, *args: Any, **options: Any) -> Any:
            return np.float32([1, 2])

    assert interop.from_array(Both(np.zeros(1), fails=error), None, backend).tolist() == [1, 2]
    assert interop.from_array(Both(np.zeros(1)), None, backend).tolist() == [0]


def test_memory_between_the_elements_of_another_width_is_not_shared() -> None:
    gaps = np.zeros(3, np.dtype([("a", np.int8), ("b", np.float32)]))["b"]
    x = Tensor(gaps, dtypes.float32, (3,), NUMPY)
    with pytest.raises(Exception, match="cannot be shared"):
        memory.layout(x)
    assert interop.array_interface(x)["strides"] == (4,)
    assert np.asarray(only(x, "__array_interface__")).tolist() == [0, 0, 0]


class Far(Backend):
    """A backend whose tensors are not in this process's memory."""

    def __init__(self) -> None:
        super().__init__()
        self.index = 2

    def __repr__(self) -> str:
        return "far"

    def to_bytes(self, x: Any) -> bytes:
        return np.float32([1, 2]).tobytes()


def test_tensors_elsewhere_are_exported_as_copies_that_are_asked_for() -> None:
    x = Tensor(object(), dtypes.float32, (2,), Far())
    assert dlpack.dlpack_device(x) == (15, 2)
    for options in ({}, {"copy": True}, {"dl_device": (1, 0), "copy": False}):
        with pytest.raises(BufferError, match="backend far exports copies on the CPU only"):
            dlpack.to_dlpack(x, **options)
    capsule = dlpack.to_dlpack(x, dl_device=(1, 0))
    holder = SimpleNamespace(__dlpack__=lambda: capsule, __dlpack_device__=lambda: (1, 0))
    assert dlpack.from_dlpack(holder, NUMPY).tolist() == [1.0, 2.0]


def test_half_precision_reaches_plain_python_by_a_copy_only() -> None:
    given = np.float16([1, 2])
    assert dlpack.from_dlpack(Exporter(given), PYTHON).tolist() == [1.0, 2.0]
    assert dlpack.from_dlpack(Exporter(given), NUMPY, copy=False).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="copy=False"):
        dlpack.from_dlpack(Exporter(given), PYTHON, copy=False)


# -- arrays of models


@BOTH
@every(
    "dtype", [*NATIVE, "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int2", "uint2", "float4_e2m1fn"]
)
@pytest.mark.parametrize("shape", [(), (5,), (3, 3), (0,)])
def test_arrays_become_tensors_and_the_same_arrays_again(dtype: str, shape: Any, backend: Any) -> None:
    kind = np.dtype(dtype if dtype in NATIVE else getattr(ml_dtypes, dtype))
    values = np.random.default_rng(3).integers(-2 if not dtype.startswith(("u", "b")) else 0, 2, shape)
    array = np.asarray(values).astype(kind)
    x = to_tensor(array, backend)
    assert x.dtype.name == dtype and x.shape == shape and x.backend is backend
    again = to_array(x)
    assert again.dtype == kind and again.shape == shape
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16", "float8_e4m3fn"])
def test_arrays_of_whole_bytes_share_the_memory_of_a_tensor(dtype: str) -> None:
    x = made([0, 1, 1], dtype, NUMPY)
    assert np.shares_memory(to_array(x).view(np.uint8), x.data.view(np.uint8))


@BOTH
def test_lists_texts_and_other_values_pass_too(backend: Any) -> None:
    assert to_tensor(None, backend) is None and to_array(None) is None
    table = {"a": 1}
    assert to_tensor(table, backend) is table and to_array(table) is table
    found = to_tensor([np.float32([1]), None], backend)
    assert found[0].tolist() == [1] and found[1] is None
    assert [type(x) for x in to_array((found[0], None))] == [np.ndarray, type(None)]
    for a in (np.array([["a", "b"]]), np.array([[b"a", b"b"]]), np.array([["a", "b"]], object)):
        x = to_tensor(a, backend)
        assert x.tolist() == [["a", "b"]] and to_array(x).tolist() == [["a", "b"]] and to_array(x).dtype == object
