"""The tensors of batches and outputs, whatever holds them: found, moved, and put into another of the same kind."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from ...backend import Backend
from ...functional.arrays import asarray
from ...tensor import Tensor

_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def tensors(value: Any) -> Iterator[Tensor]:
    """Every Tensor in a tuple, list, dict, or the attributes of an object, in order."""
    found: list[Tensor] = []
    replaced(value, lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
    yield from found


def replaced(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """`value` with every Tensor changed: a copy where it holds some."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, _PLAIN) or isinstance(value, type):
        return value
    if isinstance(value, dict):
        return _same_kind(value, lambda child: replaced(child, change))
    if isinstance(value, (list, tuple)):
        parts = [replaced(child, change) for child in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    held = _attributes(value)
    new = {key: replaced(child, change) for key, child in held.items()}
    if all(new[key] is child for key, child in held.items()):
        return value
    out = copy.copy(value)
    for key, child in new.items():
        object.__setattr__(out, key, child)
    return out


def as_tensors(batch: Any) -> Any:
    """The batch with tensors for NumPy's arrays, in tuples, lists and dicts; one that has tensors stays as it is."""
    if next(tensors(batch), None) is not None:
        return batch
    if hasattr(batch, "__array__") and hasattr(batch, "dtype"):
        kind = getattr(batch.dtype, "kind", None)  # that of torch, polars and TensorFlow has none
        return asarray(batch) if kind in ("b", "i", "u", "f") else batch
    if isinstance(batch, dict):
        return _same_kind(batch, as_tensors)
    if isinstance(batch, (list, tuple)):
        parts = [as_tensors(child) for child in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


def _same_kind(batch: dict[Any, Any], change: Callable[[Any], Any]) -> dict[Any, Any]:
    """A copy of a dict, also of a defaultdict and other kinds, with every value changed."""
    out = copy.copy(batch)
    for key, child in batch.items():
        out[key] = change(child)
    return out


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object, also those in __slots__."""
    found = dict(getattr(value, "__dict__", None) or {})
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def moved(value: Any, backend: Backend) -> Any:
    """`value` with every tensor on `backend`."""
    inner = getattr(backend, "inner", None)

    def change(tensor: Tensor) -> Tensor:
        if tensor.backend is backend:
            return tensor
        if getattr(tensor.backend, "inner", None) is backend:
            return tensor.inner()
        return tensor.from_inner() if tensor.backend is inner and inner is not None else tensor.to(backend)

    return replaced(value, change)


def described(value: Any) -> Any:
    """What a batch is beside the elements of its tensors: equal for batches that differ in these alone."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, dict):
        return (type(value), tuple((key, described(child)) for key, child in value.items()))
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(described(child) for child in value))
    if hasattr(value, "__array__") and getattr(value, "shape", ()) != ():
        return object()  # equal to nothing: the text of an array may leave elements out
    held = None if isinstance(value, (*_PLAIN, type)) else _attributes(value)
    return (type(value), described(held)) if held else (type(value), repr(value))


def inside(value: Any) -> Any:
    """`value` with every tensor of an autodiff backend on the backend inside, without its history."""
    return replaced(value, lambda tensor: tensor.inner() if hasattr(tensor.backend, "from_inner") else tensor)


def rows(batch: Any) -> int:
    """The number of items in a batch: the length of its first tensor that has an axis; 1 if there is none."""
    return next((tensor.shape[0] for tensor in tensors(batch) if tensor.ndim), 1)
