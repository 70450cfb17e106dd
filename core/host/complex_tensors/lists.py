"""Complex tensors from nested lists of numbers."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...backend import get_backend
from ...errors import DTypeError
from . import refuse_elsewhere


def _flat(values: Any, out: list[Any]) -> tuple[int, ...] | None:
    """The shape of nested lists of numbers, whose elements go to `out`; None for ragged lists and other things."""
    if not isinstance(values, (list, tuple)):
        if not isinstance(values, (bool, int, float, complex)):
            return None
        out.append(values)
        return ()
    shapes = {_flat(v, out) for v in values}
    return (len(values), *shapes.pop()) if len(shapes) == 1 and None not in shapes else None  # type: ignore[misc]


def from_lists(obj: Any, *, dtype: Any = None, device: Any = None, backend: Any = None, copy: Any = None) -> Any:
    """The tensor of nested lists with complex numbers among them, or for which a complex dtype is asked; None for
    anything else, such as integers too large for int64. Raises DTypeError for an integer beyond every float."""
    flat: list[Any] = []
    shape = _flat(obj, flat) if isinstance(obj, (list, tuple)) else None
    wanted = dtypes.dtype("complex64" if dtype is None else dtype)
    among = dtype is not None or any(isinstance(v, complex) for v in flat)
    if shape is None or wanted.kind != "complex" or not among:
        return None
    target = get_backend(backend or device)
    refuse_elsewhere(target)
    try:
        values = [complex(v) for v in flat]
    except OverflowError:
        raise DTypeError(f"an integer in the list is too large for {wanted}; write it as a float") from None
    return target.from_list(values, wanted, shape)
