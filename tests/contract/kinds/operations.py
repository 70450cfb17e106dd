"""One or two operations at a time, at lengths around a vector's and a block's: products, windows, reductions, rows,
maps, lookups and numbers, of operands as they lie and of views (transposed, reversed, with gaps), with a further result
here and there."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..case import Case, of_other_kinds, of_other_lengths, other_values
from ..properties import broken
from ..reference import Refused, choice, expected

NEEDS: tuple[str, ...] = ()
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 20, 24, 31, 33, 40, 47, 64, 65)
FEW = (1, 1, 2, 3, 4, 5, 6, 7, 9, 13)

# Shapes of an input -> (what M and N are, operands of shape (M, N)); {x} the input
VIEWS: dict[str, tuple[str, list[str]]] = {
    "m, n": ("M, N = {x}.shape", ["{x}", "{x}", "{x}[::-1]", "{x}[:, ::-1]", "F.tanh({x})", "-{x}"]),
    "n, m": ("N, M = {x}.shape", ["F.permute_dims({x}, (1, 0))", "F.permute_dims(F.abs({x}), (1, 0))"]),
    "2 * m, n": ("M, N = {x}.shape[0] // 2, {x}.shape[1]", ["{x}[::2]", "{x}[1::2]", "{x}[M:]", "{x}[:M] - {x}[M:]"]),
    "m, n + 3": ("M, N = {x}.shape[0], {x}.shape[1] - 3", ["{x}[:, 3:]", "{x}[:, 1:-2]", "{x}[:, N + 1 : 1 : -1]"]),
    "m * n,": ("M, N = {m}, {n}", ["F.reshape({x}, (M, N))"]),
    "n,": ("M, N = {m}, {x}.shape[0]", ["F.broadcast_to({x}, (M, N))"]),
    "m, 1": ("M, N = {x}.shape[0], {n}", ["F.broadcast_to({x}, (M, N))"]),
}
# What follows: {v} a value; {k} 1 to 3; s a number
AFTER = ["{v}", "{v}", "{v}", "F.tanh({v})", "F.relu({v}) + 1.0", "{v} * F.sigmoid({v})", "(q := {v}) + F.tanh(q) * q",
         "F.max({v}) - {v}", "F.permute_dims({v}, tuple(range({v}.ndim))[::-1])", "F.reshape({v} * 2.0, (-1,))",
         "F.concat([q := {v}, q], 0)", "F.concat([{v}] * 9, 0)",
         "F.tanh(F.softmax((q := F.reshape({v} + 1.0, (-1,)))[None] * 0.5, -1))",
         "F.concat([F.relu(q := {v}), q * 0.5, F.relu(q)], 0)[{k} :]", "{v} * s"]  # fmt: skip
# A product r, reshaped, and what is computed from it: a plan whose result is a reshape has to keep r.
HELD = ("F.reshape(r, (-1,))", "F.matmul(F.softmax(q := F.matmul(r, F.permute_dims(r, (1, 0))), -1), q)")
# (m, n) -> (m, n) or less; {x}, {y} operands of that shape
MAPS = ["{x} + {y}", "F.where({x} > {y}, {x}, {y} * 0.5)", "F.concat([{x}, {y}, {x}], {a})", "F.flip({x}, {a})",
        "F.concat([{x}, {y}], {a})[{k} :]", "F.concat([{x}, {y}], 1)[:, {k} :]", "F.tile({x}, ({k}, 2))",
        "F.pad({x}, (({k}, 0), (1, {k})))", "F.pad({x}, ((0, {k}), ({k}, 1)), 1.5)",
        "F.roll({x}, {k}, {a})", "F.repeat({x}, {k}, axis={a})", "{x}[::-1, ::-{k}]", "{x}[::-{k}] * 2.0",
        "{x}[-1:] + {y}[:, :1]", "F.reshape(F.permute_dims({x}, (1, 0)), (M, N)) - {y}",
        "F.astype({x} * 60.0, D.int8) + 100", "F.astype({x} * 1e10, D.int32)", "F.astype({x} * 300.0, D.uint8)",
        "F.astype({x}, D.float16) * 2", "F.astype({x}, D.bfloat16)", "-F.abs(F.astype({x}, D.bfloat16))",
        "F.logical_not(F.astype({x}, D.bool))", "F.astype({x}, D.bool)", "{x} > {y}", "F.logical_and({x} > 0, {y} > 0)",
        "F.trunc({x} * 3.0) - {y}", "F.round({x} * 3.0) + F.floor({y})", "F.ceil({x} * 0.5)",
        "F.tril({x}) + F.triu({y}, k={k})", "(q := F.tanh({x}))[::-1] * {y} + F.exp(q)",
        "F.reshape(F.arange({k}, {k} + M * N, dtype=D.float32, device=B), (M, N)) * 0.01 + {x}",
        "(q := F.arange({k}, {k} + N, dtype=D.float32, device=B) + {x}) is None or "
        "F.arange(N, dtype=D.float32, device=B) + {x}",
        "F.bitcast(F.permute_dims({x}, (1, 0)), D.int32)", "F.clip({x}, None, 1.0 / M)",
        "F.pad({x}, ((1, 1), (0, 0)), 1.0 / M)", "F.leaky_relu({x}, 1.0 / (M + 1))",
        "F.full({x}.shape, M * 0.5, dtype=D.float32, device=B) - {y}",
        "{x} + emberlet.asarray(np.float32([[M, 1.0]]), device=B)[:, :1]",
        "F.concat([{x}[M // 2 :], {y}[: M // 2]], 0)", "F.pad({x}, ((0, max(M, {k} + 3) - M), (0, 0)))",
        "F.broadcast_to({x}[:1] * M ** -0.5, (M, N))", "assigned({x})", "F.roll({x}, int(s), 0)",
        "F.clip({x}, s, None)", "{x} if s > 0 else -{x}"]  # fmt: skip
REDUCED = ["F.sum({x}, axis={a})", "F.sum({x})", "F.max({x}, axis={a})", "F.min({x}, axis={a})",
           "F.prod({x}, axis={a})", "F.max(F.where({x} > 0.5, nan, {x}), axis={a})",
           "F.min(F.where({x} > 0.9, nan, {x}), axis={a})", "F.argmax({x}, axis={a})", "F.argmin({x}, axis={a})",
           "F.any({x} > 1.0, axis={a})", "F.all({x} < 1.0, axis={a})", "F.sum(F.astype({x} > 0, D.int32), axis={a})",
           "F.cumulative_sum({x}, axis={a})", "F.mean({x} * {y}, axis={a})", "F.nonzero({x} > 0.25)[{a}]",
           "F.argsort({x}, axis={a})", "F.sort({x}, axis={a})"]  # fmt: skip
ROWS = ["F.softmax({x}, axis={a})", "F.log_softmax({x}, axis={a})", "F.layer_norm({x})", "F.rms_norm({x})",
        "F.softmax({x} * 2.0, axis={a}) - {y}", "{x} - F.mean({x}, axis={a}, keepdims=True)",
        "{x} / (F.sum(F.abs({x}), axis={a}, keepdims=True) + 0.5)",
        "(q := F.sum({x}, axis={a}, keepdims=True)) * {x} + q",
        "(q := F.max({x}, axis={a}, keepdims=True)) + F.exp({x} - q)", "F.var({x}, axis={a})",
        "(q := {x} - F.max({x}, {a}, keepdims=True)) - F.log(F.sum(F.exp(q), {a}, keepdims=True))"]  # fmt: skip
# i: int32 (m,) within n; the table x (n, m)
LOOKUPS = ["F.take({x}, i, 1)", "F.take_along_axis({x}, F.reshape(i, (-1, 1)), 1)", "{x}[:, i]", "{x}[:, -1 - i[:1]]",
           "F.take({x}, -1 - i, 1)", "F.scatter({x}, 1, F.reshape(i, (-1, 1)), {y}[:, :1], 'add')",
           "F.scatter({x}, 1, F.reshape(i, (-1, 1))[: (M + 1) // 2], {y}, 'add')",
           "F.scatter({x}, 0, F.argsort({x}, axis=0)[: (M + 1) // 2, : (N + 1) // 2], {y}, 'add')",
           "F.scatter({x}, 1, F.argsort({x}, axis=1)[: (M + 1) // 2, : (N + 1) // 2], {y})",
           "F.gather({x}, 1, F.reshape(i, (-1, 1)))", "F.one_hot(i, N)"]  # fmt: skip
# Images (1 or 2, c, h, w); {t} taps, {q} stride, {p} padding, {e} dilation, {g} groups, {o} outputs
WINDOWS = ["F.conv2d(z, w, u, {q}, {p}, {e}, {g})", "F.conv2d(z, w, None, {q}, {p}, {e}, {g})",
           "F.max_pool2d(z, {t}, {q}, {p}, {e})", "F.max_pool2d(z - 9.0, {t}, {q}, {p}, {e})",
           "F.avg_pool2d(F.relu(z), {t}, {q}, {p})", "F.avg_pool2d(z, {t}, {q}, {p}, count_include_pad=False)",
           "F.max_pool2d(F.relu(z), {t}, {q}, {p}, {e})", "F.conv2d(z, w, u, {q}, {p}, {e}, {g})",
           "F.conv2d(z, w, u, {q}, {p}, {e}, {g})"]  # fmt: skip
# Of images of levels d, quantized again: exact, and no ties
LEVELS = ["F.max_pool2d(d, {t}, {q}, {p})", "F.concat([d, d[:, :, :1]], 2)", "F.sqrt(d * d)", "d"]
POINTS = ["-1", "F.full((d.shape[1],), -1, dtype=D.int8, device=B)", "emberlet.asarray(np.int8(-1), device=B)"]

# Queries x (b, heads, m, d), keys and values y (b, heads, n, d); whole rows of the scores may be hidden
ATTENTION = ["F.attention(x, y, y)", "F.attention(x, y, y, is_causal=True)", "F.attention(x, y, y, scale=0.5)",
             "F.attention(x, y, y, F.where(x[..., :1] > 0.5, -inf, 0.0))",
             "F.attention(x, y, y, F.where(x[..., :1] > 0.2, F.permute_dims(y[:, :1, :, :1], (0, 1, 3, 2)), -inf))",
             "F.softmax(F.where(F.matmul(x, F.permute_dims(y, (0, 1, 3, 2))) > 0.5, -inf, 0.5), -1) @ y"]  # fmt: skip

FAMILIES = ("attention", "bordered", "lookups", "maps", "maps", "products", "products", "products", "reduced", "rows",
            "windows", "windows", "levels")  # fmt: skip

HELPER = """def assigned(x):
    y = x * 1.5
    z = F.reshape(y, (-1,))
    y[:1] = 7.0
    return y + F.reshape(z, x.shape)


"""


class Drawn(NamedTuple):
    """lines: of a function of these parameters, of which "s" is a number and "i" holds indices below `high`; returned:
    what it returns; shapes: of the parameters."""

    lines: tuple[str, ...]
    returned: tuple[str, ...]
    parameters: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    high: int
    seed: int


def _operand(choose: random.Random, x: str, m: int, n: int) -> tuple[str, str, tuple[int, ...]]:
    """(an expression of shape (m, n) of the input x, the line that defines M and N, the shape of x)."""
    kind = choose.choice(["m, n"] * 4 + sorted(VIEWS))
    sizes, views = VIEWS[kind]
    return choose.choice(views).format(x=x), sizes.format(x=x, m=m, n=n), eval(kind, {"m": m, "n": n})


def _drawn(choose: random.Random, lines: list[str], returned: list[str], high: int, **shapes: tuple[int, ...]) -> Drawn:
    used = set(re.findall(r"\b[a-z]\b", " ".join([*lines, *returned])))
    names = [n for n in shapes if n in used]
    return Drawn(tuple(lines), tuple(returned), tuple(names), tuple(shapes[n] for n in names), high,
                 choose.randrange(1 << 30))  # fmt: skip


def draw(choose: random.Random) -> Drawn | None:
    family = choose.choice(FAMILIES)
    others = {"windows": _windows, "bordered": _bordered, "attention": _attention, "levels": _levels}
    if family in others:
        return others[family](choose)
    m, n = choose.choice(FEW), choose.choice(SIZES)
    if choose.random() < 0.3:
        m, n = n, m
    k = choose.choice(SIZES) if family == "products" else n
    if family == "products" and choose.random() < 0.5:  # a row, or several tiles
        m, n = (1, n) if choose.random() < 0.6 else (choose.choice((31, 40, 47, 65)), choose.choice((17, 20, 24, 33)))
    x, sizes, first = _operand(choose, "x", m, k)
    if family == "products":
        y, others, second = _operand(choose, "y", k, n)
        lines = [sizes, f"v = {x}", others, f"w = {y}", "r = F.matmul(v, w) * 0.1"]
        if choose.random() < 0.25:  # a model's own weights are constant in a plan
            lines[2:4] = [f"w = F.reshape(F.arange({k * n}, dtype=D.float32, device=B) % 7.0, ({k}, {n}))"]
        if choose.random() < 0.2:
            times = choose.choice([1, 2, 3])
            w = choose.choice(["w", f"F.concat([w[None]] * {times}, 0)"])
            lines[-1] = f"r = F.matmul(F.concat([v[None]] * {times}, 0), {w}) * 0.1"
    else:
        y, others, second = _operand(choose, "y", m, n)
        table = {"maps": MAPS, "reduced": REDUCED, "rows": ROWS, "lookups": LOOKUPS}[family]
        line = choose.choice(table).format(x="v", y="w", a=choose.randint(0, 1), k=choose.randint(1, 3))
        lines = [sizes, f"v = {x}", *([others, f"w = {y}"] if re.search(r"\bw\b", line) else []), f"r = {line}"]
    after = choose.choice(AFTER) if family in ("products", "rows") else "{v}"
    returned = [after.format(v="r", k=choose.randint(1, 3))]
    returned += [q for q, chance in (("q", 0.7), ("r", 0.1), ("x * 0.5", 0.1)) if choose.random() < chance
                 and (q != "q" or "q :=" in lines[-1])]  # fmt: skip
    drawn = _drawn(choose, lines, returned, k, x=first, y=second, i=(m,), s=())
    held = family == "products" and "[None]" not in lines[-1] and drawn.seed % 8 == 0
    return drawn._replace(returned=HELD) if held else drawn


def _attention(choose: random.Random) -> Drawn:
    batch, heads, width = choose.choice([1, 1, 2]), choose.choice([1, 2, 3]), choose.choice([1, 2, 4, 8, 9])
    shapes = {k: (batch, heads, choose.choice(FEW + SIZES[:13]), width) for k in "xy"}
    returned = ["r * 2.0", *["x * 0.5"] * (choose.random() < 0.3)]
    return _drawn(choose, [f"r = {choose.choice(ATTENTION)}"], returned, 1, **shapes)


def _windows(choose: random.Random) -> Drawn:
    batch, size = choose.choice([1, 1, 2, 3]), (choose.randint(1, 13), choose.randint(1, 17))
    taps = tuple(choose.choice([t for t in (1, 2, 3, 3, 5) if t <= d]) for d in size)
    depthwise, groups = choose.random() < 0.4, choose.choice([1, 1, 2])
    channels = groups * choose.choice([1, 2, 4])
    outputs = groups * choose.choice([1, 2, 3, 8])
    if depthwise:
        groups = outputs = channels = choose.choice([2, 3, 5, 17])
        size = (size[0] + 4, size[1] + 4)  # several tiles
    line = choose.choice(WINDOWS)
    padding: tuple[Any, ...] = tuple(
        choose.choice([0, 1, t // 2, t - 1] if "conv" in line else [0, t // 2]) for t in taps
    )
    if choose.random() < 0.3:  # other widths before than behind
        padding = tuple(
            (choose.randint(0, p), p) if choose.random() < 0.5 else (p, choose.randint(0, p)) for p in padding
        )
    dilation = tuple(choose.choice([1, 1, 2]) if 2 * (t - 1) < d else 1 for t, d in zip(taps, size, strict=True))
    stride = tuple(choose.choice([1, 1, 2, 3]) for _ in taps)
    z = choose.choice(["x", "x", "F.tanh(x)", "x[:, :, ::-1]",
                       "F.permute_dims(F.permute_dims(x, (0, 2, 3, 1)) * 2.0, (0, 3, 1, 2))"])  # fmt: skip
    shape = [batch, channels, *size]
    if "conv" in line and choose.random() < 0.4:
        axes = choose.choice(((2, 3), (2, 3), range(4)))
        pads = [(choose.randint(0, 1), choose.randint(0, 1)) if axis in axes else (0, 0) for axis in range(4)]
        if channels == 1:
            pads[1] = (0, 0)
        shape[1] = max(1, channels - sum(pads[1]))
        pads[1] = (pads[1][0], channels - shape[1] - pads[1][0])
        z = f"F.pad({z}, {tuple(pads)}, {choose.choice([0, 0, 1.5])})"
        padding = choose.choice([(0, 0), padding])
    lines = [f"z = {z}", "r = " + line.format(t=taps, q=stride, p=padding, e=dilation, g=groups)]
    weight = (outputs, channels // groups, *taps)
    if choose.random() < 0.6:  # a network's own weights are constant in a plan
        count = math.prod(weight)
        fixed = f"F.reshape(F.arange({count}, dtype=D.float32, device=B) % 5.0 - 2.0, {weight})"
        lines.insert(0, f"w = {fixed}")
    returned = [choose.choice(["r", "r", "F.relu(r)", "r * F.sigmoid(r)", "F.clip(r, 0.0, 6.0)"])]
    returned += ["F.relu(z) * 2.0"] if choose.random() < 0.1 else []
    shapes = {"x": tuple(shape), "u": (outputs,)}
    return _drawn(choose, lines, returned, 1, **(shapes if "w =" in lines[0] else {**shapes, "w": weight}))


def _bordered(choose: random.Random) -> Drawn:
    """A depthwise convolution of a picture in a border, which kernels may add themselves: of zeros, on both axes."""
    channels, taps = choose.choice([8, 9, 17]), choose.choice([(3, 3), (3, 3), (5, 5), (1, 3)])
    pads = [(0, 0), (0, 0), *((choose.randint(0, 2), choose.randint(0, 2)) for _ in range(2))]
    before = channels
    if choose.random() < 0.3:
        pads[1], before = (1, 2), channels - 3
    lines = [f"w = F.reshape(F.arange({channels * math.prod(taps)}, dtype=D.float32, device=B) % 5.0 - 2.0, "
             f"{(channels, 1, *taps)})",
             f"z = F.pad(x, {tuple(pads)}, {choose.choice([0.0, 1.5])})",
             f"r = F.conv2d(z, w, None, {choose.choice([1, 1, 2])}, 0, 1, {channels})"]  # fmt: skip
    return _drawn(
        choose, lines, ["r"], 1, x=(choose.choice([1, 2]), before, choose.randint(5, 12), choose.randint(5, 18))
    )


def _levels(choose: random.Random) -> Drawn:
    scale, point = choose.choice(["", "-"]) + "0.125", choose.choice(POINTS)
    if choose.random() < 0.3:
        scale = f"F.full((d.shape[1],), {scale}, device=B)"
    of = choose.choice(["0.5", "-0.5", "0.125"])
    what = choose.choice(LEVELS).format(t=choose.choice([2, (1, 3)]), q=choose.randint(1, 2), p=0)
    lines = [f"d = F.dequantize_linear(F.astype(x * 9.0, D.int8), {of}, -1)",
             f"r = F.quantize_linear({what}, {scale}, {point}, axis=1, dtype=D.int8)"]  # fmt: skip
    shape = (choose.choice([1, 2]), choose.choice([1, 3, 8]), choose.randint(2, 7), choose.randint(3, 17))
    return _drawn(choose, lines, ["r"], 1, x=shape)


def case_of(drawn: Drawn) -> Case:
    choose, values = choice(drawn.seed, "values"), np.random.default_rng(drawn.seed)
    lines = [f"    {line}" for line in drawn.lines]
    helper = HELPER if "assigned" in " ".join(lines) else ""
    source = helper + "\n".join([
        f"def program({', '.join(drawn.parameters)}):", "    B = x.backend", *lines,
        f"    return {', '.join(drawn.returned)}", "", "", "def make(B):", "    return program", "",
    ])  # fmt: skip

    def number() -> float:
        return choose.choice([-2.0, 0.5, 1, 3])

    arrays: list[Any] = []
    for name, shape in zip(drawn.parameters, drawn.shapes, strict=True):
        if name == "s":
            arrays.append(number())
        elif name == "i":
            arrays.append(values.integers(0, drawn.high, shape).astype(choose.choice(["int32", "int64"])))
        else:
            arrays.append(values.standard_normal(shape).astype(np.float32))
    other = [a if name == "i" else number() if name == "s" else other_values(a, choose)
             for name, a in zip(drawn.parameters, arrays, strict=True)]  # fmt: skip
    first = tuple(arrays)
    calls = [first, tuple(other), of_other_lengths(first, choose), of_other_lengths(first, choose)]
    if choose.random() < 0.2:
        calls.append(of_other_kinds(first) if "i" not in drawn.parameters else first)
    return Case(source, tuple(calls), drawn.seed, "operations")


def difference(drawn: Drawn) -> str:
    case = case_of(drawn)
    kept, wanted = [], []
    for arrays in case.calls:
        try:
            found = expected(case, arrays)
        except Exception:  # lengths or dtypes for which it is no program
            continue
        if not isinstance(found, Refused):
            kept.append(arrays)
            wanted.append(found)
    return broken(case._replace(calls=tuple(kept)), wanted=wanted, lowering="together") if kept else ""


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    for k in range(len(drawn.returned) if len(drawn.returned) > 1 else 0):
        yield drawn._replace(returned=drawn.returned[:k] + drawn.returned[k + 1 :])
    if drawn.returned[0] != "r":
        yield drawn._replace(returned=("r", *drawn.returned[1:]))


def program(drawn: Drawn) -> str:
    return case_of(drawn).text()
