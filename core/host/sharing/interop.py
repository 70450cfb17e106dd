"""Shares memory with NumPy and through the buffer protocol (DLPack is in dlpack.py).

Elements are copied only if they are outside this process's memory, or in a layout that the other library cannot read.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from struct import calcsize
from typing import Any

from ... import dtypes
from ...backend import Backend
from ...dtypes import DType
from ...errors import ArgumentError, DTypeError, UnsupportedError, refuse
from ...python_backend import PythonBackend
from ...shapes import strides as row_major
from ...tensor import Tensor
from .memory import in_buffer, is_numpy, layout, mismatch, settled

# NumPy's type strings
_TYPES = {
    "float64": "<f8", "float32": "<f4", "float16": "<f2", "int64": "<i8", "int32": "<i4", "int16": "<i2",
    "int8": "|i1", "uint64": "<u8", "uint32": "<u4", "uint16": "<u2", "uint8": "|u1", "bool": "|b1",
}  # fmt: skip
# the buffer protocol's
_FORMATS = {
    "d": "float64", "f": "float32", "e": "float16", "q": "int64", "i": "int32", "h": "int16", "b": "int8",
    "Q": "uint64", "I": "uint32", "H": "uint16", "B": "uint8", "?": "bool",
    "l": f"int{8 * calcsize('l')}", "L": f"uint{8 * calcsize('l')}",
}  # fmt: skip


def array_interface(x: Tensor) -> dict[str, Any]:
    """`__array_interface__`, version 3: over the tensor's memory if NumPy can read it, else over a copy. `data` is an
    object that holds the memory, which the consumer keeps, since an assignment may give x other memory.

    Raises:
        AttributeError: NumPy has no such dtype.
    """
    text = _TYPES.get(x.dtype.name)
    if text is None:
        raise AttributeError(f"NumPy has no counterpart of {x.dtype}")
    if is_numpy(x.data):
        own: dict[str, Any] = x.data.__array_interface__
        if own["strides"] is None and own["typestr"] == text and own["shape"] == x.shape:  # contiguous
            own["data"] = x.data
            own["strides"] = x.data.strides  # Pillow takes an object without them for a buffer
            return own
    elif not isinstance(x.backend, PythonBackend):
        return _copied(x, text)
    try:
        data, offset, strides = in_buffer(x)
    except UnsupportedError:
        return _copied(x, text)
    return {"version": 3, "shape": x.shape, "typestr": text, "data": data, "offset": offset, "strides": strides}


def _copied(x: Tensor, text: str) -> dict[str, Any]:
    """The same over a copy, which the consumer of `data` keeps alive."""
    data = x.backend.to_bytes(x)
    if len(data) != x.nbytes:
        raise mismatch(x, len(data) // x.dtype.itemsize)
    steps = tuple(s * x.dtype.itemsize for s in row_major(x.shape))
    return {"version": 3, "shape": x.shape, "typestr": text, "data": data, "strides": steps}


def to_numpy(x: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """`__array__`: over the same memory if it can be shared. ml_dtypes represents the dtypes that NumPy lacks.

    Raises:
        ValueError: A copy is needed, and `copy` is False.
    """
    import numpy as np

    from ..numpy_backend.storage import from_bytes

    if is_numpy(x.data):
        array = x.data
    elif x.dtype.kind == "string":
        array = np.array(x.backend.to_list(x), dtype=object).reshape(x.shape)
    else:
        shared = _shared_numpy(x)
        if shared is None and copy is False:
            raise ArgumentError(f"{x.dtype} on backend {x.backend!r} reaches NumPy only by a copy")
        array = from_bytes(x.backend.to_bytes(x), x.dtype, x.shape) if shared is None else shared
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ArgumentError("another dtype needs a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _shared_numpy(x: Tensor) -> Any:
    """An array over the memory of a tensor of the python backend; None if NumPy cannot share it."""
    import numpy as np

    if not isinstance(x.backend, PythonBackend) or x.dtype.name not in _TYPES or x.dtype is dtypes.float16:
        return None
    buffer, offset, strides = settled(x)
    width = x.dtype.itemsize
    flat = np.frombuffer(buffer, _TYPES[x.dtype.name]) if len(buffer) else np.empty(0, _TYPES[x.dtype.name])
    steps = [s * width for s in (row_major(x.shape) if strides is None else strides)]
    return np.lib.stride_tricks.as_strided(flat[offset:], x.shape, steps)


def numpy_function(x: Tensor, function: Any, types: Any, args: Any, options: Any) -> Any:
    """`__array_function__`: call a NumPy function with every tensor converted to an array. It returns arrays."""
    return function(*_arrays(args), **_arrays(options))


def _arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return to_numpy(value)
    if isinstance(value, dict):
        return {k: _arrays(v) for k, v in value.items()}
    return type(value)([_arrays(v) for v in value]) if type(value) in (list, tuple) else value


def to_buffer(x: Tensor, flags: int = 0) -> memoryview:
    """`__buffer__` (Python 3.12 and later): a memoryview of the elements, with the tensor's shape.

    Raises:
        BufferError: The elements are not contiguous in this process's memory, or the shape has no memoryview.
    """
    try:
        keeper, _, strides = layout(x)
    except UnsupportedError as error:
        raise BufferError(str(error)) from None
    if is_numpy(keeper):
        return memoryview(keeper)
    if strides != row_major(x.shape) or len(keeper) != x.size:
        raise BufferError("the tensor is a view; make it contiguous with emberlet.asarray(x, copy=True)")
    code = "?" if x.dtype.is_bool else x.dtype.code
    view = keeper.cast("B")
    if not x.size and len(x.shape) != 1:
        raise BufferError(f"a memoryview has no shape {x.shape}")
    return view.cast(code, x.shape) if x.size else view.cast(code)


def from_array(obj: Any, dtype: DType | None, backend: Backend, copy: bool | None = None) -> Tensor:
    """A tensor from a NumPy array or scalar, or from an object that supports NumPy's protocols, DLPack or the buffer
    protocol.

    Raises:
        DTypeError: The object supports none of them, or its elements have no dtype here.
        ValueError: A copy is needed, and `copy` is False.
    """
    if isinstance(obj, complex) and dtype is not None and dtype.kind == "complex":
        return _on(backend).full((), complex(obj), dtype)  # in that precision from the start
    x = _described(obj, backend, copy)
    if dtype is not None and dtype is not x.dtype:
        if copy is False:
            raise ArgumentError("another dtype needs a copy, and copy=False forbids it")
        x = x.backend.cast(x, dtype)
    return x


def is_javascript(obj: Any) -> bool:
    """Whether this is a JavaScript value that Pyodide did not convert, such as an array."""
    return type(obj).__name__ == "JsProxy"


def _described(obj: Any, backend: Backend, copy: bool | None) -> Tensor:
    if hasattr(type(obj), "__array_interface__") or hasattr(obj, "__array_interface__"):  # the former does not make one
        return _from_numpy(obj, backend, copy)
    if hasattr(obj, "__dlpack__"):  # before __array__: NumPy has no bfloat16, which PyTorch has
        from .dlpack import from_dlpack

        try:
            return from_dlpack(obj, backend, copy)
        except (BufferError, DTypeError, RuntimeError, TypeError):
            if not hasattr(obj, "__array__"):
                raise
    if hasattr(obj, "__array__"):
        return _from_numpy(obj, backend, copy)
    if isinstance(obj, complex):
        return _on(backend).full((), obj, dtypes.dtype("complex64"))
    try:
        view = memoryview(obj)
    except TypeError:
        view = None
    if view is None:
        return _from_number(obj, backend)
    name = _FORMATS.get(view.format.lstrip("<=@"))
    if name is None:
        raise DTypeError(f"a buffer of format {view.format!r} has no emberlet dtype")
    strided = not view.c_contiguous
    if strided and copy is False:
        raise ArgumentError("a strided buffer needs a copy, and copy=False forbids it")
    data = bytes(view) if copy or strided else view.cast("B")
    return backend.from_bytes(data, dtypes.BY_NAME[name], view.shape)


def _from_number(obj: Any, backend: Backend) -> Tensor:
    if hasattr(obj, "__index__"):
        return backend.full((), obj.__index__(), dtypes.int64)
    if is_javascript(obj):
        raise DTypeError("cannot make a tensor from a JavaScript value; pass what its .to_py() gives")
    if not hasattr(obj, "__float__"):
        refuse("no tensor", type(obj).__name__)
    return backend.full((), float(obj), dtypes.float32)


def _on(backend: Backend) -> Any:
    """`backend`, which must have complex tensors."""
    import_module("emberlet.host.complex_tensors").refuse_elsewhere(backend)
    return backend


def _from_numpy(obj: Any, backend: Backend, copy: bool | None) -> Tensor:
    np, emberlet_dtype, to_bytes = _numpy_parts()
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
    if found.kind == "complex":
        _on(backend)
    if backend.name == "numpy":
        if copy:
            array = array.copy()
        return Tensor(array, found, array.shape, backend)
    if found is dtypes.string:
        return backend.from_list(array.reshape(-1).tolist(), found, array.shape)
    if copy is False and not array.flags.c_contiguous:
        raise ArgumentError("a strided array needs a copy here, and copy=False forbids it")
    data = to_bytes(array, found)
    return backend.from_bytes(bytes(data) if copy else data, found, array.shape)


@cache
def _numpy_parts() -> tuple[Any, Any, Any]:
    """What `_from_numpy` needs, imported once: an import statement takes as long as the rest of it."""
    import numpy as np

    from ..numpy_backend.storage import emberlet_dtype, to_bytes

    return np, emberlet_dtype, to_bytes


def array_of(data: Any, dtype: Any, copy: bool | None) -> Any:
    """`__array__` of a TensorData."""
    import numpy as np

    return np.asarray(data.to_tensor("numpy"), dtype=dtype, copy=copy)
