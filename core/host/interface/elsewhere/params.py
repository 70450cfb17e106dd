"""What Burn and PyTorch call the methods of Param, and Param and TensorData completed on CPython."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable
from importlib import import_module
from typing import Any

# a method elsewhere -> what it returns; none of them initializes a lazy Param, except the value's own
METHODS: dict[str, Callable[[Any], Any]] = {
    "consume": lambda p: (p.id, p.val()),
    "into_value": lambda p: p.val(),
    "is_require_grad": lambda p: p.require_grad,
    "lazy_device": lambda p: p.backend,
    "lazy_is_require_grad": lambda p: p.require_grad,
    "lazy_shape": lambda p: p.shape,
}
# an attribute elsewhere
VALUES: dict[str, Callable[[Any], Any]] = {"device": lambda p: repr(p.backend)}

ADVICE = {
    "data": "write param.val() for the tensor, param.set(tensor) to replace it",
    "from_mapped_value": "write Param(tensor, id).load_mapper(function)",
    "grad": "write param.val().grad(gradients), where backward returned the gradients",
    "param_mapper": "write param.load_mapper(function) and param.save_mapper(function)",
    "requires_grad": "write param.require_grad",
    "requires_grad_": "write param.set_require_grad(True)",
}


def attach(param: Any) -> None:
    """Complete the class Param, and let a signal's handler use one while a thread holds the lock of all of them."""
    vars(import_module("emberlet.param"))["_guard"] = RLock()
    for name, method in import_module("emberlet.param.methods").METHODS.items():
        setattr(param, name, method)

    def initialized(id: Any, value: Any) -> Any:
        """Burn's Param::initialized: `Param(value, id)`."""
        return param(value, id)

    param.initialized = staticmethod(initialized)
    param.__getattr__ = _find


def _find(self: Any, name: str) -> Any:
    if name in METHODS:
        return lambda: METHODS[name](self)
    if name in VALUES:
        return VALUES[name](self)
    absent = import_module("emberlet.host.interface.elsewhere.names").Absent
    raise absent("Param", name, lambda: dir(type(self)), ADVICE)


def attach_data(tensor_data: Any) -> None:
    """Complete the class TensorData."""

    def from_(values: Any) -> Any:
        """Burn's TensorData::from: `from_list(values)`."""
        return tensor_data.from_list(values)

    tensor_data.from_ = staticmethod(from_)
    tensor_data.as_slice = _slice
    tensor_data.as_mut_slice = _changing


def _slice(self: Any) -> Any:
    """Burn's: the elements in a row, as a memoryview that cannot be written to. Raises DTypeError for elements that
    Python does not read: float16, bfloat16, 8-bit floats and narrower ones, complex numbers, strings."""
    return _elements(self, self.bytes).toreadonly()


def _changing(self: Any) -> Any:
    """As `as_slice`; what is written changes this data, not the tensor that it comes from."""
    held = bytearray(self.bytes)
    view = _elements(self, held)
    self.bytes = held
    return view


def _elements(data: Any, held: Any) -> Any:
    code = "?" if data.dtype.name == "bool" else data.dtype.code
    if code is None or len(code) != 1 or data.dtype.kind == "string":
        raise _unread(data)
    view: Any = memoryview(held).cast("B")
    try:
        return view.cast(code)
    except ValueError:  # float16
        raise _unread(data) from None


def _unread(data: Any) -> Exception:
    from ....errors import DTypeError

    return DTypeError(f"Python has no memoryview of {data.dtype}; to_vec() gives a list")
