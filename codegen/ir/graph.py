"""Graph, Model and Node: what the reader returns, the passes rewrite and the emission prints.

An operator is one class in `codegen/ops/`, derived from Node, which holds everything about it: its config, how its
attributes are read at each opset version (`read`), the types it returns (`infer`), and the code it becomes (`emit`).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, get_args

from emberlet.dtypes import DType

from ..records import dataclass, replace
from .argument import ABSENT, Argument, Static
from .problem import Problem
from .types import (
    MAX_RANK,
    AbsentType,
    Dim,
    ScalarType,
    Shape,
    ShapeType,
    TensorType,
    Type,
    as_tensor,
    describe,
)
from .value import Value

if TYPE_CHECKING:
    from ..emit.emitter import Emission, Emitter
    from ..ops.attributes import Attributes

C = TypeVar("C")
MAX_DIMS = 1024


_GRAPH_FIELDS: dict[Any, tuple[str, ...]] = {}


def graph_fields(config: Any) -> tuple[str, ...]:
    """The fields of a config that may hold a subgraph."""
    kind = type(config)
    found = _GRAPH_FIELDS.get(kind)
    if found is None:
        found = tuple(f.name for f in fields(kind) if "Graph" in str(f.type)) if is_dataclass(kind) else ()
        _GRAPH_FIELDS[kind] = found
    return found


@dataclass(frozen=True)
class Node(ABC, Generic[C]):
    """One step of a graph. `config` is the operator's own frozen dataclass, None if it has no attributes.

    Class variables an operator sets: `family` (the heading it belongs under: by default the FAMILY of its file, else
    the file's name), `domain` (empty for ai.onnx), `since` (the opset versions at which it changed, oldest first),
    `static` (the inputs it absorbs if they are constants), `typing` (the inputs of which only the type matters), `pure`
    (False where two runs may differ: such a node is neither folded nor merged with an equal one), `absorbed` (True
    where the reader keeps the outputs, which are constants, and drops the node), `named` (True if the output's name is
    the model's own word, which a variable then gets), `repeated` (True if the expression is so cheap that it is
    repeated at every use), `loops` (True if its function loops in Python a number of times that the file chooses, so
    that no budget of primitives bounds its time), `carries` (input, output and axis of each state that the operator
    takes and returns: extended along that axis, or replaced if the axis is None).
    """

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    config: C

    family: ClassVar[str] = ""
    domain: ClassVar[str] = ""
    since: ClassVar[tuple[int, ...]] = (1,)
    static: ClassVar[tuple[int, ...]] = ()
    typing: ClassVar[tuple[int, ...]] = ()
    pure: ClassVar[bool] = True
    absorbed: ClassVar[bool] = False
    named: ClassVar[bool] = False
    repeated: ClassVar[bool] = False
    loops: ClassVar[bool] = False
    carries: ClassVar[tuple[tuple[int, int, int | None], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "family" not in cls.__dict__:
            file = sys.modules[cls.__module__]
            cls.family = getattr(file, "FAMILY", file.__name__.rpartition(".")[2].replace("_", " "))

    @classmethod
    def op(cls) -> str:
        """The operator's name in ONNX."""
        return cls.__name__

    @classmethod
    def spec(cls) -> str:
        """The URL of the operator's specification."""
        return f"https://onnx.ai/onnx/operators/onnx_{cls.domain.replace('.', '')}_{cls.op()}.html"

    @classmethod
    def make(cls, name: str, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...], a: Attributes) -> Self:
        """The node, with its config read from the attributes. Raises Problem."""
        return cls(name, inputs, outputs, cls.read(a))

    @classmethod
    def read(cls, a: Attributes) -> C:
        """The config, from a node's attributes at `a.opset`. Raises Problem. By default each field of the config is the
        attribute of its name, type and default."""
        config: type[C] = next(
            found
            for kind in cls.__mro__
            for base in kind.__dict__.get("__orig_bases__", ())
            for found in get_args(base)
            if isinstance(found, type)
        )
        return a.record(config)

    @abstractmethod
    def infer(self) -> tuple[Type, ...]:
        """The types of the outputs, from the inputs' types and known values. Raises Problem if they do not fit."""

    def settled(self) -> Self:
        """The node with a config completed from its inputs' types: kernel, channels, padding."""
        return self

    @abstractmethod
    def emit(self, e: Emitter) -> Emission:
        """The code: one expression (a tuple if there are several outputs), or one for each output."""

    @property
    def unbounded(self) -> bool:
        """Whether no budget can stop the node once it runs, so that it must not be folded."""
        return self.loops

    @property
    def widens(self) -> bool:
        """Whether the node's result holds what its constants hold, in more bytes, so that it is not folded."""
        return False

    # -- what operators ask about their inputs ------------------------------------------------------------------------

    def has(self, i: int) -> bool:
        """Whether input i is given."""
        return i < len(self.inputs) and self.inputs[i].present

    def type(self, i: int) -> Type:
        """Input i's type, AbsentType if it is left out."""
        return self.inputs[i].type if i < len(self.inputs) else ABSENT.type

    def tensor(self, i: int) -> TensorType:
        """Input i's type as a TensorType. Raises Problem if it is missing or not a tensor."""
        t = self.type(i)
        if isinstance(t, AbsentType):
            raise Problem(f"input {i} is missing")
        return as_tensor(t)

    def dtype(self, i: int) -> DType:
        return self.tensor(i).dtype

    def shape(self, i: int) -> Shape | None:
        return self.tensor(i).shape

    def rank(self, i: int) -> int:
        """Input i's rank. Raises Problem if it is unknown."""
        t = self.tensor(i)
        if t.shape is None:
            raise Problem(f"the rank of input {i} ({self.inputs[i].name!r}) is not known, and the operator needs it")
        return len(t.shape)

    def value(self, i: int) -> Value | None:
        """Input i's value, if it is known at compile time."""
        return self.inputs[i].value if i < len(self.inputs) else None

    def dims(self, i: int) -> Shape | None:
        """The elements of an integer input of rank 0 or 1, as far as they are known; None if not even their number
        is."""
        t = self.type(i)
        value = self.value(i)
        if value is not None:
            listed = value.dtype.is_integer and len(value.shape) <= 1 and value.size <= max(MAX_DIMS, len(self.outputs))
            return value.ints() if listed else None
        if isinstance(t, ShapeType):
            return t.dims
        if isinstance(t, ScalarType):
            return (t.value,)
        if isinstance(t, TensorType) and t.shape is not None and len(t.shape) <= 1:
            count: Dim = t.shape[0] if t.shape else 1
            return (None,) * count if isinstance(count, int) and count <= MAX_DIMS else None
        return None

    def ints(self, i: int) -> tuple[int, ...] | None:
        """The elements of an integer input, if all of them are known."""
        dims = self.dims(i)
        known = tuple(d for d in dims if isinstance(d, int)) if dims is not None else ()
        return known if dims is not None and len(known) == len(dims) else None

    def hosted(self, i: int) -> bool:
        """Whether input i is a constant that can be a Python number or a tuple of ints in the generated code."""
        value = self.value(i)
        return value is not None and value.dtype.is_integer and len(value.shape) <= 1 and value.size <= 64

    def folded(self) -> Value | None:
        """The only output, if it is known without running the node: still a fill or a transposition, however large."""
        return None

    def table(self) -> Value | None:
        """The constant matrix in which the node looks up rows; None for every other node."""
        return None

    # -- structure ----------------------------------------------------------------------------------------------------

    def graphs(self) -> tuple[Graph, ...]:
        """The subgraphs in the config."""
        names = graph_fields(self.config)
        if not names:
            return ()  # each pass asks each node
        held = (getattr(self.config, name) for name in names)
        return tuple(g for g in held if isinstance(g, Graph))

    def uses(self) -> tuple[Argument, ...]:
        """The inputs, and the outer values that the subgraphs read."""
        captured: dict[str, Argument] = {}
        for graph in self.graphs():
            inside = {a.name for a in graph.inputs}
            for node in graph.nodes:
                for a in node.uses():
                    if a.present and a.name not in inside:
                        captured.setdefault(a.name, a)
                inside.update(a.name for a in node.outputs)
            for a in graph.outputs:
                if a.present and a.name not in inside:
                    captured.setdefault(a.name, a)
        return (*self.inputs, *captured.values())

    def typed(self) -> Self:
        """The node with its outputs' types inferred and its static inputs marked. Raises Problem."""
        inputs = tuple(
            replace(a, source=Static(a.value)) if i in self.static and a.value is not None else a
            for i, a in enumerate(self.inputs)
        )
        node = replace(self, inputs=inputs)
        types = node.infer()
        if len(types) < len(self.outputs) and any(o.present for o in self.outputs[len(types) :]):
            raise Problem(f"has {len(self.outputs)} outputs, expected at most {len(types)}")
        for t in types:
            if isinstance(t, TensorType) and t.shape is not None and len(t.shape) > MAX_RANK:
                raise Problem(f"its result has {len(t.shape)} dimensions; at most {MAX_RANK} are supported")
        outputs = tuple(replace(o, type=t) if o.present else o for o, t in zip(self.outputs, types, strict=False))
        return replace(node, outputs=outputs)

    def __str__(self) -> str:
        ins = ", ".join(describe(a.type) for a in self.inputs)
        return f"{self.op()} {self.name!r} ({ins})"


@dataclass(frozen=True)
class Graph:
    """Nodes in topological order. Names of values are unique across the model, subgraphs included.

    An input that has a default value (an initializer of the same name) carries it as a Constant source.
    """

    name: str
    nodes: tuple[Node[Any], ...]
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    def walk(self) -> Iterator[Node[Any]]:
        """Every node; those of subgraphs come after the node that holds them."""
        for node in self.nodes:
            yield node
            for graph in node.graphs():
                yield from graph.walk()


@dataclass(frozen=True)
class State:
    """An input and the output that is its next value, by their positions. axis: the one along which the output is the
    input with elements appended; None if the output replaces the input."""

    input: int
    output: int
    axis: int | None


@dataclass(frozen=True)
class Model:
    """A graph with what the file says about itself. `inputs` and `outputs` are the names the file gives them, whatever
    the passes rename. source: the name of the file it was read from. frozen: the values of inputs given at reading,
    which are constants and no longer in `inputs`. states: the inputs that return as outputs. scopes: node name -> path
    of the module it came from, such as ("layers", "0", "attention"), if the file says so; kinds: path -> the module's
    class."""

    name: str
    graph: Graph
    opsets: tuple[tuple[str, int], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    producer: str = ""
    doc: str = ""
    source: str = ""
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    frozen: Mapping[str, Value] = field(default_factory=dict)
    states: tuple[State, ...] = ()
