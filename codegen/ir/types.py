"""The types of values in a graph, and how they combine.

A type also says how a value is held in the generated code: a `TensorType` is a `Tensor`, a `ScalarType` a Python
number, a `ShapeType` a tuple of Python ints, a `SequenceType` a list, a `MapType` a dict, an `OptionalType` a value or
None. ONNX computes shapes with scalars and shapes; holding these as Python numbers keeps them off the device.
"""

from __future__ import annotations

from collections.abc import Sequence

from emberlet.dtypes import DType

from ..records import dataclass
from .problem import Problem

MAX_RANK = 64  # as in NumPy

Dim = int | str | None
"""A dimension: its size, the model's symbol for it (or a sum of symbols), an identity ("?" and a digest,
`ir/sizes.py`), or None if nothing is known."""

Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class TensorType:
    """A tensor; `shape` is None if not even the rank is known. Strings are tensors of dtype string."""

    dtype: DType
    shape: Shape | None = None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape if every dimension is known, else None."""
        if self.shape is None:
            return None
        known = tuple(d for d in self.shape if isinstance(d, int))
        return known if len(known) == len(self.shape) else None


@dataclass(frozen=True)
class ScalarType:
    """A Python number that represents a rank-0 tensor of `dtype`.

    `value`: its value, if known at compile time; `natural`: whether it cannot be negative.
    """

    dtype: DType
    value: Dim = None
    natural: bool = False


@dataclass(frozen=True)
class ShapeType:
    """A tuple of Python ints that represents a rank-1 int64 tensor; `dims`: what is known of its elements."""

    dims: Shape


@dataclass(frozen=True)
class SequenceType:
    """A list whose elements have type `element`."""

    element: Type


@dataclass(frozen=True)
class OptionalType:
    """A value of type `element`, or None."""

    element: Type


@dataclass(frozen=True)
class MapType:
    """A dict from integers or strings (`key`) to numbers or strings (`value`)."""

    key: DType
    value: DType


@dataclass(frozen=True)
class AbsentType:
    """No value at all: an optional input or output that is left out."""


@dataclass(frozen=True)
class UnknownType:
    """The type of the outputs of a node with a problem; it suppresses problems that merely follow from that one."""


Type = TensorType | ScalarType | ShapeType | SequenceType | OptionalType | MapType | AbsentType | UnknownType


def is_anonymous(d: Dim) -> bool:
    """Whether a size is, or contains, one that the model does not name."""
    return isinstance(d, str) and "?" in d


def is_size(d: Dim) -> bool:
    """Whether an element of a shape is surely not negative."""
    return isinstance(d, str) or (isinstance(d, int) and d >= 0)


def as_tensor(t: Type) -> TensorType:
    """The value's tensor type in ONNX, however it is held. Raises Problem if it is not a tensor."""
    from emberlet.dtypes import int64

    if isinstance(t, TensorType):
        return t
    if isinstance(t, ScalarType):
        return TensorType(t.dtype, ())
    if isinstance(t, ShapeType):
        return TensorType(int64, (len(t.dims),))
    if isinstance(t, OptionalType):
        return as_tensor(t.element)
    raise Problem(f"expected a tensor, found {describe(t)}")


def describe(t: Type) -> str:
    """A short text for comments, docstrings and messages: "float32 (batch, 8, 8)"."""
    match t:
        case TensorType():
            return f"{t.dtype.name} {describe_shape(t.shape)}"
        case ScalarType():
            return t.dtype.name if t.value is None else f"{t.dtype.name} {t.value}"
        case ShapeType():
            return f"shape {describe_shape(t.dims)}"
        case SequenceType():
            return f"list of {describe(t.element)}"
        case OptionalType():
            return f"{describe(t.element)} or None"
        case MapType():
            return f"dict of {t.key.name} to {t.value.name}"
        case AbsentType():
            return "nothing"
        case UnknownType():
            return "an unknown type"


def describe_shape(shape: Shape | None) -> str:
    if shape is None:
        return "(...)"
    return (
        "("
        + ", ".join("?" if d is None or is_anonymous(d) else str(d) for d in shape)
        + (",)" if len(shape) == 1 else ")")
    )


def join_dim(a: Dim, b: Dim) -> Dim:
    """The dimension that holds for both a and b."""
    return a if a == b else None


def join(a: Type, b: Type) -> Type:
    """The most precise type that holds every value of a and of b. Raises Problem if there is none."""
    if a == b:
        return a
    if isinstance(a, UnknownType) or isinstance(b, UnknownType):
        return UnknownType()
    if isinstance(a, AbsentType):
        return b if isinstance(b, OptionalType | AbsentType) else OptionalType(b)
    if isinstance(b, AbsentType):
        return join(b, a)
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        inner_a = a.element if isinstance(a, OptionalType) else a
        inner_b = b.element if isinstance(b, OptionalType) else b
        return OptionalType(join(inner_a, inner_b))
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return SequenceType(join(a.element, b.element))
    if isinstance(a, MapType) or isinstance(b, MapType):
        raise Problem(f"one value has two types, {describe(a)} and {describe(b)}")
    if isinstance(a, ShapeType) and isinstance(b, ShapeType) and len(a.dims) == len(b.dims):
        return ShapeType(tuple(join_dim(x, y) for x, y in zip(a.dims, b.dims, strict=True)))
    if isinstance(a, ScalarType) and isinstance(b, ScalarType) and a.dtype is b.dtype:
        return ScalarType(a.dtype, None, a.natural and b.natural)
    x, y = as_tensor(a), as_tensor(b)
    if x.dtype is not y.dtype:
        raise Problem(f"one value has two types, {describe(x)} and {describe(y)}")
    if x.shape is None or y.shape is None or len(x.shape) != len(y.shape):
        return TensorType(x.dtype)
    return TensorType(x.dtype, tuple(join_dim(p, q) for p, q in zip(x.shape, y.shape, strict=True)))


def refine(inferred: Type, declared: Type) -> Type:
    """`inferred`, completed by what only `declared` knows (rank, dimensions, symbols). In a conflict the inferred side
    wins, unless it has no name for a size."""
    if isinstance(inferred, TensorType) and isinstance(declared, TensorType) and inferred.dtype is declared.dtype:
        if inferred.shape is None:
            return TensorType(inferred.dtype, declared.shape)
        if declared.shape is None or len(declared.shape) != len(inferred.shape):
            return inferred
        pairs = zip(inferred.shape, declared.shape, strict=True)
        dims = tuple(d if i is None or (is_anonymous(i) and d is not None) else i for i, d in pairs)
        return TensorType(inferred.dtype, dims)
    if isinstance(inferred, SequenceType) and isinstance(declared, SequenceType):
        return SequenceType(refine(inferred.element, declared.element))
    if isinstance(inferred, OptionalType) and isinstance(declared, OptionalType):
        return OptionalType(refine(inferred.element, declared.element))
    return declared if isinstance(inferred, UnknownType) else inferred


def broadcast(*shapes: Shape | None) -> Shape | None:
    """The shape that `shapes` broadcast to, by NumPy's rule. Raises Problem if they cannot."""
    known = [s for s in shapes if s is not None]
    if len(known) < len(shapes):
        return None
    rank = max((len(s) for s in known), default=0)
    out: list[Dim] = []
    for axis in range(rank):
        dims: list[Dim] = [s[axis - rank + len(s)] for s in known if axis - rank + len(s) >= 0]
        sizes = {d for d in dims if isinstance(d, int) and d != 1}
        if len(sizes) > 1:
            raise Problem("shapes " + " and ".join(describe_shape(s) for s in known) + " do not broadcast together")
        if sizes:
            out.append(sizes.pop())
        else:
            others = {d for d in dims if d != 1}
            out.append(1 if not others else others.pop() if len(others) == 1 else _of_names(others))
    return tuple(out)


def _of_names(dims: set[Dim]) -> Dim:
    """The broadcast of sizes with different names: s for s and "min(7, s)", which broadcast only if they are equal."""
    for d in dims:
        if isinstance(d, str) and d.startswith("min(") and None not in dims:
            number, _, name = d[4:-1].partition(", ")
            if number != "1" and dims == {d, name}:
                return name
    return None


def product(dims: Sequence[Dim]) -> int | None:
    """The product of `dims`, if all are known."""
    n = 1
    for d in dims:
        if not isinstance(d, int):
            return None
        n *= d
    return n
