"""Large arrays: chains, products and reductions at the true sizes of the thresholds, none of them lowered."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..case import Case
from ..properties import broken
from ..reference import Refused, expected
from ..ways import Way, available

NEEDS: tuple[str, ...] = ()
STEPS = ["{v} / (F.max(F.abs({v})) + 1.0) + 1.0", "{v} * 0.5 - {w}", "F.where({v} > 0, {v}, {w})", "F.tanh({v}) + {w}",
         "F.softmax({v}, axis=-1)", "{v} - F.mean({v}, axis=1, keepdims=True)", "F.clip({v}, F.min({w}), None) * 2.0",
         "F.relu({v} @ F.ones(({n}, {n}), dtype=D.float32, device=B)) * 0.001", "F.concat([{v}, {w}], axis=0)[::2]",
         "F.full(({m}, {n}), 0.25, dtype=D.float32, device=B)", "F.layer_norm({v})",
         "F.cumulative_sum({v}, axis=1) * 0.01",
         "{v}[::-1] + F.zeros(({m}, {n}), dtype=D.float32, device=B)", "F.sort({v}, -1)"]  # fmt: skip
SHAPES = ((512, 512), (300, 1000), (1, 70000), (70000, 1), (2049, 33), (1 << 19, 1))
# The interpreter would take minutes, and a GPU in software seconds for each.
ON = (
    "compiled for numpy",
    "compiled for numpy with open sizes",
    "compiled for wasm",
    "compiled for native",
)


class Drawn(NamedTuple):
    lines: tuple[str, ...]
    shape: tuple[int, int]
    seed: int


def draw(choose: random.Random) -> Drawn | None:
    m, n = choose.choice(SHAPES)
    lines = []
    for i in range(choose.randint(1, 5)):
        line = choose.choice([s for s in STEPS if "@" not in s or n <= 1000])
        lines.append(line.format(v=f"v{i}", w=f"v{choose.randint(0, i)}", m=m, n=n))
    return Drawn(tuple(lines), (m, n), choose.randrange(1 << 30))


def case_of(drawn: Drawn) -> Case:
    lines = [f"    v{i + 1} = {line}" for i, line in enumerate(drawn.lines)]
    body = "\n".join(["def program(v0):", "    B = v0.backend", *lines, f"    return v{len(lines)}"])
    values = np.random.default_rng(drawn.seed)
    calls = tuple((values.standard_normal(drawn.shape).astype(np.float32),) for _ in range(2))
    return Case(f"{body}\n\n\ndef make(B):\n    return program\n", calls, drawn.seed, "large arrays")


def ways() -> list[Way]:
    return [w for w in available() if w.name in ON]


def difference(drawn: Drawn) -> str:
    case = case_of(drawn)
    try:
        wanted = [expected(case, arrays) for arrays in case.calls]
    except Exception:
        return ""
    if any(isinstance(w, Refused) for w in wanted):
        return ""
    return broken(case, ways(), wanted, lowering="none")


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    return (drawn._replace(lines=drawn.lines[:k]) for k in range(1, len(drawn.lines)))


def program(drawn: Drawn) -> str:
    return case_of(drawn).text()
