"""The budget of evaluation: limits the memory and time of constant folding.

A few bytes of a model can demand any amount of work: a fill of 2^30 elements of which one is read, a convolution with
8192 zeros around a pixel. Evaluation therefore runs on a backend that counts. Before a primitive allocates anything,
its elements and work are compared with what is left. If they exceed it, `Exceeded` is raised, and the node stays in the
model, to be computed at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from math import prod
from time import monotonic
from typing import Any, TypeVar

from emberlet.backend import Backend, get_backend
from emberlet.backend.protocol import Protocol
from emberlet.tensor import Tensor

from .ir.problem import Problem
from .records import dataclass

T = TypeVar("T")

ELEMENTS = 1 << 22  # elements of one tensor: at most 32 MB
WORK = 1 << 25  # work of one evaluation, in elements made and read: some tenths of a second
MODEL = 1 << 28  # work of one model
SECONDS = 2.0  # of one evaluation, checked between primitives; operators that loop in Python are never evaluated
EACH = 1 << 12  # fixed cost of an evaluation: its code is written and compiled
PRODUCTS = 16  # multiplications of a matrix product that take as long as one element of other operations

CALL = 1 << 11  # fixed cost of calling a primitive
LISTED = 16  # elements that take as long as one that becomes a Python object and is visited by a Python loop


class Exceeded(Problem):
    """Folding a node would take more memory or time than the budget has."""


@dataclass
class Budget:
    """What is left: elements of one tensor, total work, and the deadline."""

    elements: int
    work: int
    until: float

    def take(self, elements: int, work: int = 0) -> None:
        """Charge for a tensor about to be made and the work of making it. Raises Exceeded."""
        self.work -= CALL + elements + work
        if elements > self.elements or self.work < 0 or monotonic() > self.until:
            raise Exceeded(f"evaluating it early would take too long or too much memory ({elements} elements at once)")


_model: ContextVar[list[int] | None] = ContextVar("emberlet_model_budget", default=None)
_done: ContextVar[dict[Hashable, tuple[object, Any]] | None] = ContextVar("emberlet_model_evaluations", default=None)


@contextmanager
def model_budget() -> Iterator[None]:
    """All evaluations in this context share one budget; nested contexts are part of the outer one."""
    if _model.get() is not None:
        yield
        return
    token, other = _model.set([MODEL]), _done.set({})
    try:
        yield
    finally:
        _model.reset(token)
        _done.reset(other)


def remembered(key: Hashable, held: object, evaluate: Callable[[], T], small: Callable[[T], bool]) -> T:
    """The result of `evaluate`, cached per key and model if it is small: a function inlined a thousand times computes
    the same a thousand times. `held` is kept alive with the result, since the key may contain its address."""
    done = _done.get()
    if done is None:
        return evaluate()
    if key not in done:
        found = evaluate()
        if not small(found):
            return found
        done[key] = (held, found)
    result: T = done[key][1]
    return result


@contextmanager
def counted(stored: int = 0) -> Iterator[Backend]:
    """The default backend, limited. `stored` elements, which the model's file contains, widen the limits.

    Raises Exceeded if the model's budget is used up.
    """
    left = _model.get() or [MODEL]
    left[0] -= EACH
    if left[0] < 0:
        raise Exceeded("the model's constants take too long to compute")
    home = _guard(get_backend().name)()
    allowed = WORK + 64 * stored
    home.budget = Budget(ELEMENTS + 8 * stored, allowed, monotonic() + SECONDS + stored / 1e7)
    try:
        yield home
    finally:
        left[0] -= max(0, allowed - max(home.budget.work, 0) - 64 * stored)


@cache
def _guard(name: str) -> type[Any]:
    """The backend class of this name, with primitives that charge the budget first. It overrides no composites whose
    result differs in size from the operand, so that these consist of counted primitives."""
    backend = get_backend(name)
    kind: type[Any] = type(backend)
    # From the instance: the plain backend's class has a kernel only after an instance has loaded it.
    own = {name: _checked(getattr(backend, name).__func__, cost) for name, cost in COSTS.items()}
    elementwise = {"relu", "sigmoid", "softmax", "log_softmax", "gelu", "batch_norm", "layer_norm", "rms_norm", "clip"}
    hidden = {name: None for name in kind.OVERRIDES if name not in elementwise}
    return type("Counted" + kind.__name__, (kind,), {**hidden, **own})


def _checked(primitive: Callable[..., Any], cost: Callable[..., tuple[int, int]]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.budget.take(*cost(*args, **kwargs))
        return primitive(self, *args, **kwargs)

    return run


# -- what each primitive makes and does: (elements of its largest tensor, further work) --------------------------------


def _same(x: Tensor, *_: Any, **__: Any) -> tuple[int, int]:
    return x.size, 0


def _second(_: Any, x: Tensor, *__: Any, **___: Any) -> tuple[int, int]:
    return x.size, 0


def _broadcast(*tensors: Tensor) -> int:
    rank = max(len(t.shape) for t in tensors)
    shapes = [(1,) * (rank - len(t.shape)) + t.shape for t in tensors]
    return prod(max(sizes) if 0 not in sizes else 0 for sizes in zip(*shapes, strict=True))


def _matmul(a: Tensor, b: Tensor) -> tuple[int, int]:
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    batch = rank_product(a.shape[:-2], b.shape[:-2])
    return batch * rows * columns, batch * rows * columns * inner // PRODUCTS


def rank_product(a: Sequence[int], b: Sequence[int]) -> int:
    """The number of matrices that two stacks broadcast to."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)
    return prod(max(m, n) if m and n else 0 for m, n in pairs)


def _windows(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[Sequence[int]],
    dilation: Sequence[int],
) -> tuple[int, int]:
    """(elements of the padded input, positions of a window)"""
    padded, places = prod(x.shape[:2]), 1
    for n, k, s, (low, high), d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True):
        padded *= n + low + high
        places *= max(0, (n + low + high - d * (k - 1) - 1) // s + 1)
    return padded, places


def _conv(x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    padded, places = _windows(x, weight.shape[2:], stride, padding, dilation)
    columns = x.shape[0] * x.shape[1] * places * prod(weight.shape[2:])
    made = x.shape[0] * weight.shape[0] * places
    return max(padded, min(columns, 1 << 21), made), padded + columns * (1 + weight.shape[0] // groups // PRODUCTS)


def _pool(op: str, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, int]:
    padded, places = _windows(x, kernel, stride, padding, dilation)
    made = prod(x.shape[:2]) * places
    return max(padded, made), made * prod(kernel)


def _taken(x: Tensor, indices: Tensor, axis: int) -> tuple[int, int]:
    return prod(x.shape[:axis]) * indices.size * prod(x.shape[axis + 1 :]), 0


def _list(values: Sequence[Any], dtype: Any, shape: Any) -> tuple[int, int]:
    """The number of elements; a character of a string counts as 64, since it ends up in the generated source."""
    return max(len(values), 64 * sum(map(len, values)) if dtype.kind == "string" else 0), LISTED * len(values)


def _slice(x: Tensor, starts: Any, sizes: Sequence[int], steps: Any) -> tuple[int, int]:
    return prod(sizes), 0


def _pad(x: Tensor, padding: Sequence[Sequence[int]], value: Any) -> tuple[int, int]:
    return prod(n + low + high for n, (low, high) in zip(x.shape, padding, strict=True)), 0


COSTS: dict[str, Callable[..., tuple[int, int]]] = {
    "from_bytes": lambda data, dtype, shape: (prod(shape), 0),
    "from_list": _list,
    "to_list": lambda x: (x.size, LISTED * x.size),
    "full": lambda shape, value, dtype: (prod(shape), 0),
    "arange": lambda start, step, count, dtype: (count, 0),
    "random_bits": lambda shape, key, counter: (prod(shape), 0),
    "unary": _second,
    "binary": lambda op, a, b: (_broadcast(a, b), 0),
    "where": lambda condition, a, b: (_broadcast(condition, a, b), 0),
    "cast": _same,
    "bitcast": _same,
    "reduce": _second,
    "argreduce": _second,
    "cumulative": _second,
    "sort": lambda x, axis, descending: (x.size, 16 * x.size),
    "matmul": _matmul,
    "conv": _conv,
    "pool": _pool,
    "take": _taken,
    "gather": lambda x, indices, axis: (indices.size, 0),
    "scatter": lambda x, indices, updates, axis, op: (max(x.size, updates.size), 0),
    "nonzero": lambda x: (x.size * max(1, len(x.shape)), 0),
    "reshape": _same,
    "expand": lambda x, shape: (prod(shape), 0),
    "slice": _slice,
    "pad": _pad,
    "concat": lambda tensors, axis: (sum(t.size for t in tensors), 0),
}
FREE = ("to_bytes", "permute")
"""Primitives that allocate nothing."""

PRIMITIVES = frozenset(n for n in vars(Protocol) if not n.startswith("_"))
