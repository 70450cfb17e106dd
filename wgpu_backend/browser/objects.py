"""Checks of arguments, shared by all objects of a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wgpu import flags, structs
from wgpu._coreutils import str_flag_to_int


def check_struct(name: str, value: Any) -> Mapping[str, Any]:
    """The struct or dict `value`, checked against wgpu-py's struct of that name.

    Raises:
        TypeError: It is neither.
        ValueError: It has a key that the struct does not have.
    """
    struct = getattr(structs, name)
    if isinstance(value, struct):
        return value
    if not isinstance(value, dict):
        raise TypeError(f"expected a wgpu.{name} or a dict, got {value!r}")
    unknown = set(value) - set(struct.__annotations__)
    if unknown:
        raise ValueError(f"wgpu.{name} has no {', '.join(sorted(unknown))}; it has {', '.join(struct.__annotations__)}")
    return value


def to_flags(kind: type[flags.Flags], value: int | str) -> int:
    """Flags given as an int, or as wgpu-py's string of names ("STORAGE|COPY_SRC")."""
    return str_flag_to_int(kind, value) if isinstance(value, str) else int(value)
