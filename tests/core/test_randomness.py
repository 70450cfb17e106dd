"""Philox against its published vectors; distributions by their moments; the same numbers on every backend."""

from __future__ import annotations

import sys
import threading

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import DTypeError, ShapeError
from emberlet.python_backend.philox import block
from support.rows import every

# Random123's kat_vectors for philox4x32 with 10 rounds: counter, key, output.
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def number(words):
    return sum(int(w, 16) << 32 * i for i, w in enumerate(words.split()))


@pytest.mark.parametrize(("counter", "key", "output"), VECTORS)
def test_philox_gives_the_published_words(backend, counter, key, output):
    expected = [int(w, 16) for w in output.split()]
    assert list(block(number(counter), number(key))) == expected
    assert backend.random_bits((4,), number(key), number(counter)).tolist() == expected


def test_counters_carry_over_words(backend):
    at = (1 << 64) - 2
    bits = backend.random_bits((17,), 5, at).tolist()
    assert bits == [w for i in range(5) for w in block(at + i, 5)][:17]


def test_a_seed_repeats_the_sequence(backend):
    F.manual_seed(7)
    first = [F.uniform((3,)).tolist(), F.normal((2,)).tolist(), F.randint(5, shape=(4,)).tolist()]
    F.manual_seed(7)
    assert [F.uniform((3,)).tolist(), F.normal((2,)).tolist(), F.randint(5, shape=(4,)).tolist()] == first
    assert F.uniform((3,)).tolist() != F.uniform((3,)).tolist()
    assert F.uniform((5,), seed=3).tolist() == F.uniform((5,), seed=3).tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_uniforms_stay_below_the_upper_end(dtype):
    x = np.asarray(F.uniform((20000,), seed=11, dtype=dtype, backend="numpy")).astype(np.float64)
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 0.5) < 0.01
    assert abs(x.var() - 1 / 12) < 0.01


def test_distributions_have_their_moments():
    x = np.asarray(F.normal((50000,), 3.0, 2.0, seed=12, backend="numpy"))
    assert abs(x.mean() - 3) < 0.05
    assert abs(x.std() - 2) < 0.05
    assert np.isfinite(x).all()
    y = np.asarray(F.randint(-2, 5, (50000,), seed=13, backend="numpy"))
    assert sorted(set(y.tolist())) == list(range(-2, 5))
    assert np.abs(np.bincount(y + 2) / 50000 - 1 / 7).max() < 0.01
    z = np.asarray(F.bernoulli(0.25, (50000,), seed=14, backend="numpy"))
    assert abs(z.mean() - 0.25) < 0.01


def test_integers_are_the_upper_half_of_a_product_of_64_bits(backend):
    high, low = F.random_bits((2, 64), seed=15).tolist()
    for span in (3, 70000, 0x89ABCDEF, 3 << 30):
        expected = [((h << 32 | w) * span) >> 64 for h, w in zip(high, low, strict=True)]
        assert F.randint(0, span, (64,), seed=15, dtype="uint32").tolist() == expected
    assert F.randint(0, 1 << 32, (64,), seed=15, dtype="uint32").tolist() == high
    with pytest.raises(ShapeError):
        F.randint(3, 3)
    with pytest.raises(DTypeError):
        F.randint(0, 300, (4,), dtype="uint8")


@pytest.mark.parametrize("span", [3, 1000, 3 << 30, (1 << 32) - 5])
def test_integers_are_even_over_any_range(span):
    x = np.asarray(F.randint(0, span, (300_000,), seed=16, backend="numpy"))
    counts = np.bincount(x * 3 // span, minlength=3)  # thirds of the range, each a third of the draws
    share = np.array([-(-span * (i + 1) // 3) - -(-span * i // 3) for i in range(3)]) / span * x.size
    assert ((counts - share) ** 2 / share).sum() < 13.8  # chi-squared of 2 degrees of freedom, one in a thousand
    assert abs(np.bincount(x % 3, minlength=3) / x.size - 1 / 3).max() < 0.005


def test_thirty_two_threads_never_draw_the_same_number():
    F.manual_seed(17)
    found, start = [], threading.Barrier(32)

    def draw():
        start.wait()
        for _ in range(50):
            found.append(F.random_bits((4,), backend="python").tolist())

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=draw) for _ in range(32)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(old)
    assert len(found) == 1600
    F.manual_seed(17)
    assert sorted(found) == sorted(F.random_bits((1600, 4), backend="python").tolist())


def test_uniforms_of_float64_take_53_bits(backend):
    x = np.asarray(F.uniform((4000,), seed=18, dtype="float64"))
    steps = x * 2.0**53
    assert (steps == np.floor(steps)).all()
    assert 0.4 < (steps % 2).mean() < 0.6
    assert len(set(x.tolist())) == 4000
    z = np.asarray(F.normal((4000,), seed=19, dtype="float64"))
    assert (z != z.astype(np.float32)).all()


@every("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@every(("low", "high"), [(0, 1), (1, 1.0625), (-1, -0.9375), (-3, 5), (-1, 0), (100, 200), (7, 7)])
def test_uniforms_reach_low_and_never_high(backend, dtype, low, high):
    x = np.asarray(F.uniform((3000,), low, high, seed=20, dtype=dtype)).astype(np.float64)
    assert (x >= min(low, emberlet.full((), low, dtype=dtype).item())).all()  # low itself may be rounded
    assert low == high or (x < high).all()


def test_uniforms_want_a_range(backend):
    for low, high in ((1, 0), (0, float("inf")), (float("nan"), 1)):
        with pytest.raises(ShapeError, match="low <= high"):
            F.uniform((2,), low, high)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("p", [0.001, 0.1, 0.7])
def test_bernoulli_has_its_probability_in_every_dtype(dtype, p):
    given = emberlet.full((400_000,), p, dtype=dtype, backend="numpy")
    exact = given[0].item()
    share = np.asarray(F.bernoulli(given, seed=21)).mean()
    assert abs(share - exact) < 4 * (exact * (1 - exact) / 400_000) ** 0.5


def test_draws_by_name(backend):
    x = emberlet.zeros((4,), dtype="float64")
    assert F.random_like(x, "normal", seed=1).dtype is dtypes.float64
    assert F.random((4,), "uniform", 2, 3, seed=1).tolist() == F.uniform((4,), 2, 3, seed=1).tolist()
    assert set(F.random((50,), "bernoulli", 0.5, seed=1).tolist()) == {0.0, 1.0}
    p = emberlet.asarray([0.0, 1.0])
    assert F.bernoulli(p).tolist() == [False, True]
    with pytest.raises(ValueError, match="cauchy"):
        F.random((1,), "cauchy")
