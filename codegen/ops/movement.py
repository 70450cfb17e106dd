"""Reshaping, permuting, joining, cutting: what moves elements without changing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Comprehension, Expr, Name, SliceKey, Starred, Tuple, flat, lift
from ..emit.statement import Assign, For, Statement
from ..ir.node import Node
from ..ir.problem import Problem
from ..ir.types import Dim, ScalarType, Shape, ShapeType, TensorType, Type, as_tensor, broadcast, join_dim, product
from .attributes import Attributes
from .base import Plain, axes_of, axis_of


class Identity(Plain):
    since = (1, 13, 14, 16, 19, 21, 23, 24, 25)

    def infer(self) -> tuple[Type, ...]:
        return (self.type(0),)

    def emit(self, e: Emitter) -> Emission:
        return e.tensor(self.inputs[0]) if self.value(0) is not None else e.held(0)


# -- reshape ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReshapeConfig:
    """shape: the attribute of opset 1 to 4, None where it is an input. allow_zero: 0 means 0, not "as in the input"."""

    shape: tuple[int, ...] | None
    allow_zero: bool


class Reshape(Node[ReshapeConfig]):
    since, static = (1, 5, 13, 14, 19, 21, 23, 24, 25), (1,)

    @classmethod
    def read(cls, a: Attributes) -> ReshapeConfig:
        a.has("consumed_inputs")
        shape = a.ints("shape", ()) if a.opset < 5 else None
        return ReshapeConfig(shape, a.flag("allowzero") if a.opset >= 14 else False)

    def wanted(self) -> Shape | None:
        return self.config.shape if self.config.shape is not None else self.dims(1)

    def infer(self) -> tuple[Type, ...]:
        t, x, wanted = self.type(0), self.tensor(0), self.wanted()
        if isinstance(t, ScalarType) and t.dtype.name == "int64" and wanted in ((1,), (-1,)):
            return (ShapeType((t.value,)),)
        if wanted is None:
            return (TensorType(x.dtype),)
        return (TensorType(x.dtype, self.resolved(x, wanted)),)

    def resolved(self, x: TensorType, wanted: Shape) -> Shape:
        """The output's shape: zeros copied from the input, -1 computed where all else is known."""
        dims: list[Dim] = list(wanted)
        if sum(d == -1 for d in dims) > 1:
            raise Problem(f"the shape {wanted} has more than one -1")
        for i, d in enumerate(dims):
            if isinstance(d, int) and d < -1:
                raise Problem(f"the shape {wanted} has the dimension {d}")
            if d == 0 and not self.config.allow_zero:
                dims[i] = None if x.shape is None else x.shape[i] if i < len(x.shape) else None
                if x.shape is not None and i >= len(x.shape):
                    raise Problem(f"the shape {wanted} copies dimension {i} of an input of rank {len(x.shape)}")
        if -1 not in dims:
            total, have = product(dims), None if x.shape is None else product(x.shape)
            if total is not None and have is not None and total != have:
                raise Problem(f"an input of shape {x.shape} does not fit the shape {tuple(dims)}")
            return tuple(dims)
        at = dims.index(-1)
        # A symbol on both sides cancels: (batch, 16, 2, 2) seen as (batch, -1) is (batch, 64).
        have_dims: list[Dim] = list(x.shape) if x.shape is not None else [None]
        rest = dims[:at] + dims[at + 1 :]
        for d in list(rest):
            if isinstance(d, str) and d in have_dims:
                have_dims.remove(d)
                rest.remove(d)
        total, have = product(rest), product(have_dims)
        if total is None or have is None:
            symbols = [d for d in have_dims if isinstance(d, str)]
            numbers = product([d for d in have_dims if not isinstance(d, str)])
            alone = total is not None and total == numbers and len(symbols) == 1 and total > 0
            dims[at] = symbols[0] if alone else None
        elif total == 0:
            dims[at] = None
        elif have % total:
            raise Problem(f"an input of shape {x.shape} does not fit the shape {wanted}")
        else:
            dims[at] = have // total
        return tuple(dims)

    def emit(self, e: Emitter) -> Emission:
        if isinstance(self.outputs[0].type, ShapeType):
            return lift((e.held(0),))
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
        given = e.assign("shape", e.ints(1))
        kept = Binary("or", Name("d"), e.index(e.shape_of(x), Name("i")))
        return e.method(x, "reshape", Comprehension(kept, "i, d", e.builtin("enumerate", given)))

    def sure(self) -> bool:
        """Whether no dimension asked for can be a literal 0: all come from sizes of tensors, or are known."""
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
        x, rank = e.x(), self.rank(0)
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


def merged(dims: Shape) -> Dim:
    """The size of several axes seen as one."""
    rest = [d for d in dims if d != 1]
    return rest[0] if len(rest) == 1 else product(rest)


@dataclass(frozen=True)
class TransposeConfig:
    """perm: None reverses the axes."""

    perm: tuple[int, ...] | None


class Transpose(Node[TransposeConfig]):
    since = (1, 13, 21, 23, 24, 25)

    @classmethod
    def read(cls, a: Attributes) -> TransposeConfig:
        return TransposeConfig(a.ints("perm") if a.has("perm") else None)

    def perm(self) -> tuple[int, ...]:
        rank = self.rank(0)
        perm = tuple(reversed(range(rank))) if self.config.perm is None else axes_of(self.config.perm, rank)
        if len(perm) != rank:
            raise Problem(f"perm {perm} is no permutation of {rank} axes")
        return perm

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            count = len(self.config.perm) if self.config.perm else 0
            return (TensorType(x.dtype, (None,) * count if count else None),)
        shape = x.shape
        return (TensorType(x.dtype, tuple(shape[p] for p in self.perm())),)

    def emit(self, e: Emitter) -> Emission:
        perm = self.perm() if self.config.perm is None else self.config.perm
        return e.method(e.x(), "permute", *perm) if len(perm) > 1 else e.x()


# -- squeeze, unsqueeze -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AxesConfig:
    """axes: the attribute of older opsets, None where they are an input or left out."""

    axes: tuple[int, ...] | None

    @classmethod
    def read(cls, a: Attributes, until: int) -> AxesConfig:
        return cls(a.ints("axes") if a.opset < until and a.has("axes") else None)


class Squeeze(Node[AxesConfig]):
    since, static = (1, 11, 13, 21, 23, 24, 25), (1,)

    @classmethod
    def read(cls, a: Attributes) -> AxesConfig:
        return AxesConfig.read(a, 13)

    def axes(self) -> tuple[int, ...] | None:
        return self.config.axes if self.config.axes is not None else self.ints(1) if self.has(1) else None

    def infer(self) -> tuple[Type, ...]:
        t, axes = self.type(0), self.axes()
        if isinstance(t, ShapeType) and len(t.dims) == 1 and (axes is None or axes in ((0,), (-1,))):
            return (ScalarType(as_tensor(t).dtype, t.dims[0]),)
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
        return AxesConfig.read(a, 13)

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


# -- concat, split ----------------------------------------------------------------------------------------------------


class Concat(Node[AxisConfig]):
    """Joined along an axis (before opset 4, 1 unless given). Sizes joined on the host stay there."""

    since = (1, 4, 11, 13)

    @classmethod
    def read(cls, a: Attributes) -> AxisConfig:
        return AxisConfig(a.int("axis", 1 if a.opset < 4 else None))

    def hosts(self) -> bool:
        return (
            self.config.axis in (0, -1)
            and any(isinstance(a.type, ShapeType) for a in self.inputs)
            and all(isinstance(a.type, ShapeType) or self.vector(i) for i, a in enumerate(self.inputs))
        )

    def vector(self, i: int) -> bool:
        value = self.value(i)
        return value is not None and value.dtype.name == "int64" and len(value.shape) == 1 and value.size <= 64

    def infer(self) -> tuple[Type, ...]:
        if not self.inputs:
            raise Problem("has no inputs")
        if self.hosts():
            dims: list[Dim] = []
            for i in range(len(self.inputs)):
                dims += self.dims(i) or ()
            return (ShapeType(tuple(dims)),)
        types = [self.tensor(i) for i in range(len(self.inputs))]
        shapes = [t.shape for t in types if t.shape is not None]
        if not shapes:
            return (TensorType(types[0].dtype),)
        rank = len(shapes[0])
        axis = axis_of(self.config.axis, rank)
        out: list[Dim] = list(shapes[0])
        for s in shapes[1:]:
            if len(s) != rank:
                raise Problem(f"tensors of rank {rank} and {len(s)} do not join")
            for i in range(rank):
                if i == axis:
                    continue
                if isinstance(out[i], int) and isinstance(s[i], int) and out[i] != s[i]:
                    raise Problem(f"shapes {shapes[0]} and {s} do not join along axis {axis}")
                out[i] = (
                    out[i] if isinstance(out[i], int) else s[i] if isinstance(s[i], int) else join_dim(out[i], s[i])
                )
        sizes = [s[axis] for s in shapes]
        whole = len(shapes) == len(types) and all(isinstance(d, int) for d in sizes)
        out[axis] = sum(d for d in sizes if isinstance(d, int)) if whole else sizes[0] if len(types) == 1 else None
        return (TensorType(types[0].dtype, tuple(out)),)

    def emit(self, e: Emitter) -> Emission:
        if isinstance(self.outputs[0].type, ShapeType):
            items: list[Expr] = []
            for i in range(len(self.inputs)):
                part = e.held(i)
                if isinstance(part, Tuple):
                    items += part.items
                else:
                    items.append(Starred(part))
            return Tuple(tuple(items)) if len(items) != 1 or not isinstance(items[0], Starred) else items[0].value
        if len(self.inputs) == 1:
            return e.x(0)
        return e.call("concat", tuple(e.x(i) for i in range(len(self.inputs))), axis=default(self.config.axis, 0))


@dataclass(frozen=True)
class SplitConfig:
    """sizes: the attribute of opset 1 to 12. num_outputs: since opset 18, where the sizes are not given."""

    axis: int
    sizes: tuple[int, ...] | None
    num_outputs: int


class Split(Node[SplitConfig]):
    """Into parts of given sizes, or of equal ones (the last one may be smaller)."""

    since, static = (1, 2, 11, 13, 18), (1,)

    @classmethod
    def read(cls, a: Attributes) -> SplitConfig:
        sizes = a.ints("split") if a.opset < 13 and a.has("split") else None
        if a.opset >= 18 and a.has("num_outputs") and a.int("num_outputs") != len(a.outputs):
            raise Problem(f"num_outputs is {a.int('num_outputs')}, the node has {len(a.outputs)} outputs")
        return SplitConfig(a.int("axis", 0), sizes, len(a.outputs))

    def sizes(self) -> tuple[int, ...] | None:
        if self.config.sizes is not None:
            return self.config.sizes
        return self.ints(1) if self.has(1) else None

    def infer(self) -> tuple[Type, ...]:
        x, n = self.tensor(0), self.config.num_outputs
        if x.shape is None:
            return (TensorType(x.dtype),) * n
        axis = axis_of(self.config.axis, len(x.shape))
        whole, sizes = x.shape[axis], self.sizes()
        parts: list[Dim] = [None] * n
        if sizes is not None:
            if len(sizes) != n or (isinstance(whole, int) and sum(sizes) != whole):
                raise Problem(f"parts of {sizes} do not make up axis {axis} of {x.shape} in {n} outputs")
            parts = list(sizes)
        elif not self.has(1) and isinstance(whole, int):
            each = -(-whole // n)
            parts = [max(0, min(each, whole - i * each)) for i in range(n)]
        return tuple(TensorType(x.dtype, (*x.shape[:axis], p, *x.shape[axis + 1 :])) for p in parts)

    def emit(self, e: Emitter) -> Emission:
        sizes = self.sizes()
        if len(self.outputs) == 1:
            return e.x(0)
        axis = default(self.config.axis, 0)
        if sizes is not None and len(set(sizes)) > 1:
            return e.call("split", e.x(0), sizes, axis=axis)
        if sizes is None and self.has(1):
            return e.call("split", e.x(0), e.ints(1), axis=axis)
        return e.call("split", e.x(0), self.config.num_outputs, axis=axis)


# -- slice ------------------------------------------------------------------------------------------------------------

FAR = (1 << 31) - 1


@dataclass(frozen=True)
class SliceConfig:
    """The attributes of opset 1 to 9; None from 10 on, where they are inputs."""

    starts: tuple[int, ...] | None
    ends: tuple[int, ...] | None
    axes: tuple[int, ...] | None


class Slice(Node[SliceConfig]):
    """start:end:step along axes, with Python's meaning."""

    since, static = (1, 10, 11, 13), (1, 2, 3, 4)

    @classmethod
    def read(cls, a: Attributes) -> SliceConfig:
        if a.opset >= 10:
            return SliceConfig(None, None, None)
        return SliceConfig(a.ints("starts"), a.ints("ends"), a.ints("axes") if a.has("axes") else None)

    def bounds(self) -> tuple[Shape, Shape, tuple[int, ...], Shape]:
        """(starts, ends, axes, steps) as far as they are known. Raises Problem where not even their number is."""
        c = self.config
        starts = c.starts if c.starts is not None else self.dims(1)
        ends = c.ends if c.ends is not None else self.dims(2)
        if starts is None or ends is None:
            known = self.ints(3) if self.has(3) else None
            count = len(known) if known is not None else self.tensor(0).rank if not self.has(3) else None
            if count is None:
                raise Problem("the number of axes to slice is not known")
            starts, ends = starts or (None,) * count, ends or (None,) * count
        axes: tuple[int, ...] | None = tuple(range(len(starts)))
        if c.axes is not None or self.has(3):
            axes = c.axes if c.axes is not None else self.ints(3)
        if axes is None:
            raise Problem("the axes to slice are only known when the model runs; they must be constant")
        steps = self.dims(4) if self.has(4) else (1,) * len(starts)
        if steps is None:
            steps = (None,) * len(starts)
        if not len(starts) == len(ends) == len(axes) == len(steps):
            raise Problem(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} differ in number")
        if 0 in steps:
            raise Problem("a step is 0")
        return starts, ends, axes, steps

    def open(self) -> bool:
        """Whether the axes, or how many there are, is only known when the model runs."""
        if self.config.starts is not None:
            return False
        return (self.has(3) and self.ints(3) is None) or self.dims(1) is None or self.tensor(0).rank is None

    def infer(self) -> tuple[Type, ...]:
        t = self.type(0)
        if self.open():
            x = self.tensor(0)
            return (TensorType(x.dtype, None if x.shape is None else (None,) * len(x.shape)),)
        starts, ends, axes, steps = self.bounds()
        if isinstance(t, ShapeType) and self.whole(starts, ends, steps):
            bounds: tuple[Any, ...] = (starts[0], ends[0], steps[0]) if starts else (None,)
            return (ShapeType(t.dims[slice(*bounds)]),)
        x = self.tensor(0)
        if x.shape is None:
            return (TensorType(x.dtype),)
        out = list(x.shape)
        for start, end, axis, step in zip(starts, ends, axes_of(axes, len(out)), steps, strict=True):
            d = out[axis]
            if isinstance(d, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
                out[axis] = len(range(*slice(start, end, step).indices(d)))
            elif start == 0 and isinstance(end, int) and end >= FAR and step == 1:
                out[axis] = d
            elif start == 0 and end == d and step == 1:
                out[axis] = d
            else:
                out[axis] = None
        return (TensorType(x.dtype, tuple(out)),)

    @staticmethod
    def whole(*parts: Shape) -> bool:
        return all(isinstance(d, int) for part in parts for d in part)

    def by_loop(self, e: Emitter) -> Emission:
        """The slices put together when the model runs."""
        x = e.x(0)
        parts = [e.ints(1), e.ints(2)] + ([e.ints(4)] if self.has(4) else [])
        ranges, items = e.fresh("ranges"), [e.fresh(n) for n in ("start", "stop", "step")[: len(parts)]]
        count = e.builtin("len", e.shape_of(x))
        e.push(Assign((ranges,), Binary("*", lift([(None, None)]), count)))
        axis = e.fresh("axis")
        axes = e.ints(3) if self.has(3) else e.builtin("range", count)
        body: list[Statement] = [Assign((f"{ranges}[{axis}]",), Tuple(tuple(Name(n) for n in items)))]
        e.push(For(", ".join((axis, *items)), e.builtin("zip", axes, *parts), body))
        return e.call("slice", x, Name(ranges))

    def emit(self, e: Emitter) -> Emission:
        if self.open():
            return self.by_loop(e)
        starts, ends, axes, steps = self.bounds()
        x = e.held(0) if isinstance(self.outputs[0].type, ShapeType) else e.x(0)
        if isinstance(self.outputs[0].type, ShapeType):
            return e.index(x, self.key(e, 0, starts, ends, steps)) if starts else x
        rank = self.rank(0)
        places = axes_of(axes, rank)
        keys: list[Expr] = [SliceKey()] * rank
        for i, axis in enumerate(places):
            keys[axis] = self.key(e, i, starts, ends, steps)
        while len(keys) > 1 and keys[-1] == SliceKey():
            keys.pop()
        if all(k == SliceKey() for k in keys):
            return x
        return e.index(x, keys[0] if len(keys) == 1 else Tuple(tuple(keys)))

    def key(self, e: Emitter, i: int, starts: Shape, ends: Shape, steps: Shape) -> Expr:
        step = steps[i]
        backwards = isinstance(step, int) and step < 0
        start: Expr | None = self.bound(e, 1, i, starts)
        end: Expr | None = self.bound(e, 2, i, ends)
        if isinstance(step, int):
            if starts[i] == 0 and not backwards:
                start = None
            if not backwards and _far(starts[i], below=True):
                start = None
            if backwards and isinstance(starts[i], int) and _far(starts[i]):
                start = None
            if isinstance(ends[i], int) and (_far(ends[i]) if not backwards else _far(ends[i], below=True)):
                end = None
        return SliceKey(start, end, None if step == 1 else self.bound(e, 4, i, steps))

    def bound(self, e: Emitter, source: int, i: int, known: Shape) -> Expr:
        d = known[i]
        if isinstance(d, int):
            return lift(d)
        given = e.ints(source)
        if isinstance(given, Tuple):
            return given.items[i]
        if not isinstance(given, Name):
            given = e.once(source, ("starts", "ends", "axes", "steps")[source - 1], given)
        return e.index(given, i)


def _far(d: Dim, below: bool = False) -> bool:
    return isinstance(d, int) and (d <= -(1 << 31) + 1 if below else d >= (1 << 31) - 1)


# -- expand, tile, pad ------------------------------------------------------------------------------------------------


class Expand(Plain):
    """Broadcast to a shape, by NumPy's rule in both directions."""

    since, static = (8, 13), (1,)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(x.dtype, broadcast(x.shape, self.dims(1))),)

    def emit(self, e: Emitter) -> Emission:
        value, out = self.value(0), self.outputs[0].type
        ranks = self.rank_of_result(out)
        if value is not None and value.size == 1 and value.dtype.is_float and ranks and value.dtype.bits >= 16:
            return e.create("full", e.ints(1), e.shortest(value), dtype=value.dtype)
        return e.method(e.x(0), "expand", e.ints(1))

    def rank_of_result(self, out: Type) -> bool:
        """Whether the shape asked for has all the axes of the result."""
        dims, x = self.dims(1), self.tensor(0)
        return dims is not None and x.rank is not None and len(dims) >= x.rank and isinstance(out, TensorType)


class Tile(Plain):
    """Repeated along each axis; opset 1 takes a count and an axis instead."""

    since, static = (1, 6, 13), (1, 2)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if self.has(2):
            axis, count = self.ints(2), self.ints(1)
            if x.shape is None or axis is None:
                return (TensorType(x.dtype, None if x.shape is None else (None,) * len(x.shape)),)
            at = axis_of(axis[0], len(x.shape))
            times: Dim = count[0] if count else None
            return (TensorType(x.dtype, tuple(_times(d, times) if i == at else d for i, d in enumerate(x.shape))),)
        repeats = self.dims(1)
        if x.shape is None or repeats is None:
            return (TensorType(x.dtype, None if x.shape is None else (None,) * len(x.shape)),)
        if len(repeats) != len(x.shape):
            raise Problem(f"{len(repeats)} repeats for a tensor of rank {len(x.shape)}")
        return (TensorType(x.dtype, tuple(_times(d, r) for d, r in zip(x.shape, repeats, strict=True))),)

    def emit(self, e: Emitter) -> Emission:
        if self.has(2):
            return e.call("repeat_dim", e.x(0), e.number(2), e.number(1))
        return e.call("tile", e.x(0), e.ints(1))


def _times(d: Dim, r: Dim) -> Dim:
    if r == 1:
        return d
    return d * r if isinstance(d, int) and isinstance(r, int) else 0 if d == 0 or r == 0 else None


@dataclass(frozen=True)
class PadConfig:
    """pads, value: the attributes of opset 1 to 10; None and 0 where they are inputs."""

    mode: str
    pads: tuple[int, ...] | None
    value: float


class Pad(Node[PadConfig]):
    """New elements around; since opset 18 along the axes given."""

    since, static = (1, 2, 11, 13, 18, 19, 21, 23, 24, 25), (1, 3)

    @classmethod
    def read(cls, a: Attributes) -> PadConfig:
        mode = a.string("mode", "constant", ("constant", "reflect", "edge", "wrap"))
        if a.opset >= 11:
            return PadConfig(mode, None, 0.0)
        return PadConfig(mode, a.ints("paddings" if a.opset < 2 else "pads"), a.float("value", 0.0))

    def axes(self) -> tuple[int, ...] | None:
        """The axes, None where they are only known when the model runs."""
        if not self.has(3):
            return tuple(range(self.rank(0)))
        axes = self.ints(3)
        return None if axes is None else axes_of(axes, self.rank(0))

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            return (TensorType(x.dtype),)
        axes, pads = self.axes(), self.config.pads if self.config.pads is not None else self.ints(1)
        if axes is None:
            return (TensorType(x.dtype, (None,) * len(x.shape)),)
        out = list(x.shape)
        if pads is not None and len(pads) != 2 * len(axes):
            raise Problem(f"{len(pads)} pads for {len(axes)} axes, expected two for each")
        for i, axis in enumerate(axes):
            d = out[axis]
            if pads is None:
                out[axis] = None
            elif pads[i] or pads[i + len(axes)]:
                out[axis] = d + pads[i] + pads[i + len(axes)] if isinstance(d, int) else None
        return (TensorType(x.dtype, tuple(out)),)

    def emit(self, e: Emitter) -> Emission:
        c, axes = self.config, self.axes()
        around = self.by_loop(e) if axes is None else self.pairs(e, axes)
        mode = default(c.mode, "constant")
        if c.mode != "constant":
            return e.call("pad", e.x(0), around, mode=mode)
        value = e.number(2) if self.has(2) else lift(c.value if self.dtype(0).is_float else int(c.value))
        zero = flat(value) in ("0", "0.0", "False")
        return e.call("pad", e.x(0), around, **({} if zero else {"value": value}))

    def pairs(self, e: Emitter, axes: tuple[int, ...]) -> Expr:
        """A (low, high) pair for each axis."""
        pads = self.config.pads if self.config.pads is not None else self.ints(1)
        pairs: list[Expr] = [lift((0, 0))] * self.rank(0)
        held = lift(None) if pads is not None else self.given(e)
        for i, axis in enumerate(axes):
            j = i + len(axes)
            low = lift(pads[i]) if pads is not None else e.index(held, i)
            high = lift(pads[j]) if pads is not None else e.index(held, j)
            pairs[axis] = Tuple((low, high))
        return Tuple(tuple(pairs))

    def by_loop(self, e: Emitter) -> Expr:
        """The pairs put together when the model runs."""
        given, axes, pairs = self.given(e), e.assign("axes", e.ints(3)), e.fresh("pairs")
        axis, i = e.fresh("axis"), e.fresh("i")
        e.push(Assign((pairs,), Binary("*", lift([(0, 0)]), lift(self.rank(0)))))
        high = e.index(given, Binary("+", Name(i), e.builtin("len", axes)))
        pair = Tuple((e.index(given, Name(i)), high))
        e.push(For(f"{i}, {axis}", e.builtin("enumerate", axes), [Assign((f"{pairs}[{axis}]",), pair)]))
        return Name(pairs)

    def given(self, e: Emitter) -> Expr:
        pads = e.ints(1)
        return pads if isinstance(pads, Name) else e.assign("pads", pads)


@dataclass(frozen=True)
class BlockConfig:
    block_size: int
    mode: str


def block(a: Attributes, mode: str) -> BlockConfig:
    size = a.int("blocksize")
    if size < 1:
        raise Problem(f"attribute 'blocksize' is {size}, expected 1 or more")
    return BlockConfig(size, mode)


class DepthToSpace(Node[BlockConfig]):
    since = (1, 11, 13)

    @classmethod
    def read(cls, a: Attributes) -> BlockConfig:
        return block(a, a.string("mode", "DCR", ("DCR", "CRD")) if a.opset >= 11 else "DCR")

    def infer(self) -> tuple[Type, ...]:
        x, b = self.tensor(0), self.config.block_size
        if x.shape is None:
            return (TensorType(x.dtype, (None,) * 4),)
        n, c, h, w = four(x.shape)
        channels = c // (b * b) if isinstance(c, int) else None
        return (TensorType(x.dtype, (n, channels, _times(h, b), _times(w, b))),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("depth_to_space", e.x(), self.config.block_size, mode=default(self.config.mode, "DCR"))


class SpaceToDepth(Node[BlockConfig]):
    since = (1, 13)

    @classmethod
    def read(cls, a: Attributes) -> BlockConfig:
        return block(a, a.string("mode", "DCR", ("DCR", "CRD")) if a.has("mode") else "DCR")

    def infer(self) -> tuple[Type, ...]:
        x, b = self.tensor(0), self.config.block_size
        if x.shape is None:
            return (TensorType(x.dtype, (None,) * 4),)
        n, c, h, w = four(x.shape)
        return (
            TensorType(
                x.dtype,
                (n, _times(c, b * b), h // b if isinstance(h, int) else None, w // b if isinstance(w, int) else None),
            ),
        )

    def emit(self, e: Emitter) -> Emission:
        if self.config.mode == "CRD":
            return self.channels_first(e)
        return e.call("space_to_depth", e.x(), self.config.block_size)

    def channels_first(self, e: Emitter) -> Expr:
        """The layout in which a channel's blocks stay together."""
        b, shape = self.config.block_size, e.assign("sizes", e.shape_of(e.x()))
        n, c, h, w = (e.index(shape, i) for i in range(4))
        rows, columns = Binary("//", h, lift(b)), Binary("//", w, lift(b))
        blocks = e.method(e.x(), "reshape", (n, c, rows, b, columns, b))
        moved = e.method(blocks, "permute", 0, 1, 3, 5, 2, 4)
        return e.method(moved, "reshape", (n, Binary("*", c, lift(b * b)), rows, columns))


def four(shape: Shape) -> tuple[Dim, Dim, Dim, Dim]:
    if len(shape) != 4:
        raise Problem(f"expected (n, c, h, w), found rank {len(shape)}")
    return shape[0], shape[1], shape[2], shape[3]


Family = (
    Concat | DepthToSpace | Expand | Flatten | Identity | Pad | Reshape | Slice | SpaceToDepth | Split | Squeeze | Tile
    | Transpose | Unsqueeze
)  # fmt: skip
