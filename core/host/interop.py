"""Sharing memory with other array libraries on CPython: NumPy's protocols, DLPack, the buffer protocol.

Nothing is copied where the elements lie in this process's memory in a layout the other side knows. DLPack is spoken
through ctypes, so that the python backend needs no NumPy for it.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .. import dtypes
from ..backend import Backend, get_backend
from ..dtypes import DType
from ..errors import DTypeError, UnsupportedError
from ..python_backend import PythonBackend
from ..shapes import strides as row_major
from ..tensor import Tensor

# dtype -> (DLPack type code, NumPy type string). Codes: 0 int, 1 uint, 2 float, 4 bfloat16, 6 bool, 8 and above: float8
_CODES = {
    "float64": (2, "<f8"), "float32": (2, "<f4"), "float16": (2, "<f2"), "bfloat16": (4, None),
    "int64": (0, "<i8"), "int32": (0, "<i4"), "int16": (0, "<i2"), "int8": (0, "|i1"),
    "uint64": (1, "<u8"), "uint32": (1, "<u4"), "uint16": (1, "<u2"), "uint8": (1, "|u1"), "bool": (6, "|b1"),
}  # fmt: skip
_BY_CODE = {(code, dtypes.BY_NAME[name].bits): dtypes.BY_NAME[name] for name, (code, _) in _CODES.items()}
_FORMATS = {
    "d": "float64", "f": "float32", "e": "float16", "q": "int64", "i": "int32", "h": "int16", "b": "int8",
    "Q": "uint64", "I": "uint32", "H": "uint16", "B": "uint8", "?": "bool",
    "l": "int64" if ctypes.sizeof(ctypes.c_long) == 8 else "int32",
    "L": "uint64" if ctypes.sizeof(ctypes.c_long) == 8 else "uint32",
}  # fmt: skip


# -- where a tensor's elements lie


def _layout(x: Tensor) -> tuple[Any, int, tuple[int, ...]]:
    """(an object that keeps the memory alive, address of the first element, strides in elements).

    Raises UnsupportedError where the elements are not in this process's memory in their own dtype.
    """
    if _is_numpy(x.data) and x.dtype.name in _CODES:
        array = x.data
        width = x.dtype.itemsize
        if all(s % width == 0 for s in array.strides):
            return array, array.ctypes.data, tuple(s // width for s in array.strides)
    if isinstance(x.backend, PythonBackend) and x.dtype.code not in (None, "e"):
        buffer, offset, strides = x.data
        keeper = memoryview(buffer)
        address = _address(keeper) + offset * x.dtype.itemsize
        return keeper, address, row_major(x.shape) if strides is None else strides
    raise UnsupportedError(f"{x.dtype} on backend {x.backend!r} cannot be shared; copy it with numpy.asarray")


def _is_numpy(data: Any) -> bool:
    return type(data).__module__ == "numpy"


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def _address(view: memoryview) -> int:
    """Where the bytes of a contiguous view lie (also of a read-only one, which ctypes itself refuses)."""
    found = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(found), 0)
    address = found.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(found))
    return address


# -- to NumPy


def array_interface(x: Tensor) -> dict[str, Any]:
    """`__array_interface__`, version 3. Raises AttributeError where the memory cannot be shared."""
    try:
        keeper, address, strides = _layout(x)
    except UnsupportedError as error:
        raise AttributeError(str(error)) from None
    text = _CODES[x.dtype.name][1]
    if text is None:
        raise AttributeError(f"NumPy has no {x.dtype} of its own")
    width = x.dtype.itemsize
    return {
        "version": 3,
        "shape": x.shape,
        "typestr": text,
        "data": (address, False),
        "strides": tuple(s * width for s in strides),
        "__keeper": keeper,
    }


def to_numpy(x: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """`__array__`: over the same memory where it can be shared; narrow dtypes become those of ml_dtypes."""
    import numpy as np

    from .numpy_backend.storage import from_bytes

    if _is_numpy(x.data):
        array = x.data
    elif x.dtype.kind == "string":
        array = np.array(x.backend.to_list(x), dtype=object).reshape(x.shape)
    else:
        shared = _shared_numpy(x)
        if shared is None and copy is False:
            raise ValueError(f"{x.dtype} on backend {x.backend!r} reaches NumPy only by a copy")
        array = from_bytes(x.backend.to_bytes(x), x.dtype, x.shape) if shared is None else shared
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ValueError("another dtype needs a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _shared_numpy(x: Tensor) -> Any:
    import numpy as np

    class Shared:
        def __init__(self) -> None:
            self.__array_interface__ = array_interface(x)
            self.keeper = x.data

    try:
        return np.asarray(Shared())
    except AttributeError:
        return None


def to_buffer(x: Tensor, flags: int = 0) -> memoryview:
    """`__buffer__` (Python 3.12 and later): a memoryview of the elements in their shape."""
    try:
        keeper, _, strides = _layout(x)
    except UnsupportedError as error:
        raise BufferError(str(error)) from None
    if _is_numpy(keeper):
        return memoryview(keeper)
    if strides != row_major(x.shape) or len(keeper) != x.size:
        raise BufferError("the tensor is a view; make it contiguous with emberlet.asarray(x, copy=True)")
    code = "?" if x.dtype.is_bool else x.dtype.code
    view = keeper.cast("B")
    return view.cast(code, x.shape) if x.shape else view.cast(code)


# -- DLPack


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = [
    ("dl_tensor", _DLTensor),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", _Deleter),
]

_CPU = 1
_NAME = b"dltensor"
_USED = b"used_dltensor"
_exported: dict[int, tuple[Any, ...]] = {}  # what each exported capsule keeps alive, by the address of its struct

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _release(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


_delete = _Deleter(_release)


_raw_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _capsule_dies(capsule: int) -> None:
    # A consumer that took the tensor has renamed the capsule and will call the deleter itself.
    if _raw_is_valid(capsule, _NAME):
        _exported.pop(_raw_pointer(capsule, _NAME), None)


_forget = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_capsule_dies)


def dlpack_device(x: Tensor) -> tuple[int, int]:
    """`__dlpack_device__`: (1, 0), the CPU. Raises BufferError where the elements are elsewhere."""
    if not (_is_numpy(x.data) or isinstance(x.backend, PythonBackend)):
        raise BufferError(f"backend {x.backend!r} keeps its elements where DLPack cannot see them; use .to('numpy')")
    return (_CPU, 0)


def to_dlpack(
    x: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """`__dlpack__`: a capsule over x's memory. Raises BufferError for a dtype or device that cannot be exported."""
    dlpack_device(x)
    if stream is not None:
        raise BufferError("the CPU has no streams: stream must be None")
    if dl_device is not None and tuple(dl_device) != (_CPU, 0):
        raise BufferError(f"cannot export to DLPack device {dl_device}, only to the CPU, (1, 0)")
    if copy:
        x = x.backend.from_bytes(bytes(x.backend.to_bytes(x)), x.dtype, x.shape)
    try:
        keeper, address, strides = _layout(x)
    except UnsupportedError as error:
        raise BufferError(str(error)) from None
    shape_c = (ctypes.c_int64 * max(1, x.ndim))(*x.shape)
    strides_c = (ctypes.c_int64 * max(1, x.ndim))(*strides)
    managed = _DLManagedTensor()
    t = managed.dl_tensor
    t.data, t.device_type, t.device_id, t.ndim = address, _CPU, 0, x.ndim
    t.code, t.bits, t.lanes, t.byte_offset = _CODES[x.dtype.name][0], x.dtype.bits, 1, 0
    t.shape = ctypes.cast(shape_c, ctypes.POINTER(ctypes.c_int64))
    t.strides = ctypes.cast(strides_c, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _delete
    where = ctypes.addressof(managed)
    _exported[where] = (managed, shape_c, strides_c, keeper)
    return _new_capsule(where, _NAME, ctypes.cast(_forget, ctypes.c_void_p))


class _Imported:
    """Keeps a DLPack tensor alive for as long as views of its memory are."""

    def __init__(self, address: int) -> None:
        self.managed = _DLManagedTensor.from_address(address)
        self.address = address

    def __del__(self) -> None:
        if self.managed.deleter:
            self.managed.deleter(ctypes.cast(self.address, ctypes.POINTER(_DLManagedTensor)))


def from_dlpack(obj: Any, backend: Backend, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of any object with `__dlpack__` that lies on the CPU."""
    if isinstance(obj, Tensor):
        from ..functional.transfer import duplicate, move

        if copy is False and obj.backend is not backend:
            raise ValueError("another backend needs a copy, and copy=False forbids it")
        return duplicate(obj) if copy and obj.backend is backend else move(obj, backend)
    device = obj.__dlpack_device__()
    if int(device[0]) != _CPU:
        raise BufferError(f"only memory of the CPU can be imported, found DLPack device {tuple(device)}")
    capsule = obj.__dlpack__()
    if not _is_capsule(capsule, _NAME):
        raise BufferError("__dlpack__ did not return an unused DLPack capsule")
    address = _pointer_of(capsule, _NAME)
    _rename(capsule, _USED)
    keeper = _Imported(address)
    t = keeper.managed.dl_tensor
    dtype = _BY_CODE.get((t.code, t.bits))
    if dtype is None or t.lanes != 1:
        raise DTypeError(f"DLPack type (code {t.code}, {t.bits} bits, {t.lanes} lanes) has no emberlet dtype")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else row_major(shape)
    return _over_memory(keeper, t.data or 0, t.byte_offset, dtype, shape, strides, backend, copy)


def _over_memory(
    keeper: Any,
    address: int,
    byte_offset: int,
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    backend: Backend,
    copy: bool | None,
) -> Tensor:
    """A tensor over foreign memory: a strided view where the backend knows strides, else a copy."""
    from ..functional.transfer import duplicate, move

    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) if all(shape) else 0
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) if all(shape) else -1
    width = dtype.itemsize
    count = high - low + 1
    memory = (ctypes.c_char * (count * width)).from_address(address + byte_offset + low * width)
    memory._keeper = keeper  # the view below keeps `memory`, and so its owner
    if dtype.code in (None, "e"):
        import numpy as np

        from .numpy_backend.storage import numpy_dtype

        array = np.frombuffer(memory, numpy_dtype(dtype))
        array = np.lib.stride_tricks.as_strided(array[-low:], shape, [s * width for s in strides])
        x = Tensor(array, dtype, shape, get_backend("numpy"))
    else:
        buffer = memoryview(memory).cast("B").cast(dtype.code)
        home = backend if isinstance(backend, PythonBackend) else get_backend("python")
        x = Tensor((buffer, -low, None if strides == row_major(shape) else strides), dtype, shape, home)
        if backend.name == "numpy":
            import numpy as np

            from .numpy_backend.storage import numpy_dtype

            array = np.frombuffer(buffer, numpy_dtype(dtype))
            array = np.lib.stride_tricks.as_strided(array[-low:], shape, [s * width for s in strides])
            x = Tensor(array, dtype, shape, backend)
    if x.backend is not backend:
        if copy is False:
            raise ValueError(f"backend {backend!r} needs a copy, and copy=False forbids it")
        return move(x, backend)
    return duplicate(x) if copy else x


# -- from other arrays


def from_array(obj: Any, dtype: DType | None, backend: Backend, copy: bool | None = None) -> Tensor:
    """A tensor from a NumPy array or scalar, or anything that speaks its protocols, DLPack or the buffer protocol.

    Raises DTypeError for what none of them describes.
    """
    x = _described(obj, backend, copy)
    if dtype is not None and dtype is not x.dtype:
        if copy is False:
            raise ValueError("another dtype needs a copy, and copy=False forbids it")
        x = x.backend.cast(x, dtype)
    return x


def _described(obj: Any, backend: Backend, copy: bool | None) -> Tensor:
    if hasattr(obj, "__array_interface__") or hasattr(obj, "__array__"):
        return _from_numpy(obj, backend, copy)
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj, backend, copy)
    try:
        view = memoryview(obj)
    except TypeError:
        if hasattr(obj, "__index__"):
            return backend.full((), obj.__index__(), dtypes.int64)
        if hasattr(obj, "__float__"):
            return backend.full((), float(obj), dtypes.float32)
        raise DTypeError(
            f"cannot make a tensor from {type(obj).__name__}; pass numbers, nested lists, an array or a buffer"
        ) from None
    name = _FORMATS.get(view.format.lstrip("<=@"))
    if name is None:
        raise DTypeError(f"a buffer of format {view.format!r} has no emberlet dtype")
    if not view.c_contiguous:
        view = memoryview(bytes(view)).cast("B")
        if copy is False:
            raise ValueError("a strided buffer needs a copy, and copy=False forbids it")
    shape = memoryview(obj).shape or ()
    if view.format != "B" or view.ndim != 1:
        view = view.cast("B")
    return backend.from_bytes(bytes(view) if copy else view, dtypes.BY_NAME[name], shape)


def _from_numpy(obj: Any, backend: Backend, copy: bool | None) -> Tensor:
    import numpy as np

    from .numpy_backend.storage import emberlet_dtype, to_bytes

    array = np.asarray(obj)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    found = emberlet_dtype(array.dtype)
    if found is dtypes.string and array.dtype.kind != "O":
        array = array.astype(object)
    if found is dtypes.string and not all(isinstance(v, str) for v in array.flat):
        kinds = sorted({type(v).__name__ for v in array.flat})
        raise DTypeError(f"an array of objects must hold str only, found {', '.join(kinds)}")
    if found is None:
        raise DTypeError(f"NumPy dtype {array.dtype} has no emberlet counterpart")
    if backend.name == "numpy":
        if copy:
            array = array.copy()
        return Tensor(array, found, array.shape, backend)
    if found is dtypes.string:
        return backend.from_list(array.reshape(-1).tolist(), found, array.shape)
    if copy is False and not array.flags.c_contiguous:
        raise ValueError("a strided array needs a copy here, and copy=False forbids it")
    data = to_bytes(array, found)
    return backend.from_bytes(bytes(data) if copy else data, found, array.shape)
