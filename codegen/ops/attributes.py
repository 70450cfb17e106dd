"""Attributes: passed by the reader to an operator's `read`, and discarded afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from emberlet.dtypes import DType
from emberlet.host.onnx_types import DTYPES

from ..ir.argument import Argument
from ..ir.choices import Activation
from ..ir.problem import Problem
from ..ir.types import Type
from ..ir.value import Value

E = TypeVar("E", bound=StrEnum)
R = TypeVar("R")

if TYPE_CHECKING:
    from ..ir.graph import Graph

# The getters are named like built-in types; these aliases keep the types themselves.
Whole = int
Real = float

# The getter of a config's field, by its type.
_GETTERS = {
    "int": "int",
    "bool": "flag",
    "float": "float",
    "str": "string",
    "tuple[int, ...]": "ints",
    "tuple[float, ...]": "floats",
    "tuple[str, ...]": "strings",
}

GraphReader = Callable[[Sequence[Type]], "Graph"]
"""Reads a subgraph, given the types of its inputs (an empty sequence: those the file declares)."""

AttributeValue = int | float | str | Value | Type | GraphReader | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]


class Attributes:
    """A node's attributes with typed access, its opset version, its typed inputs and its outputs.

    Each getter raises Problem if the attribute has another type, or is missing without a default.
    """

    def __init__(
        self,
        values: Mapping[str, AttributeValue],
        opset: int,
        inputs: tuple[Argument, ...],
        outputs: tuple[Argument, ...],
    ) -> None:
        self._values = values
        self._read: set[str] = set()
        self.opset = opset
        self.inputs = inputs
        self.outputs = outputs

    def at(self, opset: int) -> Attributes:
        """The same attributes, read as those of another opset."""
        other = Attributes(self._values, opset, self.inputs, self.outputs)
        other._read = self._read
        return other

    def record(self, kind: type[R]) -> R:
        """An instance of a dataclass whose fields have the names of attributes, their types and their defaults. A field
        that may be None is None where the attribute is missing."""
        given: dict[str, Any] = {}
        for name, what in kind.__annotations__.items():
            default = getattr(kind, name, None)
            if isinstance(default, StrEnum):
                given[name] = self.choice(name, type(default), default)
            elif what.endswith(" | None") and not self.has(name):
                given[name] = None
            else:
                given[name] = getattr(self, _GETTERS[what.removesuffix(" | None")])(name, default)
        return kind(**given)

    def has(self, name: str) -> bool:
        self._read.add(name)
        return name in self._values

    def unread(self) -> list[str]:
        """The attributes that were not read."""
        return sorted(set(self._values) - self._read)

    def _get(self, name: str, kind: str) -> AttributeValue:
        self._read.add(name)
        if name not in self._values:
            raise Problem(f"attribute {name!r} ({kind}) is missing")
        return self._values[name]

    def int(self, name: str, default: int | None = None) -> int:
        if default is not None and not self.has(name):
            return default
        value = self._get(name, "int")
        if not isinstance(value, int):
            raise Problem(f"attribute {name!r} should be an int")
        return value

    def count(self, name: str) -> Whole:
        """An int that is 1 or more."""
        value = self.int(name)
        if value < 1:
            raise Problem(f"attribute {name!r} is {value}, expected 1 or more")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.int(name, int(default))
        if value not in (0, 1):
            raise Problem(f"attribute {name!r} is {value}, expected 0 or 1")
        return bool(value)

    def float(self, name: str, default: float | None = None) -> float:
        if default is not None and not self.has(name):
            return default
        value = self._get(name, "float")
        if not isinstance(value, float):
            raise Problem(f"attribute {name!r} should be a float")
        return value

    def string(self, name: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
        if default is not None and not self.has(name):
            return default
        value = self._get(name, "string")
        if not isinstance(value, str):
            raise Problem(f"attribute {name!r} should be a string")
        if choices and value not in choices:
            raise Problem(f"attribute {name!r} is {value!r}, expected one of {', '.join(choices)}")
        return value

    def choice(self, name: str, kind: type[E], default: E | None = None) -> E:
        """A member of an enumeration, by its word."""
        return kind(self.string(name, default, tuple(kind)))

    def activations(self, name: str) -> tuple[Activation, ...]:
        """The activations of a recurrent operator, in any case, as onnxruntime takes them; () where none is said."""
        known = {str(a).lower(): a for a in Activation if a not in (Activation.NONE, Activation.CLIP)}
        given = self.strings(name, ())
        for word in given:
            if word.lower() not in known:
                raise Problem(f"attribute {name!r} has {word!r}, expected one of {', '.join(known.values())}")
        return tuple(known[word.lower()] for word in given)

    def ints(self, name: str, default: Sequence[Whole] | None = None) -> tuple[Whole, ...]:
        if default is not None and not self.has(name):
            return tuple(default)
        value = self._get(name, "ints")
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            raise Problem(f"attribute {name!r} should be a list of ints")
        return tuple(int(v) for v in value)

    def floats(self, name: str, default: Sequence[Real] | None = None) -> tuple[Real, ...]:
        if default is not None and not self.has(name):
            return tuple(default)
        value = self._get(name, "floats")
        if not isinstance(value, tuple) or not all(isinstance(v, float) for v in value):
            raise Problem(f"attribute {name!r} should be a list of floats")
        return tuple(float(v) for v in value)

    def strings(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        if default is not None and not self.has(name):
            return tuple(default)
        value = self._get(name, "strings")
        if not isinstance(value, tuple) or not all(isinstance(v, str) for v in value):
            raise Problem(f"attribute {name!r} should be a list of strings")
        return tuple(str(v) for v in value)

    def tensor(self, name: str) -> Value:
        value = self._get(name, "tensor")
        if not isinstance(value, Value):
            raise Problem(f"attribute {name!r} should be a tensor")
        return value

    def dtype(self, name: str) -> DType:
        """A TensorProto.DataType."""
        code = self.int(name)
        found = DTYPES.get(code)
        if found is None:
            raise Problem(f"attribute {name!r} is {code}, which is not a supported element type")
        return found

    def float_dtype(self, name: str) -> DType:
        """A TensorProto.DataType of floating-point numbers."""
        found = self.dtype(name)
        if not found.is_float:
            raise Problem(f"attribute {name!r} is {found.name}, expected a type of floating-point numbers")
        return found

    def type(self, name: str) -> Type:
        value = self._get(name, "type")
        if isinstance(value, Value | int | float | str | tuple) or callable(value):
            raise Problem(f"attribute {name!r} should be a type")
        return value

    def graph(self, name: str, inputs: Sequence[Type] = ()) -> Graph:
        """The subgraph, read with these types for its inputs."""
        value = self._get(name, "graph")
        if not callable(value):
            raise Problem(f"attribute {name!r} should be a graph")
        return value(inputs)
