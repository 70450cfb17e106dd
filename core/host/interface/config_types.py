"""Whether the values of a Config have the types of its fields: checked when one is made, on CPython."""

from __future__ import annotations

from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin


def problem(value: Any, kind: Any) -> str | None:
    """What `value` is not; None if it is of the type `kind`, or the type says nothing. An int is a float, and a list a
    tuple."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        said = [problem(value, one) for one in arguments]
        return None if None in said else " or ".join(s for s in said if s)
    if origin is Literal:
        fits = any(value == one and type(value) is type(one) for one in arguments)
        return None if fits else "one of " + ", ".join(repr(a) for a in arguments)
    if kind is None or kind is type(None):
        return None if value is None else "None"
    if origin in (list, tuple):
        return _in_sequence(value, origin, arguments)
    if origin is dict:
        if not isinstance(value, dict):
            return "dict"
        said = [problem(k, arguments[0]) or problem(v, arguments[1]) for k, v in value.items()]
        return next((f"a dict of {s}" for s in said if s), None)
    if not isinstance(kind, type) or kind is Any:
        return None
    if issubclass(kind, Enum):
        return None if isinstance(value, kind) else "one of " + ", ".join(f"{kind.__name__}.{m.name}" for m in kind)
    if kind is tuple and isinstance(value, list):
        return None
    if kind in (int, float) and isinstance(value, bool):
        return kind.__name__
    if isinstance(value, (int, float) if kind is float else kind):
        return None
    return kind.__name__


def _in_sequence(value: Any, origin: Any, arguments: tuple[Any, ...]) -> str | None:
    if not isinstance(value, (list, tuple)):
        return str(origin.__name__)
    if origin is tuple and arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            return f"a tuple of {len(arguments)}"
        kinds = arguments
    else:
        kinds = (arguments[0],) * len(value)
    said = [problem(v, k) for v, k in zip(value, kinds, strict=True)]
    return next((f"a {origin.__name__} of {s}" for s in said if s), None)
