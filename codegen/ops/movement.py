"""Reshaping and permuting: operators that move elements without changing them."""

from __future__ import annotations

from ..emit.emitter import Emission, Emitter
from ..emit.expression import Expr, flat, lift
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.sizes import scaled
from ..ir.types import Dim, ScalarType, Shape, ShapeType, TensorType, Type, as_tensor, is_size, product
from ..ir.value import Value
from ..records import dataclass
from .attributes import Attributes
from .base import Plain, axes_of, axis_of, transposed


class Identity(Plain):
    since = (1, 13, 14, 16, 19, 21, 23, 24, 25)

    def infer(self) -> tuple[Type, ...]:
        return (self.type(0),)

    def emit(self, e: Emitter) -> Emission:
        return e.tensor(self.inputs[0]) if self.value(0) is not None else e.held(0)


# -- reshape ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReshapeConfig:
    """shape: the attribute of opset 1 to 4, None if it is an input. allow_zero: 0 means 0, not "as in the input"."""

    shape: tuple[int, ...] | None
    allow_zero: bool


def _remaining(x: TensorType, rest: list[Dim], wanted: Shape) -> Dim:
    """The dimension that -1 stands for beside `rest`. Raises Problem."""
    # A symbol on both sides cancels: (batch, 16, 2, 2) seen as (batch, -1) is (batch, 64).
    have_dims: list[Dim] = list(x.shape) if x.shape is not None else [None]
    for d in list(rest):
        if isinstance(d, str) and d in have_dims:
            have_dims.remove(d)
            rest.remove(d)
    total, have = product(rest), product(have_dims)
    if total is None or have is None:
        symbols = [d for d in have_dims if isinstance(d, str)]
        numbers = product([d for d in have_dims if not isinstance(d, str)])
        alone = total and numbers and len(symbols) == 1
        return scaled(symbols[0], numbers or 0, total or 1) if alone else None
    if total == 0:
        return None
    if have % total:
        raise Problem(f"an input of shape {x.shape} does not fit the shape {wanted}")
    return have // total


class Reshape(Node[ReshapeConfig]):
    since, static = (1, 5, 13, 14, 19, 21, 23, 24, 25), (1,)

    @classmethod
    def read(cls, a: Attributes) -> ReshapeConfig:
        a.has("consumed_inputs")
        shape = a.ints("shape", ()) if a.opset < 5 else None
        return ReshapeConfig(shape, a.flag("allowzero"))

    def wanted(self) -> Shape | None:
        return self.config.shape if self.config.shape is not None else self.dims(1)

    def infer(self) -> tuple[Type, ...]:
        t, x, wanted = self.type(0), self.tensor(0), self.wanted()
        if isinstance(t, ScalarType) and t.dtype.name == "int64" and wanted in ((1,), (-1,)):
            return (ShapeType((t.value,)),)
        if isinstance(t, ShapeType) and wanted in ((len(t.dims),), (-1,)) and t.dims:
            return (t,)
        if wanted is None:
            return (TensorType(x.dtype),)
        return (TensorType(x.dtype, self.resolved(x, wanted)),)

    def resolved(self, x: TensorType, wanted: Shape) -> Shape:
        """The output's shape: zeros copied from the input, -1 computed if all else is known."""
        dims: list[Dim] = list(wanted)
        if sum(d == -1 for d in dims) > 1:
            raise Problem(f"the shape {wanted} has more than one -1")
        if self.config.allow_zero and 0 in dims and -1 in dims:
            raise Problem(f"the shape {wanted} has both 0 and -1, which allowzero rules out")
        for i, d in enumerate(dims):
            if isinstance(d, int) and d < -1:
                raise Problem(f"the shape {wanted} has the dimension {d}")
            if d == 0 and not self.config.allow_zero:
                dims[i] = None if x.shape is None else x.shape[i] if i < len(x.shape) else None
                if x.shape is not None and i >= len(x.shape):
                    raise Problem(f"the shape {wanted} copies dimension {i} of an input of rank {len(x.shape)}")
        if -1 in dims:
            at = dims.index(-1)
            dims[at] = _remaining(x, dims[:at] + dims[at + 1 :], wanted)
            return tuple(dims)
        total, have = product(dims), None if x.shape is None else product(x.shape)
        if total is not None and have is not None and total != have:
            raise Problem(f"an input of shape {x.shape} does not fit the shape {tuple(dims)}")
        return tuple(dims)

    def emit(self, e: Emitter) -> Emission:
        if isinstance(self.outputs[0].type, ShapeType):
            return e.held(0) if isinstance(self.type(0), ShapeType) else lift((e.held(0),))
        x, wanted = e.x(0), self.wanted()
        known = None if wanted is None or not all(isinstance(d, int) for d in wanted) else wanted
        out = self.outputs[0].type
        if known is not None and 0 in known and isinstance(out, TensorType) and nonzero(out.shape):
            open_axes = [i for i, d in enumerate(out.shape or ()) if not isinstance(d, int)]
            if len(open_axes) <= 1:  # nothing needs to be copied: the result is known
                return e.method(x, "reshape", tuple(d if isinstance(d, int) else -1 for d in out.shape or ()))
        if known is not None:
            source = self.tensor(0).shape
            shape: list[Expr] = []
            for i, d in enumerate(known):
                if d == 0 and not self.config.allow_zero:
                    copied = None if source is None else source[i]
                    shape.append(lift(copied) if isinstance(copied, int) else e.index(e.shape_of(x), i))
                else:
                    shape.append(lift(d if isinstance(d, int) else -1))
            result = self.outputs[0].type
            unknown = [i for i, d in enumerate(shape) if not flat(d).lstrip("-").isdigit()]
            if -1 not in known and len(unknown) == 1 and isinstance(result, TensorType) and nonzero(result.shape):
                shape[unknown[0]] = lift(-1)  # (batch, 64) reads better as (-1, 64)
            return e.method(x, "reshape", tuple(shape))
        if self.config.allow_zero or self.sure():
            return e.method(x, "reshape", e.ints(1))
        return e.call("reshape_keeping", x, e.ints(1))

    def sure(self) -> bool:
        """Whether no requested dimension can be a literal 0: all are known or come from sizes of tensors."""
        t = self.type(1)
        return isinstance(t, ShapeType) and 0 not in t.dims


def nonzero(shape: Shape | None) -> bool:
    return shape is not None and 0 not in shape


@dataclass(frozen=True)
class AxisConfig:
    axis: int


class Flatten(Node[AxisConfig]):
    """To a matrix: the axes before `axis`, and those from it on."""

    since = (1, 9, 11, 13, 21, 23, 24, 25)

    @classmethod
    def read(cls, a: Attributes) -> AxisConfig:
        return AxisConfig(a.int("axis", 1))

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            return (TensorType(x.dtype, (None, None)),)
        axis = self.axis(len(x.shape))
        return (TensorType(x.dtype, (merged(x.shape[:axis]), merged(x.shape[axis:]))),)

    def axis(self, rank: int) -> int:
        return rank if self.config.axis == rank else axis_of(self.config.axis, rank) if rank else 0

    def emit(self, e: Emitter) -> Emission:
        x, rank = e.x(), self.tensor(0).rank
        if rank is None:
            return self._of_any_rank(e, x)
        axis = self.axis(rank)
        if axis == 1 and rank >= 2:
            return e.method(x, "flatten", 1)
        if axis == 0:
            return e.method(x, "reshape", (1, -1))
        if axis == rank:
            return e.method(x, "reshape", (-1, 1))
        if axis == rank - 1:
            return e.method(x, "flatten", 0, axis - 1)
        return e.method(e.method(x, "flatten", axis), "flatten", 0, axis - 1)

    def _of_any_rank(self, e: Emitter, x: Expr) -> Emission:
        """With an axis of length 1 at the side that may have none, both sides have axes to merge."""
        axis = self.config.axis
        if axis == 0:
            return e.method(x, "reshape", (1, -1))
        x = e.method(e.method(x, "expand_dims", -1 if axis > 0 else 0), "flatten", axis)
        return x if axis == 1 else e.method(x, "flatten", 0, -2)


def merged(dims: Shape) -> Dim:
    """The size of several axes merged into one."""
    rest = [d for d in dims if d != 1]
    return rest[0] if len(rest) == 1 else product(rest)


@dataclass(frozen=True)
class TransposeConfig:
    """perm: None reverses the axes."""

    perm: tuple[int, ...] | None = None


class Transpose(Node[TransposeConfig]):
    since = (1, 13, 21, 23, 24, 25)

    def perm(self) -> tuple[int, ...]:
        given = self.config.perm
        rank = self.rank(0) if given is None or self.shape(0) is not None else len(given)
        perm = tuple(reversed(range(rank))) if given is None else axes_of(given, rank)
        if len(perm) != rank:
            raise Problem(f"perm {perm} is not a permutation of {rank} axes")
        return perm

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            count = len(self.config.perm) if self.config.perm else 0
            return (TensorType(x.dtype, (None,) * count if count else None),)
        shape = x.shape
        return (TensorType(x.dtype, tuple(shape[p] for p in self.perm())),)

    def folded(self) -> Value | None:
        value = self.value(0)
        if value is None or value.dtype.kind == "string" or len(value.shape) != 2 or self.perm() != (1, 0):
            return None
        return transposed(value)

    def emit(self, e: Emitter) -> Emission:
        perm = self.perm()
        return e.method(e.x(), "permute", *perm) if len(perm) > 1 else e.x()


# -- squeeze, unsqueeze -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AxesConfig:
    """axes: the attribute of older opsets, None if they are an input or omitted."""

    axes: tuple[int, ...] | None

    @classmethod
    def read(cls, a: Attributes) -> AxesConfig:
        return cls(a.ints("axes") if a.has("axes") else None)


class Squeeze(Node[AxesConfig]):
    since, static = (1, 11, 13, 21, 23, 24, 25), (1,)

    @classmethod
    def read(cls, a: Attributes) -> AxesConfig:
        return AxesConfig.read(a)

    def axes(self) -> tuple[int, ...] | None:
        return self.config.axes if self.config.axes is not None else self.ints(1) if self.has(1) else None

    def infer(self) -> tuple[Type, ...]:
        t, axes = self.type(0), self.axes()
        if isinstance(t, ShapeType) and len(t.dims) == 1 and (axes is None or axes in ((0,), (-1,))):
            return (ScalarType(as_tensor(t).dtype, t.dims[0], is_size(t.dims[0])),)
        x = self.tensor(0)
        if x.shape is None or (axes is None and self.has(1)):
            return (TensorType(x.dtype),)
        if axes is None:
            if any(not isinstance(d, int) for d in x.shape):
                return (TensorType(x.dtype),)
            return (TensorType(x.dtype, tuple(d for d in x.shape if d != 1)),)
        gone = axes_of(axes, len(x.shape))
        for a in gone:
            if isinstance(x.shape[a], int) and x.shape[a] != 1:
                raise Problem(f"axis {a} of shape {x.shape} is not 1")
        return (TensorType(x.dtype, tuple(d for i, d in enumerate(x.shape) if i not in gone)),)

    def emit(self, e: Emitter) -> Emission:
        if isinstance(self.outputs[0].type, ScalarType):
            return e.index(e.held(0), 0)
        axes = self.axes()
        if axes is None and not self.has(1):
            return e.method(e.x(0), "squeeze")
        if axes is None:
            return e.method(e.x(0), "squeeze", e.builtin("tuple", e.ints(1)))
        return e.method(e.x(0), "squeeze", axes[0] if len(axes) == 1 else axes)


class Unsqueeze(Node[AxesConfig]):
    since, static = (1, 11, 13, 21, 23, 24, 25), (1,)

    @classmethod
    def read(cls, a: Attributes) -> AxesConfig:
        return AxesConfig.read(a)

    def axes(self) -> tuple[int, ...] | None:
        return self.config.axes if self.config.axes is not None else self.ints(1)

    def infer(self) -> tuple[Type, ...]:
        t, axes = self.type(0), self.axes()
        if isinstance(t, ScalarType) and axes in ((0,), (-1,)) and t.dtype.name == "int64":
            return (ShapeType((t.value,)),)
        x = self.tensor(0)
        if x.shape is None:
            return (TensorType(x.dtype),)
        if axes is None:
            count = self.dims(1)
            return (TensorType(x.dtype, None if count is None else (None,) * (len(x.shape) + len(count))),)
        new = sorted(axes_of(axes, len(x.shape) + len(axes)))
        dims = list(x.shape)
        for a in new:
            dims.insert(a, 1)
        return (TensorType(x.dtype, tuple(dims)),)

    def emit(self, e: Emitter) -> Emission:
        if isinstance(self.outputs[0].type, ShapeType):
            return lift((e.held(0),))
        axes = self.axes()
        if axes is None:
            return e.call("expand_dims", e.x(0), e.builtin("tuple", e.ints(1)))
        return e.call("expand_dims", e.x(0), axes[0] if len(axes) == 1 else axes)
