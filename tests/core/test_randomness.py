"""Philox against its published vectors; distributions by their moments; the same numbers on every backend."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import ShapeError
from emberlet.python_backend.philox import block

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


def test_all_backends_draw_the_same_numbers():
    draws = {}
    for name in ("python", "numpy"):
        draws[name] = (
            F.random_bits((9,), seed=1, backend=name).tolist(),
            F.uniform((9,), -2, 5, seed=2, backend=name).tolist(),
            F.randint(-3, 1000, (9,), seed=3, backend=name).tolist(),
            F.permutation(9, seed=4, backend=name).tolist(),
            F.bernoulli(0.3, (9,), seed=5, backend=name).tolist(),
        )
        draws[name + " normals"] = F.normal((9,), seed=6, backend=name).tolist()
    assert draws["python"] == draws["numpy"]
    np.testing.assert_allclose(draws["python normals"], draws["numpy normals"], rtol=1e-5, atol=1e-6)


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


def test_wide_ranges_of_integers_take_the_upper_half_of_the_product(backend):
    bits = F.random_bits((64,), seed=15).tolist()
    for span in (3, 70000, 0x89ABCDEF, 1 << 32):
        assert F.randint(0, span, (64,), seed=15, dtype="uint32").tolist() == [b * span >> 32 for b in bits]
    with pytest.raises(ShapeError):
        F.randint(3, 3)


def test_draws_by_name(backend):
    x = emberlet.zeros((4,), dtype="float64")
    assert F.random_like(x, "normal", seed=1).dtype is dtypes.float64
    assert F.random((4,), "uniform", 2, 3, seed=1).tolist() == F.uniform((4,), 2, 3, seed=1).tolist()
    assert set(F.random((50,), "bernoulli", 0.5, seed=1).tolist()) == {0.0, 1.0}
    p = emberlet.asarray([0.0, 1.0])
    assert F.bernoulli(p).tolist() == [False, True]
    with pytest.raises(ValueError, match="cauchy"):
        F.random((1,), "cauchy")
