"""The methods of Tensor that NumPy, DLPack, the buffer protocol, pickle and copy call, each imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from types import GenericAlias
from typing import Any

from ... import lookup
from ...dtypes import DType
from ...errors import refuse
from ...names import method_names
from ..interface.elsewhere.names import find_method
from ..interface.guarding import guarded
from ..public import Method, find
from .fields import protect


def _late(file: str, name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return _imported(file, name)(self, *args, **options)

    return method


@cache
def _imported(file: str, name: str) -> Any:
    # By name: an import statement would be a circle, since these files import Tensor.
    return getattr(import_module(f"emberlet.host.{file}"), name)


def _float(self: Any) -> float:
    return float(self.item())


def _complex(self: Any) -> complex:
    return complex(self.item())


def _from_primitive(primitive: Any) -> Any:
    """Burn's: the tensor in a TensorPrimitive."""
    return primitive.tensor()


def attach(tensor: Any) -> None:
    """Add to the class `Tensor` the methods that other libraries call to share or copy its memory."""
    _Tensor[0] = tensor
    tensor.__array_priority__ = 1000  # numpy_array + tensor must ask the tensor
    tensor.__array__ = _array
    tensor.__array_function__ = _late("sharing.interop", "numpy_function")
    tensor.__dlpack__ = _dlpack
    tensor.__dlpack_device__ = _dlpack_device
    tensor.__buffer__ = _late("sharing.interop", "to_buffer")
    tensor.__array_interface__ = property(_late("sharing.interop", "array_interface"))
    tensor.tobytes = _bytes
    tensor.__complex__ = _complex
    tensor.named = _named
    tensor.from_primitive = staticmethod(_from_primitive)
    tensor.__class_getitem__ = classmethod(GenericAlias)  # Tensor[float], as type checkers know it
    tensor._repr_html_ = _late("tensors.showing", "html")
    # Not on MicroPython, where 2.0 * tensor would ask the tensor for a float.
    tensor.__float__ = _float
    DType.__eq__ = _same_dtype  # type: ignore[method-assign, assignment]
    tensor.__array_namespace__ = _namespace
    tensor.__setitem__ = _assign
    tensor.__reduce__ = _late("sharing.copies", "reduced")
    tensor.__copy__ = _late("sharing.copies", "alias")
    tensor.__deepcopy__ = _late("sharing.copies", "deep_copy")
    for name in method_names():
        setattr(tensor, name, Method(name))
    tensor.__getattr__ = find_method
    import_module("emberlet.tensor")._operand = _operand  # type: ignore[attr-defined]
    protect(tensor)
    for module in ("emberlet.errors", "emberlet.dtypes"):
        vars(import_module(module)).update(__getattr__=partial(find, module))
    lookup.gate = guarded  # type: ignore[assignment]


def _operand(other: Any) -> bool:
    """Whether an operator takes `other`: as in core/tensor.py, and complex numbers."""
    if isinstance(other, (_Tensor[0], bool, int, float, complex)):
        return True
    return hasattr(other, "__array_interface__") or hasattr(other, "__dlpack__")


_Tensor: list[Any] = [()]


def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """A NumPy array, over the same memory if it can be shared."""
    return _imported("sharing.interop", "to_numpy")(self, dtype, copy)


def _dlpack(
    self: Any,
    /,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule, as the array API standard describes it."""
    to_dlpack = _imported("sharing.dlpack", "to_dlpack")
    return to_dlpack(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def _dlpack_device(self: Any, /) -> tuple[int, int]:
    """DLPack's type and number of the device that holds the elements."""
    device: tuple[int, int] = _imported("sharing.dlpack", "dlpack_device")(self)
    return device


def _named(self: Any, *names: str) -> Any:
    """The tensor with a name for each axis: `x.named("batch", "time", "feature")`."""
    return _imported("tensors.named_axes", "named")(self, *names)


def _assign(self: Any, key: Any, value: Any, /) -> None:
    """`self[key] = value`."""
    if self.dtype.name == "complex128":
        value = _imported("complex_tensors.gate", "precise")(value, self.backend)
    _imported("assignment", "assign")(self, key, value)


def _bytes(self: Any) -> bytes:
    """The elements as bytes in row-major order, as `numpy.ndarray.tobytes` returns them."""
    return bytes(self.backend.to_bytes(self))


def _same_dtype(self: DType, other: object) -> bool:
    """Whether `other` is this dtype, or another library's name for it: "float32", numpy.float32, "f4"."""
    if self is other:
        return True
    if other is None or isinstance(other, DType):
        return False
    from ...dtypes.alias import alias

    return alias(other) is self


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The module emberlet. Raises ValueError for a version of the array API that it does not support."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        refuse("array API", api_version)
    return import_module("emberlet")
