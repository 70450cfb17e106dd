"""Fields of Tensor that cannot be assigned to: a shape or dtype that does not match the elements would read foreign
memory."""

from __future__ import annotations

from typing import Any

from ...errors import EmberletError

_INSTEAD = {
    "data": "x[...] = values changes the elements",
    "dtype": "x.astype(dtype) returns the elements in another dtype",
    "shape": "x.reshape(shape) returns the elements in another shape",
    "backend": 'x.to("wgpu") returns a copy on another backend',
}


class FieldError(EmberletError, AttributeError):
    """A field of a Tensor was assigned to or deleted."""


def protect(tensor: Any) -> None:
    """Make the four fields of the class `Tensor` read-only. `replace_data` is the only way to change one."""
    tensor.__init__ = _begin
    tensor.__setattr__ = _set
    tensor.__delattr__ = _delete


def replace_data(x: Any, data: Any) -> None:
    """Give x other elements of the same dtype, shape and backend."""
    x.__dict__["data"] = data


def _begin(self: Any, data: Any, dtype: Any, shape: Any, backend: Any) -> None:
    # Faster than four calls of object.__setattr__: creating a tensor is part of every operation.
    fields = self.__dict__
    fields["data"] = data
    fields["dtype"] = dtype
    fields["shape"] = shape
    fields["backend"] = backend


def _set(self: Any, name: str, value: Any) -> None:
    if name in _INSTEAD:
        raise FieldError(f"a tensor's {name} is read-only: {_INSTEAD[name]}")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    if name in _INSTEAD:
        raise FieldError(f"a tensor's {name} cannot be deleted")
    object.__delattr__(self, name)
