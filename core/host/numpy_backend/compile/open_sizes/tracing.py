"""Running a model's Python once for all lengths of its open axes.

Shapes hold a `Size` (core/sizes/) where they are open. NumPy computes with numbers: every primitive runs at
several *points*, lengths of the open axes, and what its results' shapes are at all of them says which Size they have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from .....backend.axes import closed
from .....backend.tracing import Trace, ValueNeeded, traced
from .....errors import BackendError, EmberletError
from .....sizes.polynomial import atom_values
from .....sizes.scope import Scope
from .....sizes.size import is_open
from .....tensor import Tensor
from ...backend import NumpyBackend
from ...storage import Array, numpy_dtype
from ..tracing import _ASKS, Call, Traced, Tracing, Value, _flat, _like, _recorded, _tensors, needed, root


class Everywhere(Traced):
    """`data` of a Tensor while a model is traced. arrays: what was computed at each point."""

    __slots__ = ("arrays",)

    def __init__(self, value: Value, arrays: list[Array]) -> None:
        super().__init__(value, arrays[0])
        self.arrays = arrays


class Points:
    """Lengths of the open axes at which a model is traced. numbers: {symbol: length} for each of them."""

    def __init__(self, scope: Scope, numbers: list[dict[str, int]]) -> None:
        self.scope = scope
        self.numbers = numbers
        self._values: list[list[int]] = [[] for _ in numbers]

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, x: Any, point: int) -> Any:
        """x with numbers for its Sizes."""
        if len(self._values[point]) < len(self.scope.atoms):
            self._values[point] = atom_values(self.scope.atoms, self.numbers[point])
        return closed(x, self._values[point])

    def size(self, lengths: list[int], known: list[Any]) -> Any:
        """A length that is this at each point: a number, or one of the Sizes that are known."""
        if len(set(lengths)) == 1:
            return lengths[0]
        for x in known:
            if all(self.at(x, i) == n for i, n in enumerate(lengths)):
                return x
        raise ValueNeeded("a length depends on the open lengths in an unknown way")


class OpenTracing(Tracing):
    """The backend of a trace with open sizes. What depends neither on inputs nor on sizes is computed at once."""

    def __init__(self, eager: NumpyBackend, points: Points) -> None:
        super().__init__(eager)
        self.points = points

    def _call(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        given = (*args, *keywords.values())
        found: list[Everywhere] = [x.data for x in _tensors(given) if type(x.data) is Everywhere]
        sizes = list(_sizes(given))
        if not found and not sizes:
            return super()._call(name, args, keywords)
        if name in _ASKS:
            raise needed(found[0].value)
        if name == "linear_algebra" and any(map(is_open, args[1].shape[-2:])):
            rows, columns = args[1].shape[-2:]
            _ = rows < columns  # becomes a guard: the smaller one is a length of results
        method = self._method(name)
        outs = []
        everywhere = len(self.points)
        if not sizes and not any(is_open(d) for x in found for d in x.value.shape):
            everywhere = 1  # the lengths matter no more
        inputs: frozenset[int] = frozenset().union(*(x.value.inputs for x in found))
        compute = _SHAPED[name] if inputs and name in _SHAPED else method
        for i in range(everywhere):
            at = [self._plain(a, i) for a in args]
            outs.append(compute(*at, **{k: self._plain(v, i) for k, v in keywords.items()}))
        outs *= len(self.points) // everywhere
        call = Call(name, method, tuple(map(_recorded, args)), {k: _recorded(v) for k, v in keywords.items()})
        call.single = isinstance(outs[0], Tensor)
        known = [*sizes, *(d for x in found for d in x.value.shape if is_open(d))]
        known.extend(_lengths(name, args))
        results = []
        for i, parts in enumerate(zip(*(_parts(out) for out in outs), strict=True)):
            if not all(isinstance(p, Tensor) for p in parts):
                raise ValueNeeded(f"{name} returns something other than a tensor", inputs)
            if len({len(p.shape) for p in parts}) > 1:
                raise ValueNeeded(f"{name} returns a tensor whose number of axes is an open size")
            lengths = zip(*(p.shape for p in parts), strict=True)
            shape = tuple(self.points.size(list(n), known) for n in lengths)
            call.results.append(Value(call, i, parts[0].dtype, shape, inputs))
            results.append(Tensor(Everywhere(call.results[-1], [p.data for p in parts]), parts[0].dtype, shape, self))
        self.calls.append(call)
        return results[0] if call.single else _like(outs[0], iter(results))

    def _plain(self, x: Any, point: int) -> Any:
        """An argument for the numpy backend itself, at a point."""
        if isinstance(x, Tensor):
            data = x.data.arrays[point] if type(x.data) is Everywhere else x.data
            return Tensor(data, x.dtype, data.shape, self.eager) if isinstance(x.backend, Tracing) else x
        if type(x) in (list, tuple):
            return type(x)([self._plain(v, point) for v in x])
        return self.points.at(x, point) if is_open(x) else x


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    """A tensor of the shape that `Backend.matmul` gives."""
    if a.shape[-1] != b.shape[-2]:
        raise ValueNeeded(f"a product has {a.shape[-1]} columns and {b.shape[-2]} rows at other lengths")
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _zeros((*lead, a.shape[-2], b.shape[-1]), a)


def _conv(x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Tensor:
    """A tensor of the shape that `Backend.conv` gives."""
    if x.shape[1] != weight.shape[1] * how[-1]:
        raise ValueNeeded(f"a convolution of {x.shape[1]} channels has weights for others at other lengths")
    return _zeros((x.shape[0], weight.shape[0], *_lengths("conv", (x, weight, bias, *how))), x)


def _zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return Tensor(np.broadcast_to(np.zeros((), like.data.dtype), shape), like.dtype, shape, like.backend)


_SHAPED: dict[str, Callable[..., Tensor]] = {"matmul": _matmul, "conv": _conv}
"""Primitives of which only the shape is computed where inputs decide the values: at the lengths of the points, which
are larger than a call's, a convolution with open taps took minutes."""


def _lengths(name: str, args: tuple[Any, ...]) -> list[Any]:
    """Lengths of a primitive's result that are none of its operands'."""
    if name == "concat":
        return [sum(x.shape[args[1]] for x in args[0])]
    if name == "pad":
        return [n + low + high for n, (low, high) in zip(args[0].shape, args[1], strict=True)]
    if name not in ("conv", "pool"):
        return []
    x, kernel, (stride, padding, dilation) = args[name == "pool"], args[2 if name == "pool" else 1], args[3:6]
    kernel = kernel if name == "pool" else kernel.shape[2:]
    sides = zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    return [(n + low + high - d * (k - 1) - 1) // s + 1 for n, k, s, (low, high), d in sides]


def _sizes(arguments: Iterable[Any]) -> Iterator[Any]:
    for x in arguments:
        if is_open(x):
            yield x
        elif type(x) in (list, tuple):
            yield from _sizes(x)


def _parts(out: Any) -> list[Any]:
    return [out] if isinstance(out, Tensor) else list(_flat(out)) if isinstance(out, (list, tuple)) else [None]


def trace(
    function: Callable[..., Any],
    arguments: list[Any],
    shapes: list[Any],
    points: Points,
    eager: NumpyBackend,
    fixed: Collection[int] = (),
) -> Trace:
    """Trace function(*arguments), whose Tensors are on the numpy backend and taken to have `shapes`, with Sizes. fixed:
    positions whose Tensors are taken for their values.

    Raises ValueNeeded where the control flow depends on values, SizeNeeded where it depends on a length.
    """
    tracing = OpenTracing(eager, points)

    def placeholder(i: int, x: Tensor) -> tuple[Value | None, Tensor]:
        if i in fixed:
            return None, Tensor(x.data.copy(), x.dtype, x.shape, tracing)
        shape = shapes[i]
        value = Value(None, i, x.dtype, shape, frozenset([i]))
        arrays = [x.data] * len(points)
        if any(map(is_open, shape)):
            kind = numpy_dtype(x.dtype)
            arrays = [np.zeros(points.at(shape, k), kind) for k in range(len(points))]
        return value, Tensor(Everywhere(value, arrays), x.dtype, shape, tracing)

    try:
        return traced(function, arguments, placeholder, root, tracing.calls)
    except BackendError:
        raise
    except (EmberletError, IndexError, TypeError) as error:  # it may fail at lengths other than the current ones
        raise ValueNeeded(f"it cannot be traced at other lengths: {error}") from error


def at_point(trace: Trace, points: Points, point: int, alone: bool = False) -> Trace:
    """The Trace with numbers for its Sizes. alone: it is for this point only, so that what depends on no input is
    computed now."""
    known: dict[Value, Any] = {}

    def value(v: Value, call: Call | None) -> Value:
        found = known[v] = Value(call, v.index, v.dtype, points.at(v.shape, point), v.inputs)
        return found

    def argument(x: Any) -> Any:
        if type(x) is Value:
            return known[x]
        if type(x) in (list, tuple):
            return type(x)(map(argument, x))
        return points.at(x, point) if is_open(x) else x

    inputs = [value(v, None) for v in trace.inputs]
    calls = []
    for c in trace.calls:
        args, keywords = tuple(map(argument, c.args)), {k: argument(v) for k, v in c.keywords.items()}
        call = Call(c.op, c.method, args, keywords)
        if alone and next(call.operands(), None) is None and not any(v in trace.roots for v in c.results):
            known.update(zip(c.results, _parts(c.method(*args, **keywords)), strict=True))
            continue
        call.single, call.open = c.single, not alone
        call.results = [value(v, call) for v in c.results]
        calls.append(call)
    return Trace(inputs, [known[v] for v in trace.roots], trace.structure, calls)
