"""Random numbers: the same sequence of draws after the same seed on every backend, whatever was drawn before."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from emberlet import functional as F
from emberlet.backend import get_backend

from ..case import COUNTED, HEAD
from ..reference import EPSILON, Leaf, leaves, quiet
from ..ways import BACKENDS, available

NEEDS: tuple[str, ...] = ()
CALLS = [
    "F.uniform({s}, -1.0, 3.0, dtype='{f}', backend=B{seed})",
    "F.normal({s}, 0.5, 2.0, dtype='{f}', backend=B{seed})",
    "F.bernoulli(0.3, {s}, backend=B{seed})",
    "F.randint(-5, 9, {s}, backend=B{seed})",
    "F.random_bits({s}, backend=B{seed})",
    "F.permutation({n}, backend=B{seed})",
    "F.random({s}, 'normal', backend=B{seed})",
    "F.dropout_with_mask(F.ones({s}, backend=B), 0.4{seed})[0]",
    "F.dropout_with_mask(F.ones({s}, backend=B), 0.4{seed})[1]",
    "F.multinomial(F.ones((2, {n}), backend=B), 2, True{seed})",
    "F.random_like(F.ones({s}, backend=B), 'uniform', 0.0, 2.0{seed})",
]
BITS = "get_backend(B).random_bits({s}, {key}, {counter})"  # whose counter may pass 32 and 64 bits

AFTER = "F.random_bits((3,), backend=B)"  # shows how far the sequence is
COUNTERS = (0, 5, (1 << 32) - 1, 1 << 32, (1 << 64) - 2, (1 << 96) + 3)


class Drawn(NamedTuple):
    """The seed of the sequence, and its calls."""

    seed: int
    calls: tuple[str, ...]


def draw(choose: random.Random) -> Drawn | None:
    calls = []
    for _ in range(choose.randint(1, 7)):
        shape = tuple(choose.choice([1, 2, 3, 3, 5, 5, 17, 0]) for _ in range(choose.choice([0, 1, 1, 2, 2, 3])))
        seed = f", seed={choose.choice([0, 7, 1 << 31, (1 << 32) + 5, (1 << 63) + 1])}" if choose.random() < 0.2 else ""
        kind = choose.choice(["float32", "float64", "float64", "float16"])
        # The first two have a dtype, on which it depends how many words they take.
        call = choose.choice(CALLS[:2] if choose.random() < 0.4 else [*CALLS, BITS, BITS, BITS])
        calls.append(call.format(s=shape, f=kind, n=choose.randint(2, 9), seed=seed,
            key=choose.choice([0, 7, (1 << 63) + 1]), counter=choose.choice(COUNTERS)))  # fmt: skip
    return Drawn(choose.choice([0, 1, 12345, 1 << 40, choose.randrange(1 << 60)]), (*calls, AFTER))


def _sequence(drawn: Drawn, backend: str) -> list[Leaf]:
    F.manual_seed(drawn.seed)
    scope = {"F": F, "B": backend, "get_backend": get_backend}
    with quiet():
        return [leaf for call in drawn.calls for leaf in leaves(eval(call, scope))]


def difference(drawn: Drawn) -> str:
    COUNTED["random sequences"] += 1
    here = {w.backend for w in available()}
    wanted = _sequence(drawn, "numpy")
    for backend in BACKENDS:
        if backend not in here or backend == "numpy":
            continue
        try:
            found = _sequence(drawn, backend)
        except Exception as error:
            return f"on {backend}: raises {type(error).__name__}: {error}"
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            if said := _unlike(a, b, backend):
                return f"on {backend}, {drawn.calls[i] if len(found) == len(drawn.calls) else i}: {said}"
    return ""


def _unlike(got: Leaf, want: Leaf, backend: str) -> str:
    if got.dtype != want.dtype or got.array.shape != want.array.shape:
        return f"{got.dtype} {got.array.shape}, NumPy has {want.dtype} {want.array.shape}"
    a, b = got.array.astype(np.float64), want.array.astype(np.float64)
    # Box-Muller's logarithm and cosine round; float64 is computed in float32 on wgpu, wasm and native.
    kind = "float32" if got.dtype == "float64" and backend in ("wgpu", "wasm", "native") else got.dtype
    near = np.abs(a - b) <= 64 * EPSILON.get(kind, 0.0) * np.maximum(1.0, np.abs(b))
    if near.all():
        return ""
    return f"{int((~near).sum())} of {near.size} differ; it has {a[~near][0]}, NumPy has {b[~near][0]}"


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    return (drawn._replace(calls=drawn.calls[:k] + drawn.calls[k + 1 :]) for k in range(len(drawn.calls)))


def program(drawn: Drawn) -> str:
    lines: list[Any] = [
        HEAD,
        "from emberlet.backend import get_backend",
        "",
        "for B in ('numpy', 'python', 'wgpu', 'wasm'):",
        f"    F.manual_seed({drawn.seed})",
    ]
    return "\n".join([*lines, *(f"    print(B, np.asarray({call}))" for call in drawn.calls)])
