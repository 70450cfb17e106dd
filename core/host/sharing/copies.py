"""Pickling and copying tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...backend import Backend
from ...tensor import Tensor
from ...tensor_data import TensorData


def reduced(x: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """`__reduce__`: the elements, shape, dtype and backend. Unpickling needs the same backend."""
    data = x.to_data()
    elements = list(data.bytes) if x.dtype.kind == "string" else bytes(data.bytes)
    return restored, (elements, x.shape, x.dtype.name, x.backend)


def restored(elements: Any, shape: tuple[int, ...], dtype: str, backend: Backend) -> Tensor:
    """The tensor that `reduced` pickled."""
    made: Tensor = TensorData(elements, shape, dtype).to_tensor(backend)
    return made


def alias(x: Tensor) -> Tensor:
    """`__copy__`: a tensor with the same elements. Assigning to one of the two does not change the other."""
    return Tensor(x.data, x.dtype, x.shape, x.backend)


def deep_copy(x: Tensor, memo: dict[int, Any]) -> Tensor:
    """`__deepcopy__`: a tensor with its own copy of the elements."""
    function, arguments = reduced(x)
    return function(*arguments)
