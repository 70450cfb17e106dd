"""One operation computed at once on a GPU in one shape after another, whose kernels share plans, against NumPy.

A case is an operation, and for each of some calls the shapes of its arrays, in which any length may be 1 and then
broadcasts. A call's values depend on its place. Rounding differs, so results are compared to 1e-4.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

NEEDS = ("gpu-driver",)
LENGTHS = (1, 1, 2, 3, 4, 5, 6, 8, 17, 33)
CALLS = 12

Shape = tuple[int, ...]
# name -> (how many arrays it takes, in terms of F, which is NumPy or emberlet.functional)
OPERATIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "a * b + 1": (2, lambda F, a, b: a * b + 1.0),
    "a + b - c": (3, lambda F, a, b, c: a + b - c),
    "where(a > 0, b, c)": (3, lambda F, a, b, c: F.where(a > 0.0, b, c)),
    "broadcast_to(a, b.shape) * 1.5": (2, lambda F, a, b: F.broadcast_to(a, b.shape) * 1.5),
    "matmul(a, b)": (2, lambda F, a, b: F.matmul(a, b)),
    "sum(a * b, 0)": (2, lambda F, a, b: F.sum(a * b, axis=0)),
    "max(a - b, -1) * 2": (2, lambda F, a, b: F.max(a - b, axis=-1) * 2.0),
    "a - mean(a, 0)": (1, lambda F, a: a - F.mean(a, axis=0, keepdims=True)),
    "(a + b) turned": (2, lambda F, a, b: F.permute_dims(a + b, tuple(range(a.ndim))[::-1]) * 2.0),
    "a reshaped": (1, lambda F, a: F.reshape(a * 2.0, (a.shape[-1], -1)) + 1.0),
}


class Case(NamedTuple):
    operation: str
    calls: tuple[tuple[Shape, ...], ...]


def draw(choose: random.Random) -> Case:
    name = choose.choice(list(OPERATIONS))
    rank = choose.randint(2 if name == "matmul(a, b)" else 1, 4)
    return Case(name, tuple(_shapes(choose, name, rank) for _ in range(choose.randint(2, CALLS))))


def _shapes(choose: random.Random, name: str, rank: int) -> tuple[Shape, ...]:
    whole = tuple(choose.choice(LENGTHS if rank < 4 else LENGTHS[:6]) for _ in range(rank))
    out = [tuple(choose.choice((n, n, 1)) for n in whole) for _ in range(OPERATIONS[name][0])]
    if name == "matmul(a, b)":
        inner = choose.choice(LENGTHS)
        out = [(*out[0][:-1], inner), (*out[1][:-2], inner, whole[-1])]
    elif name.startswith("broadcast_to"):
        out[1] = whole
    return tuple(out)


def difference(case: Case) -> str:
    from emberlet import functional
    from emberlet.functional.arrays import asarray
    from emberlet.wgpu_backend import WgpuBackend

    function = OPERATIONS[case.operation][1]
    backend = WgpuBackend()
    for k, shapes in enumerate(case.calls):
        values = np.random.default_rng(k)
        arrays = [values.standard_normal(shape).astype(np.float32) for shape in shapes]
        try:
            wanted = function(np, *arrays)
        except ValueError:  # a simpler case whose shapes do not broadcast
            return ""
        try:
            found = np.asarray(function(functional, *(asarray(a, device=backend) for a in arrays)))
        except Exception as error:
            return f"call {k} of {case.operation} on {shapes} raises {type(error).__name__}: {error}"
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=1e-4, atol=1e-4):
            return f"call {k} of {case.operation} on {shapes} gives {found.tolist()}, NumPy {wanted.tolist()}"
    return ""


def simpler(case: Case) -> Iterable[Case]:
    for k in range(len(case.calls)):
        yield case._replace(calls=case.calls[:k] + case.calls[k + 1 :])
    for n in {n for call in case.calls for shape in call for n in shape if n > 2}:
        calls = tuple(tuple(tuple(2 if d == n else d for d in s) for s in call) for call in case.calls)
        yield case._replace(calls=calls)


def program(case: Case) -> str:
    return f"from fuzz.differential.kinds.shapes import Case, difference\n\nprint(difference({case!r}))\n"
