"""Values that a plan on NumPy quantizes and dequantizes are the model's, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import compile
from support.rows import every

SCALE, OTHER = 0.0390625, 0.11


def rounded(x: Any, scale: float = SCALE, zero: Any = 128, dtype: str = "uint8") -> Any:
    return F.dequantize_linear(F.quantize_linear(x, scale, zero, dtype=dtype), scale, zero)


def twice(x: Any) -> Any:
    q = F.quantize_linear(x, SCALE, 3)
    return F.dequantize_linear(q, SCALE, 3) + F.dequantize_linear(q, OTHER, 3), F.dequantize_linear(q, SCALE, 3)


def normalized(x: Any) -> Any:
    x = rounded(x)
    apart = x - F.mean(x, axis=(2, 3), keepdims=True)
    return apart / F.sqrt(F.mean(apart * apart, axis=(2, 3), keepdims=True) + 1e-5)


def levels_too(x: Any) -> Any:
    q = F.quantize_linear(x, SCALE, 128)
    return F.dequantize_linear(q, SCALE, 128), q


def pooled(x: Any) -> Any:
    return rounded(F.max_pool(rounded(x), 2, stride=1))


def padded(x: Any) -> Any:
    return rounded(F.max_pool(rounded(x, zero=0), 3, padding=1), zero=0)


def per_channel(x: Any) -> Any:
    scale = emberlet.asarray(np.array([0.05, 0.1, 0.2], np.float32), backend=x.backend)
    zero = emberlet.asarray(np.array([100, 0, 255], np.uint8), backend=x.backend)
    return F.dequantize_linear(F.quantize_linear(x, scale, zero), scale, zero)


EDGES = ((0, 0), (0, 0), (1, 1), (0, 2))
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "once": rounded,
    "signed": lambda x: rounded(x, zero=-5, dtype="int8"),
    "16 bits": lambda x: rounded(x, 0.0001, 700, "uint16"),
    "4 bits": lambda x: rounded(x, 0.3, 7, "uint4"),
    "without a zero point": lambda x: F.dequantize_linear(F.quantize_linear(x, SCALE), SCALE),
    "by another scale": lambda x: rounded(rounded(x), OTHER),
    "by another zero point": lambda x: F.dequantize_linear(F.quantize_linear(x, SCALE, 128), SCALE, 4),
    "of a gelu": lambda x: rounded(F.gelu(x)),
    "of a gelu by tanh, moved": lambda x: rounded(F.gelu(x * 3, approximate="tanh").reshape((-1,)), OTHER, 9),
    "the same again": lambda x: rounded(rounded(x)),
    "the same as other integers": lambda x: rounded(rounded(x, zero=100), zero=100, dtype="int8"),
    "moved": lambda x: rounded(rounded(x).reshape((3, -1)).permute(1, 0)),
    "joined": lambda x: rounded(F.concat([rounded(x), rounded(x + 1)], axis=1)),
    "joined of two scales": lambda x: rounded(F.concat([rounded(x), rounded(x, OTHER)], axis=1)),
    "pooled": pooled,
    "pooled with a border": padded,
    "relu before": lambda x: rounded(F.relu(x), zero=0),
    "relu before a zero point": lambda x: rounded(F.relu(x), zero=9),
    "relu that is read twice": lambda x: (lambda y: rounded(y, zero=0) + y)(F.relu(x)),
    "read twice": twice,
    "levels too": levels_too,
    "a scale for each channel": per_channel,
    "infinite in between": lambda x: rounded(rounded(x) * 3e38 * 0),
    "levels alone": lambda x: F.quantize_linear(x * 2, SCALE, 128),
    "from an input": lambda x: F.dequantize_linear(F.quantize_linear(x, SCALE, 7).permute(0, 1, 3, 2), SCALE, 7) * 2,
    "hard swish": lambda x: rounded(F.hard_swish(rounded(x)), 0.02, 18),
    "a mean of channels": lambda x: rounded(F.mean(F.relu(rounded(x)), axis=(2, 3), keepdims=True), 0.001, 5),
    "zeros of any sign": lambda x: (rounded(x, 9.0) * -1.0, F.softmax(rounded(x)), F.layer_norm(rounded(x, 9.0))),
    "normalized": lambda x: rounded(normalized(x)),
    "normalized by nothing": lambda x: rounded(rounded(x) / F.sqrt(rounded(x) * 0.0 + 0.0)),
    "padded with infinity": lambda x: rounded(F.pad(rounded(x), EDGES, value=-np.inf) * 0.0),
    "padded with NaN": lambda x: rounded(F.pad(rounded(x), EDGES, value=np.nan)),
    "sums beyond floats": lambda x: rounded(F.avg_pool(rounded(x) * 2e37, 3, stride=1) * 0.0),
    "attention of scores beyond floats": lambda x: rounded(F.attention(*[rounded(x) * 1e19] * 3) * 0.0),
    "rows looked up": lambda x: rounded((rounded(x) * 3e38)[:, :, [1, 0, 1]] * 0.0),
    "numbers beyond floats": lambda x: rounded(rounded(x) * 3e38 - rounded(x, OTHER) * 3e38),
}


@every("name, side", [(name, side) for name in PROGRAMS for side in (6, 160)])
def test_a_plan_rounds_as_the_model_does(name: str, side: int) -> None:
    draw = np.random.default_rng(side)
    x = (draw.standard_normal((1, 3, side, side)) * 4).astype(np.float32)
    x.flat[:9] = [np.nan, np.inf, -np.inf, -0.0, -1e-3, 3e38, -3e38, SCALE / 2, 1.5 * SCALE]
    image = emberlet.asarray(x, backend="numpy")
    program = PROGRAMS[name]
    with np.errstate(all="ignore"):
        wanted, found = program(image), compile(program, image)(image)
    for want, one in zip(*(r if isinstance(r, tuple) else (r,) for r in (wanted, found)), strict=True):
        assert want.dtype is one.dtype
        a, b = np.asarray(want), np.asarray(one)
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def drawn(x: Any, *shape: int, seed: int = 1) -> Any:
    numbers = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return emberlet.asarray(numbers, backend=x.backend)


def convolved(x: Any, channels: int = 4, kernel: int = 3, seed: int = 2) -> Any:
    weight = drawn(x, channels, x.shape[1], kernel, kernel, seed=seed)
    return F.conv(x, weight, drawn(x, channels, seed=seed + 1), padding=kernel // 2)


def fire(x: Any) -> Any:
    """Two convolutions that are joined; the levels of one are the joined ones'."""
    x = rounded(F.relu(convolved(rounded(x))), OTHER, 0)
    return F.concat(
        [rounded(F.relu(convolved(x, 4, 1)), 0.3, 0), rounded(F.relu(convolved(x, 4, 3, 8)), 0.31, 0)], axis=1
    )


def residual(x: Any) -> Any:
    x = rounded(x)
    y = rounded(convolved(x, 3), OTHER)
    return x + y + rounded(convolved(y, 3, seed=6), 0.5)


def dense(x: Any) -> Any:
    x = rounded(x, OTHER).permute(0, 2, 3, 1)
    hidden = rounded(F.relu(F.linear(x, drawn(x, 3, 16), drawn(x, 16, seed=4))), 0.05, 0)
    return (hidden @ drawn(x, 16, 5, seed=5)) + drawn(x, 5, seed=7)


# Name -> (what is rounded at the end, the scale, the zero point).
FOLDED: dict[str, tuple[Callable[[Any], Any], float, int]] = {
    "of a convolution": (lambda x: convolved(rounded(x)), 0.23, 128),
    "of ones, where halves are frequent": (
        lambda x: F.conv(rounded(x), emberlet.ones((4, 3, 3, 3), backend=x.backend), padding=1), 1.5, 128,
    ),
    "after relu": (lambda x: F.relu(convolved(rounded(x))), 0.11, 0),
    "after relu, with a zero point": (lambda x: F.relu(convolved(rounded(x))), 0.11, 20),
    "after relu6": (lambda x: F.clip(convolved(rounded(x)), 0.0, 6.0), 0.03, 0),
    "after a clip within": (lambda x: F.clip(convolved(rounded(x)), -2.05, 3.05), 0.1, 100),
    "after a clip beyond": (lambda x: F.clip(convolved(rounded(x)), 200.0, 300.0), 0.1, 0),
    "after max-pooling": (lambda x: F.max_pool(F.relu(convolved(rounded(x))), 2, stride=2), 0.2, 0),
    "grouped": (lambda x: F.conv(rounded(x), drawn(x, 3, 1, 3, 3), padding=1, groups=3), 0.07, 128),
    "two layers": (lambda x: convolved(rounded(F.relu(convolved(rounded(x))), OTHER, 0)), 0.6, 128),
    "joined": (lambda x: convolved(rounded(fire(x), 0.31, 0)), 1.9, 128),
    "joined and pooled": (lambda x: convolved(rounded(F.max_pool(fire(x), 3, stride=2), 0.31, 0)), 1.9, 128),
    "added": (residual, 0.7, 128),
    "of dense layers": (dense, 0.4, 128),
    "of levels by levels": (lambda x: rounded(x) @ rounded(x * 2, OTHER, 100).mT / 3, 0.7, 128),
    "of levels by levels, moved": (lambda x: (rounded(x) @ rounded(x, OTHER)).permute(2, 3, 0, 1) * 1.3, 0.7, 128),
    "of few levels by few": (lambda x: rounded(x)[..., :2] @ rounded(x * 2, OTHER)[..., :2].mT, 0.6, 128),
}  # fmt: skip


DEEP = ("two layers", "joined", "joined and pooled", "added", "of dense layers")


@every("name, side", [(name, side) for name in FOLDED for side in (6, 96)])
def test_scales_within_weights_change_levels_only_at_halves(name: str, side: int) -> None:
    before, scale, zero = FOLDED[name]
    x = (np.random.default_rng(side).standard_normal((1, 3, side, side)) * 3).astype(np.float32)
    image = emberlet.asarray(x, backend="numpy")

    def program(x: Any) -> Any:
        return rounded(before(x), scale, zero)

    plan = compile(program, image)
    found, want = np.asarray(plan(image)), np.asarray(program(image))
    quotient = np.asarray(before(image), np.float64) / np.float32(scale)
    half = np.abs(np.abs(quotient - np.trunc(quotient)) - 0.5) < 2e-4
    levels = np.rint((found - want) / np.float32(scale))
    assert np.abs(levels).max(initial=0) <= 1
    if name in DEEP:  # where levels of the first layers may be others
        assert np.count_nonzero(levels) <= max(1, found.size // 100)
    else:
        assert not levels[~half].any()


def steps(program: Callable[[Any], Any]) -> list[str]:
    """The names of the functions that a plan of a program calls."""
    image = emberlet.asarray(np.zeros((1, 3, 16, 16), np.float32), backend="numpy")
    plan = compile(program, image)
    plan(image)
    return [line.strip().partition("(")[0] for line in str(plan.plan()).splitlines()[1:]]


def test_a_layer_of_levels_takes_a_call_more_than_one_of_floats() -> None:
    def layers(x: Any, between: Callable[[Any, int], Any]) -> Any:
        for k in range(4):
            x = between(convolved(x, 8, 1, 3 * k), k)
        return convolved(x, 8, 1, 20)

    levels = steps(lambda x: layers(rounded(x), lambda y, k: rounded(F.relu(y), OTHER + 0.1 * k, 0)))
    real = steps(lambda x: layers(x, lambda y, k: F.relu(y)))
    of_the_input = 4  # which may be NaN: divided, cut at either end, rounded
    assert len(levels) == len(real) + 4 + of_the_input
    assert "multiply" not in levels


def read_by_two_scales(x: Any) -> Any:
    q = F.quantize_linear(x, SCALE, 128)
    return rounded(F.dequantize_linear(q, OTHER, 128) + rounded(F.dequantize_linear(q, SCALE, 128) * 2, 0.11), 0.2)


def on_levels(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: rounded(function(rounded(x)), 0.02, 18)


TABLES: dict[str, Callable[[Any], Any]] = {
    "hard swish": on_levels(F.hard_swish),
    "silu": on_levels(lambda x: x * F.sigmoid(x)),
    "hard sigmoid and what it scales": on_levels(lambda x: F.hard_sigmoid(x) * x + 0.5),
    "clip": on_levels(lambda x: F.clip(x * 2 - 0.5, -1.0, 1.0) / 3),
    "one over": on_levels(lambda x: 1.0 / (x * 3) - x),
    "of relu's levels": lambda x: rounded(F.hard_swish(rounded(F.relu(x), zero=10)), 0.02, 18),
    "of levels that are read twice": lambda x: (lambda y: rounded(F.hard_swish(y), 0.02, 18) + y)(rounded(x)),
    "of two levels": lambda x: rounded(rounded(x) * F.hard_swish(rounded(x, OTHER)), 0.02, 18),
    "after a convolution": lambda x: rounded(F.hard_swish(rounded(convolved(rounded(x)), 0.3, 100)), 0.2, 5),
    "of a result": lambda x: (lambda y: (rounded(F.hard_swish(y), 0.02, 18), y * 2 + 1))(rounded(x)),
    "signed": lambda x: rounded(F.hard_swish(rounded(x, zero=-5, dtype="int8")), 0.02, 18, "int8"),
    "of a product in a table's place": read_by_two_scales,
    "times numbers": on_levels(lambda x: x * 0.537 * 1.9 / 3),
    "times numbers, and cut": on_levels(lambda x: x * 13.5 * -1.9 / 3),
    "times numbers, all cut": on_levels(lambda x: x * 1e9 * 1.9 / 3),
    "of 16 bits": lambda x: rounded(F.hard_swish(rounded(x, 0.0001, 700, "uint16")), 0.02, 18),
}


@every("name, side", [(name, side) for name in TABLES for side in (1, 6, 40)])
def test_activations_of_levels_are_the_models(name: str, side: int) -> None:
    x = (np.random.default_rng(side).standard_normal((1, 3, side, side)) * 4).astype(np.float32)
    x.flat[:3] = [np.nan, np.inf, -np.inf] if side > 1 and "convolution" not in name else [0.3, -300, 300]
    image = emberlet.asarray(x, backend="numpy")
    program = TABLES[name]
    with np.errstate(all="ignore"):
        wanted, found = program(image), compile(program, image)(image)
    for want, one in zip(*(r if isinstance(r, tuple) else (r,) for r in (wanted, found)), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(want))


def test_a_small_hard_swish_of_levels_is_looked_up() -> None:
    taken = steps(on_levels(F.hard_swish))
    assert "look_up" in taken
    assert len(taken) == 8


def test_levels_that_are_multiplied_alone_are_multiplied_once() -> None:
    found = steps(lambda x: rounded(rounded(x) * 0.537 * 1.9 / 3, 0.02, 18))
    assert found.count("multiply") == 2 and "look_up" not in found  # by one number, and by the last scale


def test_normalized_levels_are_numbers() -> None:
    assert steps(lambda x: rounded(normalized(x))).count("fmax") == 1  # of the input, which may be NaN


def test_products_of_levels_take_both_scales_at_once() -> None:
    found = steps(lambda x: rounded(rounded(x) @ rounded(x * 2, OTHER) / 3, 0.7))
    assert found.count("multiply") == 3  # by 2, by all scales, and by the last one


def test_only_products_that_keep_the_order_are_moved_behind_max_pooling() -> None:
    """Those of integers wrap, and 0 times infinity is NaN, which a window keeps."""
    levels = np.arange(4, dtype=np.uint8).reshape(1, 1, 2, 2) * np.uint8(40)
    x = emberlet.asarray(levels, backend="numpy")
    found = compile(lambda x: F.max_pool(x * 3, 2), x)(x)
    assert np.asarray(found).ravel().tolist() == [(levels * np.uint8(3)).max()]
    x = emberlet.asarray(np.float32([[[[0, 2], [1, 3]]]]), backend="numpy")
    assert np.isnan(np.asarray(compile(lambda x: F.max_pool(x * float("inf"), 2), x)(x))).all()


def test_ends_of_a_clip_that_cross_or_are_nan_give_what_clip_gives() -> None:
    x = emberlet.asarray(np.float32([[-5, 0, 5]]), backend="numpy")
    for least, most, due in ((3.0, 1.0, 1.0), (float("nan"), 1.0, -10.0), (None, float("nan"), -10.0)):

        def cut(x: Any, ends: Any = (least, most)) -> Any:
            one = emberlet.asarray(np.eye(3, dtype=np.float32), backend=x.backend)
            return rounded(F.clip(rounded(x, 0.1, 100) @ one, *ends), 0.1, 100)

        np.testing.assert_allclose(np.asarray(compile(cut, x)(x)), [[due] * 3], rtol=1e-6)


def test_a_scale_that_weights_cannot_take_stays_apart() -> None:
    def product(x: Any) -> Any:
        weight = emberlet.asarray(np.float32([[1e25], [-1e25]]), backend=x.backend)
        return rounded(rounded(x, 1e-3, 0) @ weight, 1e-17, 100)

    x = emberlet.asarray(np.float32([[1, 1], [0, 2]]), backend="numpy")
    np.testing.assert_allclose(np.asarray(compile(product, x)(x)), [[0], [-1e-15]], rtol=1e-6)


def test_a_gelu_takes_the_scale_of_what_is_rounded() -> None:
    plain, before = (steps(f) for f in (F.gelu, lambda x: rounded(F.gelu(x))))
    assert before.count("multiply") == plain.count("multiply")  # by SCALE behind the rounding, not by a half before it
