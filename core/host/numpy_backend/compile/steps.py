"""Writing a plan: which array holds which Value, and the calls of NumPy in their order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ....backend.tracing import Trace
from ....tensor import Tensor
from ..elementwise import identity
from ..storage import WIDE, Array, numpy_dtype
from .bias import on_image, on_row
from .depthwise import border
from .layout import from_last, in_order, is_last, to_last
from .memory import Buffers
from .operands import needed_calls
from .repeated import repeated
from .tracing import Call, Value


class Step:
    """function(*args) is called. writes: the arrays that it changes; over: of an elementwise step, the array that it
    computes element by element from others that broadcast to it, the last of args; None for others."""

    __slots__ = ("args", "function", "over", "writes")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        writes: tuple[Array, ...],
        over: Array | None = None,
    ) -> None:
        self.function = function
        self.args = args
        self.writes = writes
        self.over = over

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", None) or getattr(self.function, "__name__", "?")
        said = [_short(a) for a in self.args]
        return f"{name}({', '.join(said)})"


def _short(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)}" if x.ndim else f"{x.dtype}"
    if isinstance(x, Tensor):
        return _short(x.data)
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(map(_short, x)) + "]"
    return getattr(x, "__name__", None) or repr(x)


def arrays_in(arguments: Iterable[Any]) -> Iterator[Array]:
    """The arrays among arguments, those of Tensors and in lists included."""
    for x in arguments:
        if isinstance(x, np.ndarray):
            yield x
        elif isinstance(x, Tensor):
            yield x.data
        elif isinstance(x, (list, tuple)):
            yield from arrays_in(x)


class Writer:
    """What the functions that lower a Call work with.

    A Value's array may be a view of another's, of a larger one that it is a part of, or, where its operand is needed no
    more, have the operand's memory.
    """

    def __init__(
        self,
        trace: Trace,
        last: frozenset[Value] | set[Value] = frozenset(),
        held: frozenset[int] = frozenset(),
        repeats: bool = False,
    ) -> None:
        """last: the Values whose channels lie last in memory (`layout.channels_last`); held: the arguments that no step
        may overwrite; repeats: whether constants may be as long as the results of a step, whose lengths are known."""
        self.buffers = Buffers()
        self.last = last
        self.repeats = repeats
        self.steps: list[Step] = []
        self._arrays: dict[Value, Array] = {}
        self._uses: dict[Value, int] = {}
        self._residents: dict[int, list[Value]] = {}  # id of a buffer -> the Values that live in it
        self._users: dict[Value, list[Call]] = {}
        self._padded: dict[Any, Array] = {}
        self._joined: dict[Call, Array] = {}
        # Columns of convolutions that are there, by operand, kernel, stride, padding and dilation.
        self.columns: dict[Any, Array] = {}
        self._with_row: dict[Value, Array] = {}
        self._gaps: dict[Any, Array] = {}  # parts of arrays of which nothing else is read -> these arrays
        self.unsigned: dict[Value, bool] = {}  # what grids.py knows of the signs of zeros
        needed = needed_calls(trace)
        self.calls = [c for c in trace.calls if c in needed]
        for call in self.calls:
            for value in call.operands():
                self._uses[value] = self._uses.get(value, 0) + 1
                self._users.setdefault(value, []).append(call)
        for value in (*trace.roots, *(v for v in trace.inputs if v.index in held)):
            self._uses[value] = self._uses.get(value, 0) + 1
        self.roots = set(trace.roots)

    # -- what is there

    def array(self, x: Any) -> Array:
        """The array of a Value, or of a Tensor that is constant."""
        return self._arrays[x] if type(x) is Value else x.data

    def has(self, value: Value) -> bool:
        """Whether the Value has an array already."""
        return value in self._arrays

    def users(self, value: Value) -> list[Call]:
        """The Calls that read a Value; of a result of the model none, since its array is needed as it is."""
        return [] if value in self.roots else self._users.get(value, [])

    def dying(self, value: Value, call: Call) -> bool:
        """Whether nothing but `call` still reads what lies in the memory of a Value."""
        buffer = self.buffers.of(self._arrays[value])
        if buffer is None:
            return False
        own = list(call.operands())
        return all(self._uses.get(v, 0) <= own.count(v) for v in self._residents[id(buffer)])

    # -- what is made

    def put(self, value: Value, array: Array) -> None:
        """The array of a Value: a buffer, or a view of one."""
        self._arrays[value] = array
        buffer = self.buffers.of(array)
        if buffer is not None:
            self._residents.setdefault(id(buffer), []).append(value)

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype[Any], last: bool = False) -> Array:
        """An array for the steps that come next. last: whether the channels of (n, c, h, w) lie last."""
        return self._new(last, shape, dtype)

    def _new(
        self, last: bool, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any = None, key: Any = None
    ) -> Array:
        if not last:
            return self.buffers.new(shape, dtype, fill, key)
        n, channels, *spatial = shape
        return from_last(self.buffers.new((n, *spatial, channels), dtype, fill, ("last", key)))

    def out(self, value: Value) -> Array:
        """An array for a Value to be computed into: a part of what it is joined or padded to, where nothing else needs
        it, or one of its own. It may have gaps between its rows."""
        dtype = numpy_dtype(value.dtype)
        users = self.users(value)
        place = None
        if len(users) == 1:
            place = self._place_in(value, users[0])
        if place is None and self._wants_row(value):
            shape = (value.shape[0], value.shape[1] + 1, *value.shape[2:])
            whole = self._new(value in self.last, shape, dtype)
            self._with_row[value] = whole
            place = whole[:, :-1]
        if place is None and self._wants_one(value):
            n = math.prod(value.shape)
            place = self.buffers.new((1, n + 1), dtype, 1, "row")[:, :n].reshape(value.shape)
        if place is None:
            place = self._new(value in self.last, value.shape, dtype)
        self.put(value, place)
        return place

    def out_over(self, value: Value, call: Call, *operands: Any) -> Array:
        """`out` for an elementwise Call: over one of these operands that it alone still reads, if there is one. Once
        the first element of `out` is written, none of them is read but element by element."""
        users = self.users(value)
        placed = len(users) == 1 and users[0].op in ("conv", "concat", "pad", "pool")
        if not placed and not self._wants_row(value) and not self._wants_one(value):
            for x in operands:
                if type(x) is not Value:
                    continue
                if x.dtype is value.dtype and x.shape == value.shape and self._dense(self._arrays[x], value):
                    if self.overwritable(x, call):
                        self.put(value, self._arrays[x])
                        return self._arrays[x]
        return self.out(value)

    def overwritable(self, x: Any, call: Call) -> bool:
        """Whether the array of x is one without gaps that nothing but an elementwise call still reads."""
        if type(x) is not Value:
            return False
        buffer = self.buffers.of(self._arrays[x])
        if buffer is None or buffer.fill is not None:
            return False
        return self._dense(self._arrays[x], x) and self.dying(x, call)

    def _dense(self, array: Array, value: Value) -> bool:
        """Whether an array lies as a new one for the Value would."""
        lies = (to_last(array) if value in self.last else array).flags.c_contiguous
        return lies or self.has_gaps(array)

    def has_gaps(self, array: Array) -> bool:
        """Whether elementwise steps may change more than an array."""
        return _place(array) in self._gaps

    def between_gaps(self, whole: Array, shape: tuple[int, ...]) -> Array:
        """The first elements of each axis of an array of which nothing else is read: elementwise steps may change all
        of it, since one run of memory takes less time than many short lines."""
        found = part(whole, tuple(slice(0, n) for n in shape))
        self._gaps[_place(found)] = whole
        return found

    def _without_gaps(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an elementwise step with what lies in the gaps of the last one, if the others allow that."""
        whole = self._gaps[_place(args[-1])]
        found = [self._gaps.get(_place(x), x) if isinstance(x, np.ndarray) else x for x in args]
        for x in found:
            if isinstance(x, np.ndarray) and x.shape != whole.shape:
                sizes = zip(x.shape[::-1], whole.shape[::-1], strict=False)
                if x.ndim > whole.ndim or any(n not in (1, m) for n, m in sizes):
                    return args
        return tuple(found)

    def _wants_row(self, value: Value) -> bool:
        """Whether a row of 1 behind the channels spares a convolution its bias."""
        return any(on_image(call, value) for call in self.users(value))

    def _wants_one(self, value: Value) -> bool:
        """Whether a 1 behind the elements spares a product its bias."""
        users = self.users(value)
        while len(users) == 1 and users[0].op == "reshape" and not users[0].keywords:
            value = users[0].results[0]
            users = self.users(value)
        return len(users) == 1 and on_row(users[0], value)

    def with_one(self, array: Array) -> Array | None:
        """The row whose elements but the last, a 1, are an array; None where there is none."""
        buffer = self.buffers.of(array)
        is_row = buffer is not None and buffer.key[3] == "row" and buffer.array.size == array.size + 1
        return buffer.array if buffer is not None and is_row and array.flags.c_contiguous else None

    def with_row(self, x: Any) -> Array | None:
        """The array of x with a row of 1 behind its channels, where x was computed into such a one."""
        whole = self._with_row.get(x) if type(x) is Value else None
        if whole is not None:
            self.copy(np.ones((), whole.dtype), whole[:, -1])
        return whole

    def _place_in(self, value: Value, user: Call) -> Array | None:
        if user.op == "concat" and user.args[0].count(value) == 1:
            whole = self.joined(user)
            parts, axis = user.args[0], user.args[1]
            start = sum(t.shape[axis] for t in parts[: parts.index(value)])
            key = (*(slice(None),) * axis, slice(start, start + value.shape[axis]))
            return whole[key]
        if user.op == "conv" and user.args[0] is value and user.args[1] is not value and user.args[2] is not value:
            return self._with_room(value, border(user), 0)
        if user.op == "pool" and value.dtype.name not in WIDE:
            fill = identity("max", numpy_dtype(value.dtype)) if user.args[0] == "max" else 0
            return self._with_room(value, user.args[4], fill)
        if user.op == "pad" and value.dtype.kind != "string":
            return self.padded(value, user.args[1], user.args[2])[1]
        return None

    def _with_room(self, value: Value, padding: Any, fill: Any) -> Array | None:
        """The middle of an array with room for the padding of the spatial axes."""
        if value.dtype.name in WIDE or not any(low or high for low, high in padding):
            return None
        return self.padded(value, (*((0, 0),) * (len(value.shape) - len(padding)), *padding), fill)[1]

    def joined(self, call: Call) -> Array:
        """The array of a `concat`, which its operands may be computed into."""
        found = self._joined.get(call)
        if found is None:
            found = self._joined[call] = self.out(call.results[0])
        return found

    def grow(self, call: Call, array: Array) -> None:
        """The array of a `concat`, whose first operand lies in it already."""
        self.put(call.results[0], array)
        self._joined[call] = array

    def padded(self, value: Value, padding: Any, fill: Any) -> tuple[Array, Array]:
        """(an array with the Value in its middle and `fill` around, the middle), one for each padding. The middle is
        not written yet, unless the Value was computed there."""
        padding = tuple((low, high) for low, high in padding)
        key = (value, padding, fill)
        found = self._padded.get(key)
        shape = tuple(n + low + high for n, (low, high) in zip(value.shape, padding, strict=True))
        if found is None:
            found = self._padded[key] = self._new(value in self.last, shape, numpy_dtype(value.dtype), fill, padding)
        middle = tuple(slice(low, low + n) for n, (low, _) in zip(value.shape, padding, strict=True))
        return found, part(found, middle)

    def with_border(self, x: Any, padding: Any, fill: Any) -> Array:
        """The array of x with `padding` of `fill` on its spatial axes."""
        array = self.array(x)
        if not any(low or high for low, high in padding):
            return array
        pairs = ((0, 0),) * (array.ndim - len(padding)) + tuple(padding)
        if type(x) is not Value:
            constant = np.full([n + a + b for n, (a, b) in zip(array.shape, pairs, strict=True)], fill, array.dtype)
            constant[tuple(slice(a, a + n) for n, (a, _) in zip(array.shape, pairs, strict=True))] = array
            return constant
        whole, middle = self.padded(x, pairs, fill)
        self.copy(array, middle)
        return whole

    # -- steps

    def emit(self, function: Callable[..., Any], *args: Any, writes: tuple[Array, ...]) -> None:
        """Call function(*args) in every run."""
        self.steps.append(Step(function, args, writes))

    def map(self, function: Callable[..., Any], *args: Any) -> None:
        """Call an elementwise function(*args); the last of args is what it computes."""
        if self.last and is_last(args[-1]):
            rank = args[-1].ndim
            args = tuple(in_order(a, rank) if isinstance(a, np.ndarray) else a for a in args)
        if self._gaps and _place(args[-1]) in self._gaps:
            args = self._without_gaps(args)
        if self.repeats and isinstance(function, np.ufunc):
            if args[-1].size == 1:  # NumPy takes 0.8 µs less in one axis
                args = tuple(a.reshape(1) if isinstance(a, np.ndarray) and a.ndim > 1 else a for a in args)
            each = function in _EXTREMES
            args = (*(repeated(a, args[-1], each, self.buffers) for a in args[:-1]), args[-1])
        if function is np.negative:
            # NumPy 2.4 negates wrongly where elements lie 16 bytes apart and the results have gaps.
            function, args = np.multiply, (args[0], np.array(-1).astype(args[1].dtype), args[1])
        self.steps.append(Step(_INTO.get(function, function), args, (args[-1],), args[-1]))

    def copy(self, source: Array, target: Array) -> None:
        """Copy elements, unless they lie there already."""
        if not _same(source, target):
            self.map(copy_elements, source, target)

    def contiguous(self, array: Array) -> Array:
        """The elements row-major and without gaps: the array itself, or a copy."""
        if array.flags.c_contiguous:
            return array
        if self.buffers.of(array) is None:
            return np.ascontiguousarray(array)
        out = self.scratch(array.shape, array.dtype)
        self.copy(array, out)
        return out

    def done(self, call: Call) -> None:
        """A Call is lowered: what it read may be overwritten if nothing else needs it."""
        for value in call.operands():
            self._uses[value] -= 1


def part(array: Array, key: tuple[Any, ...]) -> Array:
    """The view array[key]. Of an array without axes, array[()] would be a scalar, copied before a plan has run."""
    view: Array = array[(*key, ...)]
    return view


def maximum(a: Any, b: Any, out: Array) -> None:
    """np.maximum into an array, which it takes by name only."""
    np.maximum(a, b, out=out)


def minimum(a: Any, b: Any, out: Array) -> None:
    """np.minimum into an array."""
    np.minimum(a, b, out=out)


# NumPy takes up to five times as long for these of an array and a number as of two arrays.
_EXTREMES = (np.fmax, np.fmin, np.maximum, np.minimum)
_INTO: dict[Any, Callable[..., Any]] = {np.maximum: maximum, np.minimum: minimum}


def copy_elements(source: Array, target: Array) -> None:
    """target[...] = source."""
    np.copyto(target, source)


def copy_cast(x: Array, out: Array) -> None:
    """out[...] = x in out's dtype."""
    np.copyto(out, x, casting="unsafe")


def _place(x: Array) -> tuple[Any, ...]:
    """Which elements of memory an array is."""
    return x.shape, x.strides, x.dtype, x.__array_interface__["data"][0]


def _same(a: Array, b: Array) -> bool:
    return _place(a) == _place(b)
