"""What NumPy, DLPack and the buffer protocol ask of a tensor, loaded when first asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _late(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        from . import interop

        return getattr(interop, name)(self, *args, **options)

    return method


def attach(tensor: Any) -> None:
    """Give the class `Tensor` the methods by which other libraries share its memory."""
    tensor.__array__ = _late("to_numpy")
    tensor.__dlpack__ = _late("to_dlpack")
    tensor.__dlpack_device__ = _late("dlpack_device")
    tensor.__buffer__ = _late("to_buffer")
    tensor.__array_interface__ = property(_late("array_interface"))
