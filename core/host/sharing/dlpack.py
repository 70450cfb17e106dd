"""DLPack through ctypes, so that the python backend supports it without NumPy."""

from __future__ import annotations

import ctypes
from typing import Any

from ... import dtypes
from ...backend import Backend, get_backend
from ...dtypes import DType
from ...errors import ArgumentError, DTypeError, UnsupportedError
from ...python_backend import PythonBackend
from ...shapes import strides as row_major
from ...tensor import Tensor
from .memory import is_numpy, layout

# dtype -> DLPack's type code: 0 int, 1 uint, 2 float, 4 bfloat16, 6 bool
_CODES = {
    "float64": 2, "float32": 2, "float16": 2, "bfloat16": 4, "int64": 0, "int32": 0, "int16": 0, "int8": 0,
    "uint64": 1, "uint32": 1, "uint16": 1, "uint8": 1, "bool": 6,
}  # fmt: skip
_BY_CODE = {(code, dtypes.BY_NAME[name].bits): dtypes.BY_NAME[name] for name, code in _CODES.items()}


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

_CPU, _WEBGPU = 1, 15
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
    """`__dlpack_device__`: (1, 0) for the CPU; (15, the adapter's number) for WebGPU."""
    if is_numpy(x.data) or isinstance(x.backend, PythonBackend):
        return (_CPU, 0)
    return (_WEBGPU, x.backend.index)


def to_dlpack(
    x: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """`__dlpack__`: a capsule over x's memory. A tensor on a GPU is copied to the CPU if `dl_device` is (1, 0).

    Raises:
        BufferError: The dtype or the device cannot be exported, or a GPU's tensor needs a copy that was not allowed.
    """
    if stream is not None:
        raise BufferError("the CPU has no streams: stream must be None")
    if dl_device is not None and tuple(dl_device) != (_CPU, 0):
        raise BufferError(f"cannot export to DLPack device {dl_device}, only to the CPU, (1, 0)")
    if dlpack_device(x) != (_CPU, 0):
        if dl_device is None or copy is False:
            raise BufferError(
                f"backend {x.backend!r} exports copies on the CPU only: use .to('numpy'), or dl_device=(1, 0)"
            )
        data = bytes(x.backend.to_bytes(x))
        x = get_backend("python").from_bytes(data, x.dtype, x.shape)
    if copy:
        x = x.backend.from_bytes(bytes(x.backend.to_bytes(x)), x.dtype, x.shape)
    try:
        keeper, address, strides = layout(x)
    except UnsupportedError as error:
        raise BufferError(str(error)) from None
    shape_c = (ctypes.c_int64 * max(1, x.ndim))(*x.shape)
    strides_c = (ctypes.c_int64 * max(1, x.ndim))(*strides)
    managed = _DLManagedTensor()
    t = managed.dl_tensor
    t.data, t.device_type, t.device_id, t.ndim = address, _CPU, 0, x.ndim
    t.code, t.bits, t.lanes, t.byte_offset = _CODES[x.dtype.name], x.dtype.bits, 1, 0
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
    """A tensor over the memory of an object with `__dlpack__`.

    Raises:
        BufferError: The memory is not the CPU's, or the capsule was used before.
        DTypeError: No dtype has that type code and width.
        ValueError: The backend needs a copy, and `copy` is False.
    """
    if isinstance(obj, Tensor):
        from ...functional.creation.transfer import duplicate, move

        if copy is False and obj.backend is not backend:
            raise ArgumentError("another backend needs a copy, and copy=False forbids it")
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
    """A tensor over foreign memory: a strided view if the backend supports strides, else a copy."""
    from ...functional.creation.transfer import duplicate, move

    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) if all(shape) else 0
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) if all(shape) else -1
    width = dtype.itemsize
    count = high - low + 1
    memory = (ctypes.c_char * (count * width)).from_address(address + byte_offset + low * width)
    memory._keeper = keeper  # the view below keeps `memory`, and so its owner
    if dtype.code in (None, "e"):
        import numpy as np

        from ..numpy_backend.storage import numpy_dtype

        array = np.frombuffer(memory, numpy_dtype(dtype))
        array = np.lib.stride_tricks.as_strided(array[-low:], shape, [s * width for s in strides])
        x = Tensor(array, dtype, shape, get_backend("numpy"))
    else:
        buffer = memoryview(memory).cast("B").cast(dtype.code)
        home = backend if isinstance(backend, PythonBackend) else get_backend("python")
        x = Tensor((buffer, -low, None if strides == row_major(shape) else strides), dtype, shape, home)
        if backend.name == "numpy":
            import numpy as np

            from ..numpy_backend.storage import numpy_dtype

            array = np.frombuffer(buffer, numpy_dtype(dtype))
            array = np.lib.stride_tricks.as_strided(array[-low:], shape, [s * width for s in strides])
            x = Tensor(array, dtype, shape, backend)
    if x.backend is not backend:
        if copy is False:
            raise ArgumentError(f"backend {backend!r} needs a copy, and copy=False forbids it")
        return move(x, backend)
    return duplicate(x) if copy else x
