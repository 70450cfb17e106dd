"""Operations for programs that are trained: layers, weights that are used twice, loops, losses. They are drawn beside
those of operations.py."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from . import operations
from .drawing import Pool, Skip, Value
from .operations import Operation


def _weight(pool: Pool, of: tuple[int, ...], scale: float = 4) -> Value:
    """An input of this shape: one that is there, so that weights are shared, or a new one."""
    there = [v for v in pool.values if v.name[0] == "x" and v.shape == of and v.dtype == "float32"]
    if there and pool.choose.random() < 0.5:
        return pool.choose.choice(there)
    count = int(np.prod(of, dtype=int))
    drawn = [pool.choose.randint(-6, 6) / scale / 2 for _ in range(count)]
    return pool.input(np.array(drawn, "float32").reshape(of))


def _cast(w: Value, v: Value) -> str:
    return w.name if v.dtype == "float32" else f"F.cast({w.name}, D.{v.dtype})"


def _tame(v: Value) -> bool:
    return v.is_float and 0 not in v.shape and v.within(-20, 20)


def dense(pool: Pool) -> None:
    v = pool.ranked(1, lambda v: _tame(v) and v.shape[-1] <= 8)
    width = pool.choose.randint(1, 5)
    w = _weight(pool, (v.shape[-1], width))
    if pool.choose.random() < 0.6:
        b = _weight(pool, (width,))
        pool.add(f"F.linear({v.name}, {_cast(w, v)}, {_cast(b, v)})", v, w, b, rounds=True)
    else:
        pool.add(f"F.linear({v.name}, {_cast(w, v)})", v, w, rounds=True)


def loop(pool: Pool) -> None:
    """One weight, several times."""
    choose = pool.choose
    v = pool.ranked(2, lambda v: _tame(v) and v.shape[-1] <= 6)
    w = _weight(pool, (v.shape[-1], v.shape[-1]))
    how = choose.choice(["F.tanh(F.matmul({}, {}))", "F.sigmoid({} @ {})", "F.relu(F.linear({}, {}) * 0.5)"])
    for _ in range(choose.randint(2, 4)):
        pool.add(how.format(v.name, _cast(w, v)), v, w, rounds=True)
        v = pool.values[-1]
        if choose.random() < 0.3:
            pool.add(f"{v.name} * {choose.choice(['0.5', '2.0', '-1.0'])}", v)
            v = pool.values[-1]


def activation(pool: Pool) -> None:
    texts = [
        "F.gelu({}, 'tanh')", "F.relu6({})", "F.hardtanh({})", "F.selu({})", "F.celu({})", "F.softsign({})",
        "F.log_sigmoid({})", "F.leaky_relu({}, 0.2)", "F.prelu({}, 0.25)", "F.pow({}, 2)", "F.pow({}, 3)", "{} * {}",
        "F.elu({}, 0.5)", "F.hard_swish({})",
    ]  # fmt: skip
    v = pool.floats(lambda v: v.within(-9, 9))
    pool.add(pool.choose.choice(texts).format(v.name, v.name), v, rounds=True)


def two(pool: Pool) -> None:
    v = pool.floats(lambda v: v.within(-9, 9))
    w = pool.pick(lambda w: w.dtype == v.dtype and w.shape == v.shape and w.within(-9, 9))
    name = pool.choose.choice(["logaddexp", "atan2", "hypot"])
    if name != "logaddexp" and not (np.abs(w.numbers) > 0.1).all():
        raise Skip
    pool.add(f"F.{name}({v.name}, {w.name})", v, w, rounds=True)


def _images(v: Value) -> bool:
    return _tame(v) and len(v.shape) == 4 and v.shape[1] <= 6


def convolution(pool: Pool) -> None:
    choose = pool.choose
    v = pool.floats(_images)
    channels = v.shape[1]
    groups = choose.choice([1, 1, channels])
    kernel = (choose.randint(1, 3), choose.randint(1, 3))
    w = _weight(pool, (groups * choose.randint(1, 2), channels // groups, *kernel))
    settings = f"stride={choose.randint(1, 3)}, padding={choose.randint(0, 2)}, dilation={choose.randint(1, 2)}"
    bias = _weight(pool, w.shape[:1])
    pool.add(
        f"F.conv2d({v.name}, {_cast(w, v)}, {_cast(bias, v)}, {settings}, groups={groups})", v, w, bias, rounds=True
    )


def convolution_of_rows(pool: Pool) -> None:
    choose = pool.choose
    v = pool.floats(lambda v: _tame(v) and len(v.shape) == 3 and v.shape[1] <= 8)
    w = _weight(pool, (choose.randint(1, 3), v.shape[1], choose.randint(1, 3)))
    pool.add(
        f"F.conv1d({v.name}, {_cast(w, v)}, stride={choose.randint(1, 2)}, padding={choose.randint(0, 1)})",
        v, w, rounds=True,
    )  # fmt: skip


def transposed(pool: Pool) -> None:
    choose = pool.choose
    v = pool.floats(lambda v: _tame(v) and len(v.shape) in (3, 4) and v.shape[1] <= 6)
    kernel = tuple(choose.randint(1, 3) for _ in v.shape[2:])
    w = _weight(pool, (v.shape[1], choose.randint(1, 2), *kernel))
    stride = choose.randint(1, 3)
    settings = f"stride={stride}, padding={choose.randint(0, 1)}, output_padding={choose.randint(0, stride - 1)}"
    pool.add(f"F.conv_transpose({v.name}, {_cast(w, v)}, {settings})", v, w, rounds=True)


def windows(pool: Pool) -> None:
    choose = pool.choose
    v = pool.floats(lambda v: _images(v) and min(v.shape[2:]) > 1)
    kernel = choose.randint(2, 3)
    settings = f"stride={choose.randint(1, 3)}, padding={choose.randint(0, 1)}"
    if choose.random() < 0.6:
        dilation = f", dilation={choose.randint(1, 2)}" if choose.random() < 0.4 else ""
        pool.add(f"F.max_pool2d({v.name}, {kernel}, {settings}{dilation})", v)
    else:
        pool.add(f"F.avg_pool2d({v.name}, {kernel}, {settings})", v, rounds=True)


def normalization(pool: Pool) -> None:
    choose = pool.choose
    v = pool.ranked(2, lambda v: _tame(v) and v.shape[1] > 0)
    channels = v.shape[1]
    weight, bias = _weight(pool, (channels,)), _weight(pool, (channels,))
    if choose.random() < 0.5 and v.dtype == "float32":
        axes = (0, *range(2, len(v.shape)))
        pool.add(f"F.mean({v.name}, {axes})", v, rounds=True)
        mean = pool.values[-1]
        pool.add(f"F.var({v.name}, {axes})", v, rounds=True)
        var = pool.values[-1]
        text = f"F.batch_norm({v.name}, {mean.name}, {var.name}, {weight.name}, {bias.name}, 0.01)"
        pool.add(text, v, mean, var, weight, bias, rounds=True)
        return
    groups = choose.choice([k for k in range(1, channels + 1) if channels % k == 0])
    text = f"F.group_norm({v.name}, {groups}, {_cast(weight, v)}, {_cast(bias, v)}, 0.01)"
    pool.add(text, v, weight, bias, rounds=True)


def affine_normalization(pool: Pool) -> None:
    v = pool.ranked(1, _tame)
    weight, bias = _weight(pool, v.shape[-1:]), _weight(pool, v.shape[-1:])
    if pool.choose.random() < 0.5:
        text = f"F.layer_norm({v.name}, {_cast(weight, v)}, {_cast(bias, v)}, axis=-1, epsilon=0.01)"
        pool.add(text, v, weight, bias, rounds=True)
    else:
        pool.add(f"F.rms_norm({v.name}, {_cast(weight, v)}, axis=-1, epsilon=0.01)", v, weight, rounds=True)


def rows(pool: Pool) -> None:
    """Rows of a table, some of them twice."""
    choose = pool.choose
    of = tuple(choose.randint(1, 3) for _ in range(choose.randint(1, 2)))
    count = int(np.prod(of, dtype=int))
    table = _weight(pool, (choose.randint(2, 5), choose.randint(1, 4)))
    numbers = [choose.randrange(table.shape[0]) for _ in range(count)]
    places = pool.input(np.array(numbers, "int64").reshape(of))
    pool.add(f"F.embedding({places.name}, {table.name})", places, table)


def loss(pool: Pool) -> None:
    choose = pool.choose
    v = pool.floats(lambda v: _tame(v) and len(v.shape) == 2 and v.shape[1] > 1)
    numbers = [choose.randrange(v.shape[1]) for _ in range(v.shape[0])]
    target = pool.input(np.array(numbers, "int64"))
    pool.add(f"F.cross_entropy({v.name}, {target.name})", v, target, rounds=True)


def recurrent(pool: Pool) -> None:
    choose = pool.choose
    v = pool.floats(lambda v: _tame(v) and len(v.shape) == 3 and v.dtype == "float32" and v.shape[2] <= 5)
    n, gates = choose.randint(1, 3), choose.choice([3, 4])
    w, r = _weight(pool, (1, gates * n, v.shape[2])), _weight(pool, (1, gates * n, n))
    b = _weight(pool, (1, 2 * gates * n))
    more = f", linear_before_reset={choose.random() < 0.5}" if gates == 3 else ""
    text = f"F.{'lstm' if gates == 4 else 'gru'}({v.name}, {w.name}, {r.name}, {b.name}{more})"
    pool.add(f"{text}[{choose.randrange(2)}]", v, w, r, b, rounds=True)


WEIGHTS: dict[Operation, int] = {
    dense: 8, loop: 3, activation: 5, two: 2, convolution: 5, convolution_of_rows: 2, transposed: 3, windows: 4,
    normalization: 3, affine_normalization: 3, rows: 3, loss: 3, recurrent: 2,
}  # fmt: skip
# Without gradients, or large: the contract draws them.
_LEFT_OUT = ("logic", "extreme", "truth", "long_axis", "large_product", "jump", "convolution", "cast")


def grow(pool: Pool, steps: int) -> None:
    """Add up to `steps` lines, of layers and other operations."""
    table = {o: n for o, n in operations.WEIGHTS.items() if o.__name__ not in _LEFT_OUT}
    table |= {o: 3 * n for o, n in WEIGHTS.items()} | {operations.jump: 1, operations.cast: 1}
    for _ in range(steps * 3):
        if len(pool.lines) >= steps:
            return
        state = list(pool.values), list(pool.inputs), list(pool.lines)
        try:
            pool.choose.choices(list(table), list(table.values()))[0](pool)
        except Skip:
            pool.values, pool.inputs, pool.lines = state


def inputs(pool: Pool) -> None:
    """One to three inputs of floats, and now and then a mask."""
    choose = pool.choose
    of = _shape(choose)
    for _ in range(choose.randint(1, 3)):
        dtype = choose.choice(["float32"] * 6 + ["float16"])
        pool.input(_floats(choose, of, dtype))
        if choose.random() < 0.4:
            of = _shape(choose)
    if choose.random() < 0.3:
        pool.input(np.array([choose.random() < 0.5 for _ in range(int(np.prod(of)))], bool).reshape(of))


def _shape(choose: random.Random) -> tuple[int, ...]:
    return tuple(choose.choice([1, 2, 2, 3, 4, 5]) for _ in range(choose.choice([1, 2, 2, 3, 4, 4])))


def _floats(choose: random.Random, of: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Half of the time quarters, which meet at kinks; else numbers without a pattern."""
    count = int(np.prod(of, dtype=int))
    plain = choose.random() < 0.5
    drawn = [choose.randint(-12, 12) / 4 if plain else choose.uniform(-3, 3) for _ in range(count)]
    return np.array(drawn, dtype).reshape(of)
