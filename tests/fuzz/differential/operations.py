"""The operations that programs are drawn from: each function adds one line to a pool, or raises Skip."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from .drawing import FLOATS, INTEGERS, Pool, Skip, Value, number, shape

Operation = Callable[[Pool], Any]


def _same_kind(v: Value) -> Callable[[Value], bool]:
    return lambda w: w.dtype == v.dtype


def _broadcasts(v: Value) -> Callable[[Value], bool]:
    def fits(w: Value) -> bool:
        return w.dtype == v.dtype and all(
            a == b or 1 in (a, b) for a, b in zip(reversed(v.shape), reversed(w.shape), strict=False)
        )

    return fits


def _constant(pool: Pool, v: Value, of: tuple[int, ...] | None = None) -> str:
    """The text of a constant tensor of v's dtype that broadcasts with v."""
    choose = pool.choose
    if of is None:
        of = tuple(d if choose.random() < 0.6 else 1 for d in v.shape[choose.randint(0, len(v.shape)) :])
    fill = number(choose, v)
    kind = choose.randrange(3)
    if kind == 0 and not v.is_bool and len(of) == 1:
        return f"F.arange({of[0]}, dtype=D.{v.dtype}, device=B)"
    if kind == 1:
        return f"F.{choose.choice(['zeros', 'ones'])}({of}, dtype=D.{v.dtype}, device=B)"
    return f"F.full({of}, {fill}, dtype=D.{v.dtype}, device=B)"


# -- elementwise --------------------------------------------------------------------------------------------------


def arithmetic(pool: Pool) -> None:
    choose = pool.choose
    v = pool.pick(lambda v: not v.is_bool)
    name = choose.choice(["add", "subtract", "multiply", "maximum", "minimum", "add", "multiply"])
    kind = choose.randrange(4)
    if kind < 2:
        w = pool.pick(_broadcasts(v))
        pool.add(f"F.{name}({v.name}, {w.name})", v, w)
        return
    other = number(choose, v) if kind == 2 else _constant(pool, v)
    if kind == 2 and choose.random() < 0.5:
        sign = {"add": "+", "subtract": "-", "multiply": "*"}.get(name, "+")
        pool.add(f"{other} {sign} {v.name}" if choose.random() < 0.5 else f"{v.name} {sign} {other}", v)
        return
    pool.add(f"F.{name}({other}, {v.name})" if choose.random() < 0.5 else f"F.{name}({v.name}, {other})", v)


def division(pool: Pool) -> None:
    choose = pool.choose
    v = pool.pick(lambda v: not v.is_bool)
    if v.is_float:
        if choose.random() < 0.5:
            pool.add(f"{v.name} / {choose.choice(['2.0', '-4.0', '3.0', '0.7', '10.0'])}", v, rounds=True)
            return
        w = pool.pick(lambda w: _broadcasts(v)(w) and not w.within(-0.2, 0.2) and not np.any(np.abs(w.numbers) < 0.2))
        text = f"{number(choose, v)} / {w.name}" if choose.random() < 0.5 else f"{v.name} / {w.name}"
        pool.add(text, v, w, rounds=True)
        return
    name = choose.choice(["floor_divide", "remainder", "fmod", "trunc_divide"])
    if choose.random() < 0.5:
        pool.add(f"F.{name}({v.name}, {choose.choice([1, 2, 3, 7])})", v)
    else:
        w = pool.pick(lambda w: _broadcasts(v)(w) and bool(np.all(w.numbers != 0)))
        pool.add(f"F.{name}({v.name}, {w.name})", v, w)


def unary(pool: Pool) -> None:
    v = pool.pick(lambda v: not v.is_bool)
    pool.add(f"F.{pool.choose.choice(['negative', 'abs', 'square', 'negative', 'relu'])}({v.name})", v)


def smooth(pool: Pool) -> None:
    name = pool.choose.choice(
        ["exp", "tanh", "sin", "cos", "erf", "sigmoid", "silu", "gelu", "softplus", "expm1", "atan", "log1p", "sqrt",
         "log", "elu", "mish", "hard_swish", "leaky_relu"]
    )  # fmt: skip
    low = {"log1p": 0.0, "sqrt": 0.01, "log": 0.05}.get(name, -9.0)
    high = 4.0 if name in ("exp", "expm1") else 60.0
    v = pool.floats(lambda v: v.within(low, high))
    pool.add(f"F.{name}({v.name})", v, rounds=True)


def jump(pool: Pool) -> None:
    choose = pool.choose
    v = pool.pick(lambda v: v.exact and not v.is_bool)
    if choose.random() < 0.4 and v.is_float:
        pool.add(f"F.{choose.choice(['floor', 'ceil', 'round', 'trunc', 'sign', 'isnan', 'isinf'])}({v.name})", v)
        return
    name = choose.choice(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
    if choose.random() < 0.5:
        w = pool.pick(lambda w: w.exact and _broadcasts(v)(w))
        pool.add(f"F.{name}({v.name}, {w.name})", v, w)
    else:
        left, right = v.name, number(choose, v)
        pool.add(f"F.{name}({left}, {right})" if choose.random() < 0.5 else f"F.{name}({right}, {left})", v)


def logic(pool: Pool) -> None:
    choose = pool.choose
    v = pool.pick(lambda v: not v.is_float)
    if choose.random() < 0.2:
        pool.add(f"F.bitwise_invert({v.name})", v)
        return
    if not v.is_bool and choose.random() < 0.4:
        name = choose.choice(["bitwise_left_shift", "bitwise_right_shift"])
        pool.add(f"F.{name}({v.name}, {choose.randint(0, 7)})", v)
        return
    w = pool.pick(_broadcasts(v))
    pool.add(f"F.bitwise_{choose.choice(['and', 'or', 'xor'])}({v.name}, {w.name})", v, w)


def choice(pool: Pool) -> None:
    choose = pool.choose
    mask = pool.pick(lambda v: v.is_bool)
    v = pool.pick(lambda v: _fits(mask, v))
    kind = choose.randrange(3)
    if kind == 0:
        w = pool.pick(lambda w: w.dtype == v.dtype and _fits(mask, w) and _fits(v, w))
        pool.add(f"F.where({mask.name}, {v.name}, {w.name})", mask, v, w)
    elif kind == 1:
        pool.add(f"F.where({mask.name}, {number(choose, v)}, {v.name})", mask, v)
    else:
        pool.add(f"F.where({mask.name}, {v.name}, {_constant(pool, v)})", mask, v)


def _fits(a: Value, b: Value) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a.shape), reversed(b.shape), strict=False))


def clip(pool: Pool) -> None:
    v = pool.pick(lambda v: not v.is_bool)
    low, high = pool.choose.choice([("0", "None"), ("None", "3"), ("1", "5"), ("2", "2")])
    pool.add(f"F.clip({v.name}, {low}, {high})", v)


def cast(pool: Pool) -> None:
    choose = pool.choose
    v = pool.pick(lambda v: v.exact)
    kind = choose.randrange(4)
    target = choose.choice(FLOATS) if kind < 2 else choose.choice(INTEGERS) if kind == 2 else "bool"
    if v.is_float and target in INTEGERS:
        info = np.iinfo(target)
        if not v.within(max(info.min, -(2**31)), min(info.max, 2**31 - 1)):
            raise Skip
    if target in ("float16", "bfloat16") and not v.within(-1000, 1000):
        raise Skip
    pool.add(f"F.cast({v.name}, D.{target})", v)


def float_of_inexact(pool: Pool) -> None:
    v = pool.floats()
    pool.add(f"F.cast({v.name}, D.{pool.choose.choice(FLOATS)})", v)


# -- movement -----------------------------------------------------------------------------------------------------


def _factored(choose: random.Random, count: int) -> tuple[int, ...]:
    out = []
    while count > 1:
        d = choose.choice([k for k in range(2, count + 1) if count % k == 0])
        out.append(d)
        count //= d
    for _ in range(choose.choice([0, 0, 1, 2])):
        out.append(1)
    choose.shuffle(out)
    return tuple(out[:6]) if len(out) <= 6 else ()


def reshape(pool: Pool) -> None:
    v = pool.pick()
    new = _factored(pool.choose, max(1, int(np.prod(v.shape, dtype=int)))) if v.tensor.size else v.shape
    pool.add(f"F.reshape({v.name}, {new})", v)


def permute(pool: Pool) -> None:
    v = pool.ranked(2)
    order = pool.choose.sample(range(len(v.shape)), len(v.shape))
    pool.add(f"F.permute_dims({v.name}, {tuple(order)})", v)


def unit_axes(pool: Pool) -> None:
    v = pool.pick(lambda v: len(v.shape) < 5)
    if 1 in v.shape and pool.choose.random() < 0.4:
        pool.add(f"F.squeeze({v.name}, {v.shape.index(1)})", v)
    else:
        pool.add(f"F.expand_dims({v.name}, {pool.choose.randint(0, len(v.shape))})", v)


def broadcast(pool: Pool) -> None:
    choose = pool.choose
    v = pool.pick(lambda v: 1 in v.shape or len(v.shape) < 3)
    new = tuple(choose.choice([1, 2, 3]) if d == 1 else d for d in v.shape)
    if choose.random() < 0.5:
        new = (choose.choice([1, 2, 3]), *new)
    pool.add(f"F.broadcast_to({v.name}, {new})", v)


def turn(pool: Pool) -> None:
    v = pool.ranked()
    if pool.choose.random() < 0.5:
        pool.add(f"F.flip({v.name}, {pool.axis(v)})", v)
    else:
        pool.add(f"F.roll({v.name}, {pool.choose.randint(-4, 6)}, {pool.axis(v)})", v)


def repeat(pool: Pool) -> None:
    v = pool.ranked()
    if pool.choose.random() < 0.5:
        pool.add(f"F.tile({v.name}, {tuple(pool.choose.choice([1, 2, 3]) for _ in v.shape)})", v)
    else:
        pool.add(f"F.repeat({v.name}, {pool.choose.randint(1, 3)}, axis={pool.axis(v)})", v)


def pad(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked()
    if choose.random() < 0.7:
        pads = [(choose.choice([0, 0, 1, 2, -1]), choose.choice([0, 0, 1, 3])) for _ in v.shape]
        pool.add(f"F.pad({v.name}, {pads}, {number(choose, v)})", v)
    else:
        pads = [(choose.choice([0, 1]), choose.choice([0, 2])) if d > 2 else (0, 0) for d in v.shape]
        pool.add(f"F.pad({v.name}, {pads}, mode={choose.choice(['reflect', 'edge', 'wrap'])!r})", v)


def triangle(pool: Pool) -> None:
    v = pool.ranked(2, lambda v: not v.is_float or bool(np.all(np.isfinite(v.numbers))))
    pool.add(f"F.{pool.choose.choice(['tril', 'triu'])}({v.name}, k={pool.choose.randint(-2, 2)})", v)


# -- joining ------------------------------------------------------------------------------------------------------


def concat(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked()
    axis = choose.randrange(len(v.shape))

    def fits(w: Value) -> bool:
        return (
            w.dtype == v.dtype
            and len(w.shape) == len(v.shape)
            and all(a == b or i == axis for i, (a, b) in enumerate(zip(v.shape, w.shape, strict=True)))
        )

    parts = [v] + [pool.pick(fits) for _ in range(choose.randint(1, 4))]
    texts = [p.name for p in parts]
    if choose.random() < 0.2:
        texts.insert(choose.randint(0, len(texts)), _constant(pool, v, v.shape))
    pool.add(f"F.concat([{', '.join(texts)}], axis={axis})", *parts)


def stack(pool: Pool) -> None:
    v = pool.pick(lambda v: len(v.shape) < 5)
    w = pool.pick(lambda w: w.dtype == v.dtype and w.shape == v.shape)
    pool.add(f"F.stack([{v.name}, {w.name}, {v.name}], axis={pool.choose.randint(0, len(v.shape))})", v, w)


def split(pool: Pool) -> None:
    v = pool.ranked(1, lambda v: any(d > 1 for d in v.shape))
    axis = pool.choose.choice([i for i, d in enumerate(v.shape) if d > 1])
    at = pool.choose.randint(1, v.shape[axis] - 1)
    part = pool.choose.randrange(2)
    pool.add(f"F.split({v.name}, [{at}, {v.shape[axis] - at}], axis={axis})[{part}]", v)


# -- indexing -----------------------------------------------------------------------------------------------------


def _slice(choose: random.Random, n: int) -> str:
    step = choose.choice([1, 1, 1, 2, 3, -1, -1, -2])
    start = choose.choice(["", choose.randint(-n - 1, n + 1)])
    stop = choose.choice(["", "", choose.randint(-n - 1, n + 1)])
    return f"{start}:{stop}" + (f":{step}" if step != 1 else "")


def index(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(1, lambda v: 0 not in v.shape)
    parts = []
    for d in v.shape[: choose.randint(1, len(v.shape))]:
        kind = choose.random()
        if kind < 0.55:
            parts.append(_slice(choose, d))
        elif kind < 0.85:
            parts.append(str(choose.randint(-d, d - 1)))
        else:
            parts.append(str([choose.randint(-d, d - 1) for _ in range(choose.randint(1, 4))]))
        if choose.random() < 0.1:
            parts.append("None")
    if choose.random() < 0.2:
        parts.append("...")
    pool.add(f"{v.name}[{', '.join(parts)}]", v)


def _places(pool: Pool, extent: int, of: tuple[int, ...]) -> tuple[str, tuple[Value, ...]]:
    """Indices into an axis of length `extent`, with this shape: an existing value or a constant."""
    fits = [v for v in pool.values if v.dtype in ("int32", "int64") and v.shape == of and v.within(-extent, extent - 1)]
    if fits and pool.choose.random() < 0.7:
        v = pool.choose.choice(fits)
        return v.name, (v,)
    count = int(np.prod(of, dtype=int))
    if not count:
        raise Skip
    numbers = [pool.choose.randint(-extent, extent - 1) for _ in range(count)]
    if len(of) == 1:
        return f"{numbers}", ()
    v = pool.input(np.array(numbers, "int64").reshape(of))
    return v.name, (v,)


def take(pool: Pool) -> None:
    v = pool.ranked(1, lambda v: 0 not in v.shape)
    axis = pool.choose.randrange(len(v.shape))
    if pool.choose.random() < 0.5:
        text, uses = _places(pool, v.shape[axis], (pool.choose.randint(1, 4),))
        pool.add(f"F.take({v.name}, {text}, axis={axis})", v, *uses)
        return
    of = tuple(pool.choose.randint(1, d) if i != axis else pool.choose.randint(1, 4) for i, d in enumerate(v.shape))
    text, uses = _places(pool, v.shape[axis], of)
    if len(of) == 1:
        text = f"F.take({v.name}, {text}, axis=0)"
    else:
        text = f"F.gather({v.name}, {axis}, {text})"
    pool.add(text, v, *uses)


def scatter(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(1, lambda v: 0 not in v.shape and not v.is_bool)
    axis = choose.randrange(len(v.shape))
    of = tuple(d if i != axis else choose.randint(1, 4) for i, d in enumerate(v.shape))
    text, uses = _places(pool, v.shape[axis], of)
    if len(of) == 1:
        text = text if uses else f"F.take(F.arange({v.shape[0]}, device=B), {text}, axis=0)"
    reduction = choose.choice(["add", "none", "mul", "max", "min"])
    w = pool.pick(lambda w: w.dtype == v.dtype and w.shape == of) if choose.random() < 0.6 else None
    values = w.name if w else _constant(pool, v, of)
    pool.add(
        f"F.scatter({v.name}, {axis}, {text}, {values}, {reduction!r})",
        v, *uses, *([w] if w else []), rounds=reduction in ("add", "mul") and not v.exact,
    )  # fmt: skip


def assign(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(1, lambda v: 0 not in v.shape)
    ranges = []
    for d in v.shape[: choose.randint(1, len(v.shape))]:
        start = choose.randrange(d)
        ranges.append((start, choose.randint(start + 1, d)))
    inner = tuple(b - a for a, b in ranges) + v.shape[len(ranges) :]
    pool.add(f"F.slice_assign({v.name}, {ranges}, {_constant(pool, v, inner)})", v)


# -- reductions, scans, order --------------------------------------------------------------------------------------


def _multiplies(v: Value) -> bool:
    """Whether no product of some of v's elements overflows: in another order 0 * inf would be NaN."""
    if not v.is_float:
        return True
    with np.errstate(all="ignore"):
        return bool(np.prod(np.maximum(np.abs(v.numbers.astype(np.float64)), 1)) < 30000)


def reduce(pool: Pool) -> None:
    choose = pool.choose
    name = choose.choice(["sum", "sum", "max", "min", "prod"])
    v = pool.ranked(1, lambda v: not v.is_bool and (name in ("sum", "prod") or v.tensor.size))
    if name == "prod" and not _multiplies(v):
        raise Skip
    pool.add(f"F.{name}({v.name}, {pool.axes(v)}, keepdims={choose.random() < 0.5})", v)


def mean(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(1, lambda v: v.is_float and 0 not in v.shape)
    name = choose.choice(["mean", "var", "logsumexp", "mean"])
    pool.add(f"F.{name}({v.name}, {pool.axes(v)}, keepdims={choose.random() < 0.5})", v, rounds=True)


def extreme(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(1, lambda v: v.exact and 0 not in v.shape and not v.is_bool)
    name = choose.choice(["argmax", "argmin"])
    pool.add(f"F.{name}({v.name}, {pool.axis(v)}, keepdims={choose.random() < 0.5})", v)


def truth(pool: Pool) -> None:
    v = pool.ranked(1, lambda v: v.exact)
    pool.add(f"F.{pool.choose.choice(['any', 'all'])}({v.name}, {pool.axes(v)})", v)


def scan(pool: Pool) -> None:
    name = pool.choose.choice(["cumulative_sum", "cumulative_prod", "cummax", "cummin", "cumulative_sum"])
    v = pool.ranked(1, lambda v: not v.is_bool and 0 not in v.shape)
    axis = pool.axis(v)
    text = f"F.{name}({v.name}, axis={axis})"
    if name == "cumulative_sum" and pool.choose.random() < 0.3:
        text = f"F.cumsum({v.name}, {axis}, exclusive={pool.choose.random() < 0.5}, reverse=True)"
    pool.add(text + ("[0]" if name in ("cummax", "cummin") and _is_pair(pool, text, v) else ""), v)


def _is_pair(pool: Pool, text: str, v: Value) -> bool:
    from emberlet import functional as F

    return isinstance(eval(text, {"F": F, v.name: v.tensor}), (tuple, list))


def order(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(1, lambda v: v.exact and 0 not in v.shape and not v.is_bool)
    axis, descending = pool.axis(v), choose.random() < 0.5
    kind = choose.randrange(3)
    if kind == 2:
        k = choose.randint(1, v.shape[axis])
        pool.add(f"F.topk_with_indices({v.name}, {k}, {axis})[{choose.randrange(2)}]", v)
    else:
        pool.add(f"F.{['sort', 'argsort'][kind]}({v.name}, {axis}, descending={descending})", v)


# -- products ------------------------------------------------------------------------------------------------------


def matmul(pool: Pool) -> None:
    v = pool.ranked(2, lambda v: not v.is_bool)
    w = pool.pick(
        lambda w: w.dtype == v.dtype
        and len(w.shape) >= 2
        and w.shape[-2] == v.shape[-1]
        and all(a == b or 1 in (a, b) for a, b in zip(reversed(v.shape[:-2]), reversed(w.shape[:-2]), strict=False))
    ) if pool.choose.random() < 0.5 else v  # fmt: skip
    right = f"F.swap_dims({w.name}, -1, -2)" if w is v else w.name
    pool.add(f"F.matmul({v.name}, {right})", v, w)


def softmax(pool: Pool) -> None:
    name = pool.choose.choice(["softmax", "log_softmax"])
    v = pool.ranked(1, lambda v: v.is_float and 0 not in v.shape and v.within(-50, 50))
    pool.add(f"F.{name}({v.name}, {pool.axis(v)})", v, rounds=True)


def norm(pool: Pool) -> None:
    name = pool.choose.choice(["layer_norm", "rms_norm"])
    v = pool.ranked(1, lambda v: v.is_float and 0 not in v.shape and v.within(-200, 200))
    pool.add(f"F.{name}({v.name}, axis={pool.choose.randint(0, len(v.shape) - 1)}, epsilon=0.01)", v, rounds=True)


def attention(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(4, lambda v: v.is_float and 0 not in v.shape and v.within(-20, 20))
    w = pool.pick(lambda w: w.dtype == v.dtype and w.shape == v.shape and w.within(-20, 20))
    mask = ""
    if choose.random() < 0.3:
        mask = f", is_causal={True}"
    elif choose.random() < 0.4:
        mask = f", F.tril(F.ones(({v.shape[2]}, {v.shape[2]}), dtype=D.{v.dtype}, device=B)) > 0"
    pool.add(f"F.attention({v.name}, {w.name}, {v.name}{mask})", v, w, rounds=True)


def four_axes(pool: Pool) -> None:
    v = pool.floats(lambda v: len(v.shape) < 4)
    new = (1,) * (4 - len(v.shape)) + v.shape
    pool.add(f"F.reshape({v.name}, {new})", v)


def convolution(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(4, lambda v: v.is_float and len(v.shape) == 4 and 0 not in v.shape and v.within(-20, 20))
    _, c, h, w = v.shape
    pads = (choose.randint(0, 1), choose.randint(0, 1))
    kernel = (choose.randint(1, min(3, h + 2 * pads[0])), choose.randint(1, min(3, w + 2 * pads[1])))
    weight = pool.input(np.array([choose.randint(-8, 8) / 4 for _ in range(2 * c * kernel[0] * kernel[1])],
                                 "float32").reshape(2, c, *kernel))  # fmt: skip
    text = f"F.conv2d({v.name}, F.cast({weight.name}, D.{v.dtype}), padding={pads}, stride={choose.randint(1, 2)})"
    pool.add(text, v, weight)


def pool_windows(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(4, lambda v: v.is_float and len(v.shape) == 4 and min(v.shape) > 0)
    kernel = (choose.randint(1, min(3, v.shape[2])), choose.randint(1, min(3, v.shape[3])))
    name = choose.choice(["max_pool2d", "avg_pool2d"])
    pool.add(f"F.{name}({v.name}, {kernel}, stride={choose.randint(1, 2)})", v, rounds=name == "avg_pool2d")


# -- operations for large tensors only
# ------------------------------------------------------------------------------------


def _many(pool: Pool, of: tuple[int, ...], v: Value) -> str:
    """The text of a large tensor of small integers, which also depends on v."""
    count = int(np.prod(of, dtype=int))
    period = pool.choose.choice([5, 13, 97])
    spread = f"F.cast(F.remainder(F.arange({count}, device=B) * 31, {period}), D.{v.dtype}) - 4"
    return f"F.reshape({spread}, {of}) + F.max({v.name})"


def long_axis(pool: Pool) -> None:
    """Workgroups that reduce, scan and sort, several of them for one line."""
    choose = pool.choose
    v = pool.pick(lambda v: v.exact and v.dtype in ("float32", "int32") and v.tensor.size > 0 and v.within(-9, 9))
    of = choose.choice([(3, 700), (2, 1500), (2500,), (40, 130), (2, 300, 3), (1, 3, 1100), (520, 5)])
    axis = choose.randrange(len(of))
    call, rounds = choose.choice(
        [("F.sum({}, {}, keepdims=True)", False), ("F.min({}, {}, keepdims=True)", False),
         ("F.argmax({}, {}, keepdims=True)", False), ("F.cumulative_sum({}, axis={})", False),
         ("F.sort({}, {})", False), ("F.argsort({}, {}, descending=True)", False),
         ("F.softmax(F.cast({}, D.float32) / 100, {})", True), ("F.layer_norm(F.cast({}, D.float32), axis={})", True)]
    )  # fmt: skip
    steps = ", ".join(f"::{d // 7 + 1 if call.count('keepdims') == 0 or i != axis else 1}" for i, d in enumerate(of))
    pool.add(f"({call.format(_many(pool, of, v), axis)})[{steps}]", v, rounds=rounds)


def large_product(pool: Pool) -> None:
    """Tiles, and matrices through workgroup memory."""
    choose = pool.choose
    v = pool.pick(lambda v: v.exact and v.dtype == "float32" and v.tensor.size > 0 and v.within(-3, 3))
    rows, inner, columns = (choose.choice([1, 4, 17, 33, 64, 66]) for _ in range(3))
    left, right = _many(pool, (rows, inner), v), _many(pool, (inner, columns), v)
    if choose.random() < 0.3:
        left = f"F.swap_dims({_many(pool, (inner, rows), v)}, 0, 1)"
    after = choose.choice(["", "F.relu", "F.negative"])
    pool.add(f"{after}(F.matmul({left}, {right}) / 1024)[::{rows // 9 + 1}, ::{columns // 9 + 1}]", v, rounds=True)


WEIGHTS: dict[Operation, int] = {
    arithmetic: 10, division: 3, unary: 4, smooth: 5, jump: 3, logic: 2, choice: 3, clip: 2, cast: 3,
    float_of_inexact: 1, reshape: 6, permute: 5, unit_axes: 4, broadcast: 3, turn: 4, repeat: 2, pad: 4, triangle: 1,
    concat: 7, stack: 2, split: 3, index: 9, take: 4, scatter: 3, assign: 2, reduce: 6, mean: 3, extreme: 2, truth: 1,
    scan: 5, order: 3, matmul: 4, softmax: 3, norm: 2, attention: 3, four_axes: 2, convolution: 2, pool_windows: 2,
    long_axis: 2, large_product: 2,
}  # fmt: skip


def grow(pool: Pool, steps: int) -> None:
    """Add up to `steps` lines."""
    operations, weights = list(WEIGHTS), list(WEIGHTS.values())
    for _ in range(steps * 3):
        if len(pool.lines) >= steps:
            return
        values, inputs = list(pool.values), list(pool.inputs)
        try:
            pool.choose.choices(operations, weights)[0](pool)
        except Skip:
            pool.values, pool.inputs = values, inputs


def inputs(pool: Pool) -> None:
    """Two to four inputs, some of one shape, so that they meet."""
    from .drawing import array

    choose = pool.choose
    of = shape(choose, 0, 4)
    for _ in range(choose.randint(2, 4)):
        dtype = choose.choice(["float32"] * 5 + ["float16", "bool", *INTEGERS])
        pool.input(array(choose, of, dtype))
        if choose.random() < 0.5:
            of = tuple(d if choose.random() < 0.6 else 1 for d in of) if choose.random() < 0.5 else shape(choose, 0, 4)
