"""Complex tensors from nested lists of numbers."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...backend import get_backend
from . import refuse_elsewhere


def _flat(values: Any, out: list[complex]) -> tuple[int, ...] | None:
    """The shape of nested lists of numbers, whose elements go to `out`; None for ragged lists and other things."""
    if not isinstance(values, (list, tuple)):
        if not isinstance(values, (bool, int, float, complex)):
            return None
        out.append(complex(values))
        return ()
    shapes = {_flat(v, out) for v in values}
    return (len(values), *shapes.pop()) if len(shapes) == 1 and None not in shapes else None  # type: ignore[misc]


def from_lists(obj: Any, *, dtype: Any = None, device: Any = None, backend: Any = None, copy: Any = None) -> Any:
    """The tensor of nested lists with complex numbers among them; None for anything else."""
    flat: list[complex] = []
    shape = _flat(obj, flat) if isinstance(obj, (list, tuple)) else None
    wanted = dtypes.dtype("complex64" if dtype is None else dtype)
    if shape is None or wanted.kind != "complex":
        return None
    target = get_backend(backend or device)
    refuse_elsewhere(target)
    return target.from_list(flat, wanted, shape)
