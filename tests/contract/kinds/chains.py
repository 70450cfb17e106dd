"""Functions of several arrays: elementwise chains between views of what they compute (reversed, transposed, parts that
broadcast), between borders, casts, repeated parts, products and reductions, with branches that join again and results
from the middle; numbers, and arrays whose values decide.

What rounds or jumps by chance is drawn of the inputs alone, and what is infinite or NaN is a result of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..case import Case, of_other_kinds, of_other_lengths, other_values
from ..properties import broken
from ..reference import Refused, choice, expected

NEEDS: tuple[str, ...] = ()


HELPER = """def assigned(x):
    y = x * 1.5
    z = F.reshape(y, (-1,))
    y[:1] = 7.0
    return y + F.reshape(z, x.shape)


"""


class Drawn(NamedTuple):
    """lines: of a function of a, c (m, n) and b (n, m); line i defines v{i + 1} (m, n), and may define r{i}. returned:
    the names of its results. number: whether it takes a number k; decides: whether it takes an array s of one element,
    whose value decides what runs."""

    lines: tuple[str, ...]
    returned: tuple[str, ...]
    shape: tuple[int, int]
    seed: int
    number: bool = False
    decides: bool = False


# {v}, {w}: earlier values; {r}: a result of this line's own; {d} a small number; M, N: the lengths, perhaps open
PLAIN = ["{v} + {w}", "{v} * 0.5 - {w}", "F.tanh({v}) + {w}", "F.relu({v})", "{v} * F.sigmoid({w})", "F.abs({v}) - {w}",
         "F.minimum({v}, {w}) * 2.0", "F.where(a > c, {v}, {w} * 0.5)",
         "{v} / (F.max(F.abs({v})) + 1.0) + 1.0"]  # fmt: skip
VIEWS = ["F.tanh({v}) + F.reshape(F.abs(b) * 2.0, (M, N))", "F.abs({v}) - F.permute_dims(F.tanh(b) * 2.0, (1, 0))",
         "{w} * (p := F.sort({v}, -1))[:1] - F.tanh(p)", "F.abs(p := F.sort({v}, -1)) + {w} * p[:, -1:]",
         "(q := (p := F.tanh({v}))[::-1] + {w}) * 0.5 + p * 2.0",
         "F.abs((p := F.tanh({v}))[:, ::-1] - {w}) - F.abs(p)",
         "{w} + {v}[-1:]", "{w} * {v}[:1]", "{w} - {v}[:, :1]", "{w} + {v}[:, -1:]", "{v}[::-1] + {w}",
         "{w} * 0.5 - {v}[:, ::-1]", "F.permute_dims(b, (1, 0)) + {v}", "F.permute_dims(F.tanh(b) * 2.0, (1, 0)) - {v}",
         "({r} := F.tanh(b)) is None or F.tanh({v}) * 0.5", "F.reshape(F.abs(b) + 1.0, (M, N)) - {v}",
         "F.reshape(F.permute_dims({v}, (1, 0)), (M, N)) + {w}", "F.tile({v}, (1, 3))[:, {d} : {d} + N]",
         "F.repeat({v}, 2, axis=1)[:, 1 : N + 1] - {w}", "F.roll({v}, {d}, 1) + {w}",
         "F.concat([{v}, {w}], 0)[{d} : {d} + M]",
         "({r} := F.reshape({v} * 2.0, (-1,))) is None or {v} + 1.0",
         "({r} := F.reshape({v} + {w}, (N, M))) is None or {w} * 0.5",
         "F.reshape(F.concat([F.reshape({v}, (-1,)), F.reshape(b, (-1,))], 0)[{d} : {d} + M * N], (M, N))"]  # fmt: skip
ASSIGNED = ["assigned({v})", "assigned({v}) * 0.5 - {w}"]
SQUARE = ["F.permute_dims({v}, (1, 0)) + {w}", "{w} - F.permute_dims({v}, (1, 0)) * {v}"]
BORDERS = ["(F.pad(F.abs(F.pad({v}, ((1, 1), (0, 0))))[1:-1], ((1, 1), (0, 0))) - F.pad({w}, ((1, 1), (0, 0))))"
           "[{d} % 3 :][:M]",
           "F.pad(F.abs(F.pad({v}, ((1, 2), (0, 0))))[1:-2], ((2, 1), (0, 0)))[{d} % 3 :][:M] + {w}",
           "(F.pad({v}, ((1, 2), (0, 0))) * 2.0 + F.pad({w}, ((2, 1), (0, 0))))[{d} : {d} + M]",
           "(F.pad({v}, ((1, 1), (1, 1))) - F.pad({w}, ((1, 1), (1, 1))) * F.pad(a, ((1, 1), (1, 1))))[:M, :N]",
           "F.reshape(F.max_pool1d(F.reshape({v} - 9.0, (1, M, N)), 3, 1, 1), (M, N)) + {w}",
           "F.pad({v}, ((0, max(M, {d} + 2) - M), (0, 0)))[:M]",
           "F.pad({v}, ((0, 0), (0, max(N, {d} + 3) - N)))[:, :N]"]  # fmt: skip
CASTS = ["F.bitcast(F.bitwise_and(F.bitcast({v} * 0.5, D.int32), 0x7FFFFFFF), D.float32) - {w}",
         "F.astype(F.astype(a * 4.0, D.int32), D.float32) + {v}", "F.bitcast(F.bitcast({v}, D.int32), D.float32) - {w}",
         "F.bitcast(F.bitcast(F.permute_dims(b, (1, 0)), D.uint32), D.float32) * {v}",
         "F.astype(-F.abs(F.astype(a, D.bfloat16)), D.float32) + {v}",
         "F.astype(F.astype(a * 1e10, D.int32), D.float32) * 1e-9 + {v}",
         "F.astype(F.astype(a * 300.0, D.int8), D.float32) * 0.1 + {v}",
         "F.astype(F.astype(a * 300.0, D.uint8), D.float32) * 0.1 - {v}",
         "F.astype(F.astype(a * 30.0, D.int8) * F.astype(c * 30.0, D.int8), D.float32) + {v}",
         "F.astype(F.astype(a, D.float16) * F.astype(c, D.float16), D.float32) + {v}",
         "F.astype(F.bitcast(F.astype(a * 8.0, D.int32), D.float32) == c, D.float32) + {v}"]  # fmt: skip
JOINS = ["({r} := F.sigmoid(p := F.matmul({v}, F.matmul(F.permute_dims({v}, (1, 0)), {w})) * 0.05)) * p + F.tanh(p)",
         "F.tanh(p := F.sum({v}, axis=0, keepdims=True) * 0.1) + {w} * p",
         "F.tanh(p := F.max({v}, axis=1, keepdims=True)) * p + {w}",
         "F.concat([p := F.sum({v}, axis=1, keepdims=True) * 0.1, {w}, p], 1)[:, {d} % 3 : {d} % 3 + N]",
         "F.concat([{v}, ({r} := F.relu({w})), {v}], 1)[:, {d} : {d} + N]",
         "F.concat([F.relu({v}), {w}], 0)[{d} : {d} + M]", "F.log_softmax({v}, axis=1)", "F.softmax({v}, axis=0)",
         "F.matmul({v}, F.matmul(F.permute_dims({v}, (1, 0)), {w})) * 0.05", "F.layer_norm({v}) + {w}",
         "F.matmul({v}, F.reshape(F.arange(N * N, dtype=D.float32, device=B) % 7.0, (N, N))) * 0.01",
         "F.cumulative_sum({v}, axis=0) * 0.1", "{v} - F.mean({w}, axis=1, keepdims=True)"]  # fmt: skip
# Decompositions, of matrices that are far from singular, and Fourier transforms
POSITIVE = "F.matmul(p := F.tanh({v}), F.permute_dims(p, (1, 0))) + (N + 1.0) * F.eye(M, device=B)"
LINEAR = [f"emberlet.linalg.solve({POSITIVE}, {{w}})", f"F.matmul(emberlet.linalg.inv({POSITIVE}), {{w}}) * 2.0",
          f"emberlet.linalg.cholesky({POSITIVE})[:, :1] * 0.1 + {{w}}",
          f"F.tanh({{w}}) - emberlet.linalg.slogdet({POSITIVE}).logabsdet * 0.1",
          f"emberlet.linalg.eigvalsh({POSITIVE})[-1:] * 0.1 + {{w}}", "emberlet.linalg.svdvals({v})[:1] * 0.1 + {w}",
          "{w} / (emberlet.linalg.matrix_norm({v}) + 1.0)", "emberlet.linalg.vector_norm({v}, axis=0) * 0.1 + {w}",
          "F.dft(F.expand_dims({v}, -1), axis=1)[:, :, 0] * 0.2 + {w}",
          "F.dft(F.dft(F.expand_dims({v}, -1), axis=0), axis=0, inverse=True)[:, :, 0] - {w}"]  # fmt: skip
LENGTHS = ["{v} * (1.0 / M)", "{v} + emberlet.asarray([[float(M)]], device=B)", "{v} * N ** -0.5",
           "F.concat([{v}[M // 2 :], {v}[: M // 2]], 0)",
           "{v} + F.reshape(F.arange({d}, {d} + N, dtype=D.float32, device=B), (1, N))"]  # fmt: skip
NUMBERS = ["{v} * k", "F.clip({v}, None, k)", "{v} + {w} if k > 1 else {v} - {w}", "F.roll({v}, int(k), 0)"]
# Only as results
SPECIAL = ["F.max(F.where(a > 0.5, nan, a), axis=1)", "F.min(F.where(a > 0.9, nan, c), axis=0)", "a > a[::-1]",
           "F.astype(F.where(a > 0.5, inf, F.where(a < -0.5, -inf, nan)), D.int32)", "F.nonzero(a > 0.25)[0]",
           "F.astype(F.where(a > 0.5, a * 1e30, a * -1e5), D.int16)", "F.where(a > c, 1, 0)", "F.argmax(a, axis=1)",
           "F.scatter({v}, 1, F.argsort(a[: M // 2 + 1, : N // 2 + 1], axis=1), "
           "{w}[: M // 2 + 1, : N // 2 + 1], 'add')",
           "F.scatter({v}, 0, F.argsort(a[: M // 2 + 1, : N // 2 + 1], axis=0), "
           "{w}[: M // 2 + 1, : N // 2 + 1], 'add')",
           "F.argsort(a, axis=0)", "F.sum(F.astype(a > c, D.int32), axis=0)", "F.astype(a * 60.0, D.int8) + 100",
           "F.logical_not(F.astype(a, D.bool))"]  # fmt: skip
FAMILIES = (PLAIN, PLAIN, VIEWS, VIEWS, BORDERS, CASTS, JOINS, JOINS, LENGTHS, ASSIGNED, LINEAR)
VALUES = (-2.0, 0.5, 1, 3, 2.5)


def draw(choose: random.Random) -> Drawn | None:
    m, n = choose.choice([1, 1, 2, 3, 4, 5, 8, 11]), choose.choice([1, 2, 4, 5, 7, 8, 13, 17, 33])
    if choose.random() < 0.3:
        m = n = choose.choice([2, 3, 5, 8, 12])
    number, decides = choose.random() < 0.2, choose.random() < 0.15
    families = [*FAMILIES, *([SQUARE, SQUARE] if m == n else []), *([NUMBERS] if number else [])]
    lines: list[str] = []
    inner: list[str] = []
    for i in range(choose.randint(2, 8)):
        line = choose.choice(choose.choice(families))
        if "{r}" in line:
            inner.append(f"r{i}")
        lines.append(line.format(v=f"v{choose.randint(max(0, i - 2), i)}", w=choose.choice(["a", "c", *_values(i)]),
                                 r=f"r{i}", d=choose.randint(0, 4)))  # fmt: skip
    if decides:
        lines.append(f"v{len(lines)} * s if s[0].item() > 0 else v{len(lines)} - s")
    returned = [f"v{len(lines)}"]
    returned += [r for r in [*inner, *_values(len(lines))[1:]] if choose.random() < 0.25]
    if choose.random() < 0.3:
        special = choose.choice(SPECIAL).format(v="a", w=choose.choice(["c", returned[0]]))
        returned.append(special)
    return Drawn(tuple(lines), tuple(returned), (m, n), choose.randrange(1 << 30), number, decides)


def _values(count: int) -> list[str]:
    return [f"v{k}" for k in range(count + 1)]


def source(drawn: Drawn) -> str:
    taken = ["a", "b", "c", *(["k"] if drawn.number else []), *(["s"] if drawn.decides else [])]
    lines = [f"    v{i + 1} = {line}" for i, line in enumerate(drawn.lines)]
    return HELPER + "\n".join([
        f"def program({', '.join(taken)}):", "    v0, B, (M, N) = a, a.backend, a.shape", *lines,
        f"    return {', '.join(drawn.returned)}", "", "", "def make(B):", "    return program", "",
    ])  # fmt: skip


def case_of(drawn: Drawn) -> Case:
    choose = choice(drawn.seed, "values")
    values = np.random.default_rng(drawn.seed)
    m, n = drawn.shape
    first = tuple(values.standard_normal(s).astype(np.float32) for s in ((m, n), (n, m), (m, n)))
    calls = []
    given = [first, tuple(other_values(a, choose) for a in first)]
    given += [of_other_lengths(first, choose), of_other_lengths(first, choose)]
    for arrays in given + ([of_other_kinds(first)] if choose.random() < 0.25 else []):
        more: list[Any] = [choose.choice(VALUES)] if drawn.number else []
        if drawn.decides:
            more.append(np.array([choose.choice([-1.5, 2.0])], np.float32))
        calls.append((*arrays, *more))
    return Case(source(drawn), tuple(calls), drawn.seed, "chains")


def difference(drawn: Drawn) -> str:
    case = case_of(drawn)
    kept, wanted = [], []
    for arrays in case.calls:
        try:
            found = expected(case, arrays)
        except Exception:  # lengths or dtypes for which it is no program; shrinking tries others as well
            continue
        if not isinstance(found, Refused):
            kept.append(arrays)
            wanted.append(found)
    return broken(case._replace(calls=tuple(kept)), wanted=wanted, lowering="together") if kept else ""


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    for k in range(1, len(drawn.returned)):
        yield drawn._replace(returned=(*drawn.returned[:k], *drawn.returned[k + 1 :]))
    for k in range(len(drawn.lines)):
        if drawn.lines[k] != f"v{k}" and f"r{k}" not in drawn.returned:
            yield drawn._replace(lines=(*drawn.lines[:k], f"v{k}", *drawn.lines[k + 1 :]))


def program(drawn: Drawn) -> str:
    return case_of(drawn).text()
