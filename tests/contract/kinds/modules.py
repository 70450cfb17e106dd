"""Modules written by hand, as users write them: layers with weights, constants made inside of `forward` and of
`__init__`, modules without inputs, lists of layers, numbers as arguments, what depends on lengths, several results, by
name or not; on every way, copies included."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..case import Case, other_values
from ..properties import broken
from ..reference import Refused, choice
from .layers import with_further

NEEDS: tuple[str, ...] = ()


class Drawn(NamedTuple):
    """Lines of `__init__` and of `forward`, of which each defines v0, v1, …; the numbers of the values returned; the
    shape of the input; a seed; whether the results are a dict; whether `forward` takes a number as well."""

    made: tuple[str, ...]
    lines: tuple[str, ...]
    returned: tuple[int, ...]
    shape: tuple[int, ...]
    seed: int
    named: bool = False
    number: bool = False


TABLE = """
class Table(nn.Module):
    def __init__(self, n, B):
        self.rows = F.reshape(F.arange(n, dtype=D.float32, device=B), (1, n)) * 0.25

    def forward(self):
        return self.rows + 1.0

"""
# (line of __init__ or "", line of forward); {n} the width, {m} the number of rows, {v} and {w} earlier values, {d} a
# digit, k the number
STEPS = [
    ("self.a{i} = nn.Linear({n}, {n}, backend=B)", "self.a{i}({v})"),
    ("self.a{i} = nn.LayerNorm({n}, backend=B)", "self.a{i}({v})"),
    ("self.a{i} = nn.RmsNorm({n}, backend=B)", "self.a{i}({v})"),
    ("self.a{i} = [nn.Linear({n}, {n}, bias=False, backend=B) for _ in range(2)]",
     "self.a{i}[1](F.tanh(self.a{i}[0]({v})))"),
    ("self.a{i} = nn.SwiGlu({n}, {n}, backend=B)", "self.a{i}({v})"),
    ("self.a{i} = F.reshape(F.arange({n}, dtype=D.float32, device=B), ({n},)) / 4", "{v} * self.a{i}"),
    ("self.a{i} = emberlet.asarray(np.eye({n}, dtype='float32')[::-1].copy(), device=B)", "{v} @ self.a{i}"),
    ("self.a{i} = Table({n}, B)", "{v} + self.a{i}()"),
    ("self.a{i} = Table({n}, B)", "F.concat([{v}, F.broadcast_to(self.a{i}(), ({m}, {n}))], axis=0)[:{m}]"),
    ("", "{v} + F.ones(({m}, {n}), dtype=D.float32, device={v}.backend)"),
    ("", "F.zeros(({m}, {n}), dtype=D.float32, device={v}.backend)"),
    ("", "F.full(({m}, {n}), 0.5, dtype=D.float32, device={v}.backend) + F.max({v})"),
    ("", "{v} / (F.max(F.abs({v})) + 1.0) + 1.0"),
    ("", "{v} - F.mean({v}, axis=1, keepdims=True)"),
    ("", "F.softmax({v}, axis=-1)"),
    ("", "F.where({v} > 0, {v} + {w}, {w})"),
    ("", "{v} + {w}"),
    ("", "{v} * 0.5 - {w}"),
    ("", "F.clip({v}, F.min({w}), None)"),
    ("", "F.cumulative_sum({v}, axis=0) * 0.25"),
    ("", "{v}[::-1]"),
    ("", "F.take({v}, F.arange({m} - 1, -1, -1, device={v}.backend), 0)"),
    ("", "F.relu({v})"),
    ("", "F.gelu({v})"),
    ("", "F.sigmoid({v})"),
    ("", "F.leaky_relu({v}, 0.1)"),
    ("", "F.permute_dims(F.permute_dims({v}, (1, 0)), (1, 0))"),
    ("", "F.tanh(F.matmul({v}, F.matmul(F.permute_dims({v}, (1, 0)), {w})) * 0.1)"),
    ("", "F.sort({v}, -1)"),
    ("", "F.tril({v}) + F.triu({w}, k=1)"),
    ("self.a{i} = nn.Conv1d({m}, {m}, 3, padding=1, backend=B)", "self.a{i}({v}.reshape((1, {m}, {n})))[0]"),
    ("self.a{i} = nn.BatchNorm1d({n}, backend=B)", "self.a{i}({v})"),
    ("self.a{i} = nn.Embedding(7, {n}, backend=B)", "{v} + self.a{i}(F.arange({m}, device={v}.backend) % 7)"),
]  # fmt: skip


NUMBERS = (-2.0, 0.5, 1, 3, 2.5)
WITH_NUMBER = [
    ("", "{v} * k"),
    ("", "F.clip({v}, None, k)"),
    ("", "{v} + {w} if k > 1 else {v} - {w}"),
    ("", "F.roll({v}, int(k), 0)"),
    ("", "F.full({v}.shape, float(k), dtype=D.float32, device={v}.backend) - {v}"),
]
# What depends on the number of rows, which may be open
WITH_LENGTHS = [
    ("", "{v} * (1.0 / {v}.shape[0])"),
    ("", "{v} * {v}.shape[0] ** -0.5"),
    ("", "F.concat([{v}[{v}.shape[0] // 2 :], {v}[: {v}.shape[0] // 2]], axis=0)"),
    ("", "{v} + emberlet.asarray([[float({v}.shape[0])]], device={v}.backend)"),
    ("", "{v} * F.reshape(F.arange({v}.shape[0], dtype=D.float32, device={v}.backend), (-1, 1))"),
    ("", "F.pad({v}, ((0, max({v}.shape[0], {d}) - {v}.shape[0]), (0, 0)))[: {v}.shape[0]]"),
]


def draw(choose: random.Random) -> Drawn | None:
    m, n = choose.choice([1, 2, 3, 5, 8]), choose.choice([1, 2, 4, 6, 17])
    made: list[str] = []
    lines: list[str] = []
    number = choose.random() < 0.2
    steps = [s for s in STEPS if choose.random() < 0.5 or "{m}" not in s[1]]
    steps += (WITH_NUMBER * 2 if number else []) + WITH_LENGTHS
    for i in range(choose.randint(1, 8)):
        init, forward = choose.choice(steps)
        values = {"i": i, "m": m, "n": n, "v": f"v{choose.randint(max(0, i - 2), i)}", "w": f"v{choose.randint(0, i)}",
                  "d": choose.randint(2, 9)}  # fmt: skip
        made.append(init.format(**values))
        lines.append(forward.format(**values))
    count = choose.choice([1, 1, 1, 2, 3])
    returned = (len(lines), *(choose.randint(1, len(lines)) for _ in range(count - 1)))
    named = choose.random() < 0.15
    return Drawn(tuple(made), tuple(lines), returned, (m, n), choose.randrange(1 << 30), named, number)


def source(drawn: Drawn) -> str:
    made = [f"        {line}" for line in drawn.made if line] or ["        pass"]
    lines = [f"        v{i + 1} = {line}" for i, line in enumerate(drawn.lines)]
    numbers = list(dict.fromkeys(drawn.returned))
    returned = ", ".join(f"v{i}" for i in numbers)
    if drawn.named:
        each = [f'"of {i}": v{i}' for i in numbers]
        returned = "{" + ", ".join([*each, f'"all": [{returned}]', f'"last": v{numbers[-1]}']) + "}"
    taken = "self, v0, k" if drawn.number else "self, v0"
    return "\n".join([
        TABLE, "class Net(nn.Module):", "    def __init__(self, B):", *made, "", f"    def forward({taken}):", *lines,
        f"        return {returned}", "", "", "def make(B):", "    return Net(B)", "",
    ])  # fmt: skip


def case_of(drawn: Drawn) -> Case:
    choose = choice(drawn.seed, "values")
    first = np.random.default_rng(drawn.seed).standard_normal(drawn.shape).astype(np.float32)
    other = other_values(first, choose)
    one, two = choose.sample(NUMBERS, 2)
    calls = ((first, one), (other, two)) if drawn.number else ((first,), (other,))
    return Case(source(drawn), calls, drawn.seed, "modules")


def difference(drawn: Drawn) -> str:
    case = case_of(drawn)
    try:
        case, wanted = with_further(case)
    except Exception:
        return ""  # shrinking tries what is no module any more
    if any(isinstance(w, Refused) for w in wanted):
        return ""
    return broken(case, wanted=wanted)


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    for k in range(1, len(drawn.lines)):
        yield drawn._replace(made=drawn.made[:k], lines=drawn.lines[:k], returned=(k,))
    if len(drawn.returned) > 1:
        yield drawn._replace(returned=drawn.returned[:1])
    if drawn.named:
        yield drawn._replace(named=False)
    for k in range(len(drawn.lines)):
        if not drawn.lines[k] == f"v{k}":
            made = (*drawn.made[:k], "", *drawn.made[k + 1 :])
            yield drawn._replace(made=made, lines=(*drawn.lines[:k], f"v{k}", *drawn.lines[k + 1 :]))


def program(drawn: Drawn) -> str:
    return with_further(case_of(drawn))[0].text()
