"""Argument: one input or output of a node."""

from __future__ import annotations

from typing import ClassVar

from ..records import dataclass
from .types import AbsentType, Type
from .value import Value


@dataclass(frozen=True)
class Dynamic:
    """Known only when the model runs."""

    value: ClassVar[None] = None


@dataclass(frozen=True)
class Constant:
    """Known now, and a tensor that the generated code refers to by name."""

    value: Value


@dataclass(frozen=True)
class Static:
    """Known now, and absorbed by the node: a layer's weight, a shape, an axis."""

    value: Value


Source = Dynamic | Constant | Static
DYNAMIC = Dynamic()


@dataclass(frozen=True)
class Argument:
    """A value's name (unique in the whole model), its type, and where it comes from."""

    name: str
    type: Type
    source: Source = DYNAMIC

    @property
    def present(self) -> bool:
        return not isinstance(self.type, AbsentType)

    @property
    def value(self) -> Value | None:
        """The argument's value, if it is known at compile time."""
        return self.source.value


ABSENT = Argument("", AbsentType())
