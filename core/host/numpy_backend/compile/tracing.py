"""Running a model's Python once, on a backend that computes with NumPy and writes down what it was asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from ....backend import Backend, operation
from ....backend.structure import assemble
from ....backend.tracing import Trace, ValueNeeded, traced
from ....dtypes import DType, float32
from ....errors import BackendError
from ....errors.indices import refuse
from ....functional.dense import linear
from ....functional.operands import astype, floating
from ....functional.quantized.packed_weights import dequantize_nbits
from ....tensor import Tensor
from ..backend import NumpyBackend
from ..storage import Array


class Value:
    """A tensor of the recorded graph. call: what computes it, None for an input; index: which of the call's results, or
    which argument of the model; inputs: the arguments that it depends on."""

    __slots__ = ("call", "dtype", "index", "inputs", "shape")

    def __init__(
        self, call: Call | None, index: int, dtype: DType, shape: tuple[int, ...], inputs: frozenset[int]
    ) -> None:
        self.call = call
        self.index = index
        self.dtype = dtype
        self.shape = shape
        self.inputs = inputs

    def __repr__(self) -> str:
        return f"{self.dtype} {self.shape}"


class Call:
    """A primitive or override of the numpy backend that was called. args: Values, Tensors that are constant, lists of
    these, and parameters; method: what computes it; results: its Values; single: whether it gave a Tensor; views:
    whether that is a part of an argument; open: whether it belongs to a plan for all lengths."""

    __slots__ = ("args", "keywords", "method", "op", "open", "results", "single", "views")

    def __init__(self, op: str, method: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.op = op
        self.method = method
        self.args = args
        self.keywords = keywords
        self.results: list[Value] = []
        self.single = True
        self.views = False
        self.open = False

    def operands(self) -> Iterator[Value]:
        """The Values that it reads."""
        return values_in((*self.args, *self.keywords.values()))


class Traced:
    """`data` of a Tensor while a model is traced: the Value, and the array that this run computed for it."""

    __slots__ = ("array", "value")

    def __init__(self, value: Value, array: Array) -> None:
        self.value = value
        self.array = array


def values_in(arguments: Iterable[Any]) -> Iterator[Value]:
    """The Values among arguments, those in lists included."""
    for x in arguments:
        if type(x) is Value:
            yield x
        elif isinstance(x, (list, tuple)):
            yield from values_in(x)


_ASKS = ("to_bytes", "to_list", "nonzero")
FOLDED = 1 << 28
"""The most bytes of packed weights that a plan keeps as floats."""


class Tracing(Backend):
    """A backend that stands for the numpy backend during a trace. What depends on no input is computed at once."""

    name = "numpy"
    checks_indices = False  # the plan does, in each call

    def __init__(self, eager: NumpyBackend) -> None:
        super().__init__()
        self.eager = eager
        self.calls: list[Call] = []
        self.folded = 0
        self._others: dict[str, Callable[..., Any]] = {}
        self.OVERRIDES = eager.OVERRIDES

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = operation(self.eager, name)
        if not callable(method):
            if hasattr(self.eager, name):
                return getattr(self.eager, name)
            raise AttributeError(f"backend {self.eager!r} has no {name}")

        def call(*args: Any, **keywords: Any) -> Any:
            return self._call(name, args, keywords)

        setattr(self, name, call)
        return call

    def visible(self, x: Tensor) -> Tensor | None:
        """x where its elements are known while tracing."""
        return None if isinstance(x.data, Traced) else x

    def checked(self, index: Tensor, lowest: int, end: int, message: str, axis: int) -> Tensor:
        """index, which the plan checks in each call (core/functional/indexing/visibility.py)."""
        found: Tensor = self.recorded(checked, index, lowest, end, message, axis)
        return found

    def recorded(self, function: Callable[..., Any], *args: Any) -> Any:
        """function(*args), which takes the arrays of Tensors, as one Call of the plan."""
        self._others[function.__name__] = function
        return self._call(function.__name__, args, {})

    def directions_apart(self, r: Tensor) -> bool:
        """What the eager backend says of its own tensors, of which only the size counts."""
        return self.eager.directions_apart(r)

    def matmul_nbits(
        self, x: Any, weight: Any, scales: Any, zero_points: Any = None, group_indices: Any = None, bias: Any = None,
        **named: Any,
    ) -> Any:  # fmt: skip
        """The product with packed weights; the float model's linear layer, whose weights NumPy multiplies faster than
        it unpacks bytes, where these are constant and the plan's do not take more than FOLDED bytes."""
        packed = (weight, scales, zero_points, group_indices)
        rows, columns = named["rows"], named["columns"]
        shapes = [getattr(t, "shape", None) for t in (x, bias)]
        fits = shapes[0] and shapes[0][-1] == rows and (bias is None or shapes[1] == (columns,))
        constant = all(type(t.data) is np.ndarray for t in _tensors(packed))
        if not fits or not constant or self.folded + 4 * rows * columns > FOLDED:
            return self._call("matmul_nbits", (x, *packed, bias), named)
        self.folded += 4 * rows * columns
        x = floating(x)
        real = astype(dequantize_nbits(*packed[:3], group_indices=group_indices, **named), x.dtype)
        # Long strides between the numbers that are multiplied next take up to a tenth of a product's time.
        data = np.ascontiguousarray(real.data.T)
        return linear(x, Tensor(data, x.dtype, data.shape, self), bias)

    def range_levels(self, x: Tensor) -> Any:
        """One Call, where the eager backend has it for the dtype."""
        return self._call("range_levels", (x,), {}) if x.dtype is float32 else None

    def assign_in_place(self, x: Tensor, key: Any, value: Any) -> bool:
        """Nothing is: a Value is never changed."""
        return False

    def _method(self, name: str) -> Callable[..., Any]:
        """What computes a Call of this name."""
        found: Callable[..., Any] = self._others.get(name) or operation(self.eager, name)
        return found

    def _call(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        found = [x for x in _tensors((*args, *keywords.values())) if isinstance(x.data, Traced)]
        if found and name in _ASKS:
            raise needed(found[0].data.value)
        method = self._method(name)
        out = method(*[_plain(a) for a in args], **{k: _plain(v) for k, v in keywords.items()})
        if not found:
            return self._constant(out)
        call = Call(name, method, tuple(map(_recorded, args)), {k: _recorded(v) for k, v in keywords.items()})
        inputs = frozenset().union(*(x.data.value.inputs for x in found))
        call.single = isinstance(out, Tensor)
        parts = [out] if call.single else list(out) if isinstance(out, (list, tuple)) else [None]
        results = []
        for i, part in enumerate(_flat(parts)):
            if not isinstance(part, Tensor):
                raise ValueNeeded(f"{name} returns something other than a tensor", inputs)
            call.results.append(Value(call, i, part.dtype, part.shape, inputs))
            call.views |= any(np.may_share_memory(part.data, x.data.array) for x in found)
            results.append(Tensor(Traced(call.results[-1], part.data), part.dtype, part.shape, self))
        self.calls.append(call)
        return results[0] if call.single else _like(out, iter(results))

    def _constant(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return Tensor(x.data, x.dtype, x.shape, self)
        return type(x)([self._constant(v) for v in x]) if type(x) in (list, tuple) else x


def check(index: Array, lowest: int, end: int, message: str, axis: int) -> None:
    """Raise IndexingError, in a call of a plan, if an index is less than `lowest` or not less than `end`."""
    if index.size:
        refuse(int(index.min()), int(index.max()), lowest, end, message, axis)


def checked(index: Tensor, lowest: int, end: int, message: str, axis: int) -> Tensor:
    """index, once it is checked."""
    check(index.data, lowest, end, message, axis)
    return index


def described(call: Call) -> str:
    """A call in a message: "add", "reduce max"."""
    return " ".join([call.op] * (call.op not in ("unary", "binary")) + [a for a in call.args[:1] if isinstance(a, str)])


def needed(value: Value) -> ValueNeeded:
    """The error about a model that asks for the elements of a value."""
    what = "an input" if value.call is None else "a result of " + described(value.call)
    return ValueNeeded(
        f"the model asks for the elements of {what}, {value}, which depend on what it is given", value.inputs
    )


def _tensors(arguments: Iterable[Any]) -> Iterator[Tensor]:
    for x in arguments:
        if isinstance(x, Tensor):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from _tensors(x)


def _plain(x: Any) -> Any:
    """An argument for the numpy backend itself."""
    if isinstance(x, Tensor) and isinstance(x.backend, Tracing):
        array = x.data.array if isinstance(x.data, Traced) else x.data
        return Tensor(array, x.dtype, x.shape, x.backend.eager)
    return [_plain(v) for v in x] if type(x) is list else tuple(map(_plain, x)) if type(x) is tuple else x


def _recorded(x: Any) -> Any:
    """An argument as a Call keeps it."""
    if isinstance(x, Tensor) and isinstance(x.data, Traced):
        return x.data.value
    if type(x) in (list, tuple):
        return type(x)(map(_recorded, x))
    return _plain(x)


def _flat(parts: Iterable[Any]) -> Iterator[Any]:
    for part in parts:
        if isinstance(part, (list, tuple)):
            yield from _flat(part)
        else:
            yield part


def _like(shape: Any, parts: Iterator[Any]) -> Any:
    if isinstance(shape, (list, tuple)):
        return type(shape)([_like(s, parts) for s in shape])
    return next(parts)


def trace(function: Callable[..., Any], arguments: list[Any], tracing: Tracing, fixed: Collection[int]) -> Trace:
    """Trace function(*arguments), whose Tensors are on the numpy backend. fixed: positions whose Tensors are taken for
    their values. Raises ValueNeeded where the control flow depends on the values of others."""

    arrays: list[Array] = []
    shared: list[bool] = []

    def placeholder(i: int, x: Tensor) -> tuple[Value | None, Tensor]:
        if i in fixed:
            return None, Tensor(x.data.copy(), x.dtype, x.shape, tracing)
        value = Value(None, i, x.dtype, x.shape, frozenset([i]))
        arrays.append(x.data)
        return value, Tensor(Traced(value, x.data), x.dtype, x.shape, tracing)

    whole: dict[Value, Tensor] = {}

    def returned(x: Tensor) -> tuple[Value | None, Tensor | None]:
        if isinstance(x.data, Traced):
            shared.extend(np.may_share_memory(x.data.array, a) for a in arrays)
            arrays.append(x.data.array)  # nor may another result share its memory
            if whole.setdefault(x.data.value, x) is not x:  # as x.reshape(x.shape) is
                return root(tracing.reshape(x, x.shape))
        return root(x)

    try:
        found = traced(function, arguments, placeholder, returned, tracing.calls)
        found.shares = any(shared)
        return found
    except ValueNeeded:
        raise
    except BackendError as error:  # a tensor of the function's own, which is on the numpy backend itself
        if "different backends" not in str(error):
            raise ValueNeeded(f"it cannot be traced: {error}") from error
        raise ValueNeeded(
            "it cannot be traced: it takes a tensor that is neither its argument nor a parameter; pass that tensor as "
            "an argument, or keep it in a Param of a module"
        ) from error


def root(x: Tensor) -> tuple[Value | None, Tensor | None]:
    """The Value of a Tensor that a model returned, or the constant."""
    return (x.data.value, None) if isinstance(x.data, Traced) else (None, _condensed(_plain(x)))


def _condensed(x: Tensor) -> Tensor:
    """A constant, whose memory is that of one element where all are the same: writing them takes half as long as
    copying them."""
    array = x.data
    if not isinstance(array, np.ndarray) or array.dtype.hasobject or array.size < 2:
        return x
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if not np.array_equal(raw[array.itemsize :], raw[: -array.itemsize]):
        return x
    one = array.reshape(-1)[:1].copy()
    return Tensor(np.broadcast_to(one, array.shape), x.dtype, x.shape, x.backend)


def assembled(structure: Any, results: list[Any]) -> Any:
    """The model's result, with these for the roots."""
    return assemble(structure, results, _copied)


def _copied(x: Tensor) -> Tensor:
    """A constant that the caller may change: the plan keeps its own."""
    return Tensor(x.data.copy() if isinstance(x.data, np.ndarray) else x.data, x.dtype, x.shape, x.backend)
