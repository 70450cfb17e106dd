"""Numbers among arguments: NumPy's as Python's, for sizes, axes and settings, and complex ones."""

from __future__ import annotations

import sys
from typing import Any


def as_python(value: Any) -> Any:
    """`value` with the NumPy scalars in it, also in lists, tuples and dicts, as Python numbers; `value` itself if
    there are none."""
    numpy = sys.modules.get("numpy")  # no NumPy scalar exists before NumPy is imported
    return value if numpy is None else _converted(value, numpy.generic)


def _converted(value: Any, scalar: type[Any]) -> Any:
    if isinstance(value, scalar):
        return value.item()
    if type(value) in (list, tuple):
        items = [_converted(v, scalar) for v in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    if type(value) is dict:
        found = {k: _converted(v, scalar) for k, v in value.items()}
        return value if all(found[k] is value[k] for k in value) else found
    return value


def holds_complex(value: Any) -> bool:
    """Whether `value` is a complex number or an array of them, or a list, tuple or dict that holds one."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_complex, value))
    if isinstance(value, dict):
        return any(map(holds_complex, value.values()))
    return isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", None) in ("c", "complex")
