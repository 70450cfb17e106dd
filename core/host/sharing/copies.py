"""Tensors for `pickle` and `copy`: as their bytes, shape and dtype, and the name of their backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...backend import Backend
from ...data import TensorData
from ...tensor import Tensor


def reduced(x: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """What pickle keeps of a tensor. Unpickling makes it on the same backend, which must be there."""
    data = x.to_data()
    elements = list(data.bytes) if x.dtype.kind == "string" else bytes(data.bytes)
    return restored, (elements, x.shape, x.dtype.name, x.backend)


def restored(elements: Any, shape: tuple[int, ...], dtype: str, backend: Backend) -> Tensor:
    """The tensor that was pickled so."""
    made: Tensor = TensorData(elements, shape, dtype).to_tensor(backend)
    return made


def alias(x: Tensor) -> Tensor:
    """Another tensor of the same elements: assigning to one of the two leaves the other as it is."""
    return Tensor(x.data, x.dtype, x.shape, x.backend)


def deep_copy(x: Tensor, memo: dict[int, Any]) -> Tensor:
    """A tensor whose elements lie in memory of their own."""
    function, arguments = reduced(x)
    return function(*arguments)
