"""The calls of benches/plans.py: every function on arrays of a size, and its plan."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CALLS = Path(__file__).resolve().parents[1] / "tests" / "core" / "calls"
SIDES = (8, 128, 1024)
AS_TESTED = 0  # in place of a size: the arguments of tests/core/calls
Arguments = Callable[[int], list[Any]]

_DRAW = np.random.default_rng(0)


def _x(n: int, *shape: int) -> Any:
    return _DRAW.random(shape or (n, n), np.float32) + np.float32(0.1)


def _ints(n: int, *shape: int) -> Any:
    return _DRAW.integers(0, n, shape or (n, n))


def _mask(n: int) -> Any:
    return _DRAW.random((n, n)) > 0.5


# The first that a function takes and computes, and none of whose tensors it reads on the host.
ARGUMENTS: tuple[Arguments, ...] = (
    lambda n: [_x(n)],
    lambda n: [_x(n), _x(n)],
    lambda n: [_x(n), _x(n), _x(n)],
    lambda n: [_mask(n), _x(n), _x(n)],
    lambda n: [_mask(n)],
    lambda n: [_mask(n), _mask(n)],
    lambda n: [_ints(n), _ints(n)],
    lambda n: [_x(n), 0],
    lambda n: [_x(n), 1.5],
    lambda n: [_x(n), (n, n)],
    lambda n: [_x(n), _ints(n, n)],
    lambda n: [_x(n), _ints(n)],
    lambda n: [_ints(n, n), _x(n)],
    lambda n: [_x(n), 0, _ints(n)],
    lambda n: [_x(n), 0, _ints(n), _x(n)],
    lambda n: [[_x(n), _x(n)]],
    lambda n: [_x(n), _x(n, n)],
    lambda n: [_x(n), _x(n), _x(n, n)],
    lambda n: [_x(n), 0, 1],
    lambda n: [_x(n), 0, 0, n // 2],
)
POOLS = ("max_pool2d", "avg_pool2d", "lp_pool2d", "max_pool", "avg_pool")
OWN: Mapping[str, Arguments] = {
    **{name: lambda n: [_x(n, 1, 4, n, n), 2] for name in POOLS},
    "conv": lambda n: [_x(n, 1, 4, n, n), _x(n, 8, 4, 3, 3)],
    "conv2d": lambda n: [_x(n, 1, 4, n, n), _x(n, 8, 4, 3, 3)],
    "conv_transpose2d": lambda n: [_x(n, 1, 4, n, n), _x(n, 4, 8, 3, 3)],
    "interpolate": lambda n: [_x(n, 1, 4, n, n), (2 * n, n)],
    "dot_product_attention": lambda n: [_x(n, 1, 4, n, 16), _x(n, 1, 4, n, 16), _x(n, 1, 4, n, 16)],
    "instance_norm": lambda n: [_x(n, 1, 4, n, n)],
    "pixel_shuffle": lambda n: [_x(n, 1, 4, n, n), 2],
    "leaky_relu": lambda n: [_x(n) - 0.5],
    "pad": lambda n: [_x(n), 1],
    "broadcast_shapes": lambda n: [(n, 1), (1, n)],
    "istft": lambda n: [_x(n, 1, n, n // 2 + 1, 2), max(1, n // 4), _x(n, n)],
    "view_as_complex": lambda n: [_x(n, n, n, 2)],
    "view_as_real": lambda n: [_x(n) + 1j * _x(n)],
    **{name: lambda n: [_x(n), "numpy"] for name in ("move", "to", "to_device")},
}  # fmt: skip

# What changes functions: a function of tensors that calls it. F: emberlet.functional.
TRANSFORMS: Mapping[str, Callable[[Any], Callable[..., Any]]] = {
    "grad": lambda F: F.grad(lambda y: F.sum(F.exp(y))),
    "value_and_grad": lambda F: F.value_and_grad(lambda y: F.sum(F.exp(y))),
    "vjp": lambda F: lambda x, y: F.vjp(lambda z: F.exp(z), x)[1](y),
    "jvp": lambda F: lambda x, y: F.jvp(lambda z: F.exp(z), (x,), (y,)),
}


class Compared(NamedTuple):
    """call: what is compared with its plan, on these tensors; views: whether it returns parts of them, and copies them
    here; products: whether it multiplies matrices."""

    call: Callable[..., Any]
    compiled: Any
    tensors: list[Any]
    views: bool
    products: bool


def functions() -> Iterator[str]:
    """The names of all functions."""
    from emberlet.names import FAMILIES

    for methods, others in FAMILIES.values():
        yield from methods.split()
        yield from others.split()


class _Given(ast.NodeTransformer):
    """Puts names in the place of the tensors that a call of tests/core/calls makes: X(…), P(…), V(…)."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in ("X", "P", "V"):
            self.made.append(ast.unparse(node))
            return ast.Name(f"given{len(self.made)}", ast.Load())
        return self.generic_visit(node)


@cache
def tested() -> dict[str, list[str]]:
    """The calls of tests/core/calls by the name of their function."""
    found: dict[str, list[str]] = {}
    for path in sorted(CALLS.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            found.setdefault(line.partition("(")[0], []).append(line)
    return found


@cache
def _scope() -> dict[str, Any]:
    """The names in the calls of tests/core/calls."""
    import emberlet
    from emberlet import functional as F
    from emberlet import nn

    def drawn(shape: tuple[int, ...], dtype: str, low: int, high: int, step: float) -> Any:
        return F.astype(F.asarray(_DRAW.integers(low, high, shape) * np.float32(step)), dtype)

    return {
        **{name: getattr(F, name) for name in dir(F)}, "F": F, "nn": nn, "emberlet": emberlet, "S": slice,
        "nan": math.nan, "inf": math.inf, "V": lambda values, dtype=None: F.asarray(values, dtype=dtype),
        "P": lambda *shape, dtype="float32": drawn(shape, dtype, 1, 65, 1 / 64),
        "X": lambda *shape, dtype="float32": drawn(shape, dtype, -3, 4, 1 if "int" in dtype else 0.4),
    }  # fmt: skip


def as_tested(text: str) -> tuple[Callable[..., Any], list[Any]]:
    """(the function of its tensors, the tensors) for a call of tests/core/calls."""
    scope = _scope()
    given = _Given()
    body = ast.unparse(given.visit(ast.parse(text, mode="eval")))
    names = [f"given{i + 1}" for i in range(len(given.made))]
    call: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {body}", scope)
    return call, [eval(made, scope) for made in given.made]


def on_squares(name: str, arguments: Arguments, n: int) -> tuple[Callable[..., Any], list[Any]]:
    """(the function of its tensors, the tensors) for some of ARGUMENTS."""
    import emberlet
    from emberlet import functional as F

    function = TRANSFORMS[name](F) if name in TRANSFORMS else getattr(F, name)
    given = arguments(n)
    listed = isinstance(given[0], list)
    arrays = [a for a in (given[0] if listed else given) if isinstance(a, np.ndarray)]

    def call(*xs: Any) -> Any:
        rest = iter(xs)
        if listed:
            return function(list(xs))
        return function(*[next(rest) if isinstance(a, np.ndarray) else a for a in given])

    return call, [emberlet.asarray(a, backend="numpy") for a in arrays]


def prepared(call: Callable[..., Any], tensors: list[Any]) -> Compared | str:
    """The function and its plan, or why they are not compared: one of WHY, or empty where it does not take these."""
    from emberlet.errors import EmberletError
    from emberlet.host.numpy_backend.compile import compile
    from emberlet.tensor import Tensor

    try:
        out = call(*tensors)
        parts = out if isinstance(out, (list, tuple)) else [out]
        if not parts or not all(isinstance(part, Tensor) for part in parts):
            return "no tensor"
        compiled = compile(call, *tensors)
        compiled(*tensors)
    except (EmberletError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return ""
    if compiled.cut is not None:
        return "values"
    arrays = [x.data for x in tensors]
    viewed = [any(np.may_share_memory(part.data, a) for a in arrays) for part in parts]
    products = any(step.function is np.matmul for step in compiled.plan(*tensors).steps)
    return Compared(with_copies(call, viewed) if any(viewed) else call, compiled, tensors, any(viewed), products)


WHY = {
    "values": "They ask for values or draw random numbers, so that they have no plan and run as they are",
    "no tensor": "They return something other than tensors",
    "": "In no call of the benchmark, since they need a file, another backend or gradients that were recorded",
}


def with_copies(call: Callable[..., Any], viewed: list[bool]) -> Callable[..., Any]:
    """A function whose results are the caller's own: those that are parts of arguments are copied."""
    from emberlet.tensor import Tensor

    def own(x: Any) -> Any:
        return Tensor(x.data.copy(), x.dtype, x.shape, x.backend)

    def copying(*xs: Any) -> Any:
        out = call(*xs)
        if isinstance(out, Tensor):
            return own(out)
        return [own(x) if view else x for x, view in zip(out, viewed, strict=True)]

    return copying


def cases(name: str) -> Iterator[tuple[int, Compared | str]]:
    """(a size, a function and its plan) for growing sizes, or as tested, or why it is not compared."""
    whys: list[str] = []
    for arguments in (OWN[name],) if name in OWN else ARGUMENTS:
        found = prepared(*on_squares(name, arguments, SIDES[0]))
        if isinstance(found, str):
            whys.append(found)
            continue
        yield SIDES[0], found
        for n in SIDES[1:]:
            found = prepared(*on_squares(name, arguments, n))
            if isinstance(found, str):
                return
            yield n, found
        return
    for text in tested().get(name, ()):
        found = prepared(*as_tested(text))
        if not isinstance(found, str):
            yield AS_TESTED, found
            return
        whys.append(found)
    yield AS_TESTED, next((why for why in WHY if why in whys), "")
