"""A protobuf message: fields are absent until they are set, as in the protobuf library's objects."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any, ClassVar, NamedTuple, Self, get_args, get_origin, get_type_hints


class Field(NamedTuple):
    """One field of a message: its name, number, wire type ("message" and "enum" beside protobuf's scalars), whether it
    repeats, and the class of a message or an enumeration."""

    name: str
    number: int
    kind: str
    repeated: bool
    of: type[Any] | None


DEFAULTS: dict[str, Any] = {"string": "", "bytes": b"", "view": b"", "float": 0.0, "double": 0.0}


class Message:
    """The base class of the messages. An unset field reads as its default: 0, "", an empty list or message."""

    ONEOF: ClassVar[tuple[str, ...]] = ()
    """The fields of which at most one is set."""

    def __getattr__(self, name: str) -> Any:
        field = by_name(type(self)).get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        if field.repeated:
            made: list[Any] = []
            self.__dict__[name] = made
            return made
        return default(field)

    def HasField(self, name: str) -> bool:
        """Whether a non-repeated field was set."""
        return name in self.__dict__

    def WhichOneof(self, group: str) -> str | None:
        """The name of the field that is set, None if none is."""
        return next((name for name in self.ONEOF if name in self.__dict__), None)

    def CopyFrom(self, other: Self) -> None:
        """Become a deep copy of `other`; tensors' bytes are shared."""
        self.__dict__.clear()
        self.__dict__.update({name: _copied(value) for name, value in other.__dict__.items()})


def default(field: Field) -> Any:
    """The value of an unset, non-repeated field."""
    if field.of is None:
        return DEFAULTS.get(field.kind, 0)
    return field.of(0) if field.kind == "enum" else field.of()


def _copied(value: Any) -> Any:
    if isinstance(value, Message):
        made = type(value)()
        made.CopyFrom(value)
        return made
    if isinstance(value, list):
        return [_copied(v) for v in value]
    return value if isinstance(value, memoryview) else copy.copy(value)


def fields(kind: type[Message]) -> tuple[Field, ...]:
    """The fields that a message's class declares."""
    return tuple(by_name(kind).values())


def by_name(kind: type[Message]) -> dict[str, Field]:
    """The same by their names."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = {f.name: f for f in _declared(kind)}
    return found


_FIELDS: dict[type[Any], dict[str, Field]] = {}


def _declared(kind: type[Message]) -> list[Field]:
    out = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            continue
        t, number, *wire = get_args(hint)
        repeated = get_origin(t) in (list, Sequence)
        of = get_args(t)[0] if repeated else t
        if wire:
            out.append(Field(name, number, wire[0], repeated, None))
        else:
            out.append(Field(name, number, "enum" if issubclass(of, IntEnum) else "message", repeated, of))
    return out
