"""Ranges of tensors over samples, by every method: against NumPy, onnxruntime's collectors, and what each promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.host.quantization.calibration import (
    AVERAGING,
    METHODS,
    Observed,
    entropy_threshold,
    grid_of,
    range_of,
    rounded,
)

RNG = np.random.default_rng(3)


def seen(*samples: Any) -> Observed:
    found = Observed(len(samples))
    for x in samples:
        found.add(np.asarray(x, np.float32))
    return found


DRAWN = {
    "normal": RNG.normal(size=5000),
    "heavy": RNG.standard_t(2, size=5000),
    "positive": np.abs(RNG.normal(size=5000)),
    "negative": -RNG.exponential(size=5000),
    "shifted": RNG.normal(3, 0.5, size=5000),
    "constant": np.full(5000, 2.0),
    "zeros": np.zeros(5000),
    "one": np.array([7.0]),
    # As after a relu: some numbers again and again, and a tail of others.
    "peaks": np.concatenate([RNG.choice(RNG.uniform(0, 0.8, 40), 20000), RNG.uniform(0, 10, 4000)]),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("method", METHODS)
def test_a_range_holds_zero_and_never_exceeds_the_values(method: str, name: str) -> None:
    x = DRAWN[name]
    low, high = range_of(seen(x), method)
    room = 1e-6 * np.abs(x).max()
    assert min(0, x.min()) - room <= low <= 0 <= high <= max(0, x.max()) + room
    scale, zero = grid_of(low, high)
    assert scale > 0
    assert 0 <= zero <= 255


def test_the_extremes_and_percentiles_are_numpys() -> None:
    parts = np.split(RNG.normal(size=600), 6)
    whole = np.concatenate(parts).astype(np.float32)
    assert range_of(seen(*parts), "minmax") == (whole.min(), whole.max())
    np.testing.assert_allclose(range_of(seen(*parts), "percentile", 90), np.percentile(whole, (5, 95)))


def test_a_moving_average_is_the_mean_of_few_samples_and_pytorchs_observer_of_many() -> None:
    """onnxruntime's calibration averages all; MovingAverageMinMaxObserver adds averaging_constant * (x.min() - min)."""
    parts = [RNG.normal(scale=s, size=50) for s in RNG.uniform(1, 30, 150)]
    ends = np.array([(x.min(), x.max()) for x in parts])
    np.testing.assert_allclose(range_of(seen(*parts[:100]), "moving-average"), ends[:100].mean(0), rtol=1e-6)
    average = ends[:100].mean(0)
    for end in ends[100:]:
        average += AVERAGING * (end - average)
    np.testing.assert_allclose(range_of(seen(*parts), "moving-average"), average, rtol=1e-6)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", ["normal", "heavy", "positive", "negative", "shifted"])
def test_mse_rounds_with_no_more_error_than_any_other_method(name: str, bits: int) -> None:
    x = DRAWN[name]

    def error(method: str) -> float:
        return float(np.mean((rounded(x, *grid_of(*range_of(seen(x), method, bits=bits), bits), bits) - x) ** 2))

    least = error("mse")
    assert least <= error("minmax")
    assert least <= min(error(m) for m in METHODS) * 1.05


def test_a_symmetric_outlier_is_clipped_by_all_but_the_extremes() -> None:
    x = np.concatenate([RNG.normal(size=20000), [80.0, -80.0]])
    assert range_of(seen(x), "minmax")[1] == 80
    for method in ("percentile", "entropy"):
        assert range_of(seen(x), method)[1] < 20, method
    assert range_of(seen(x), "mse", bits=4)[1] < 60


@pytest.mark.parametrize("name", ["normal", "heavy", "positive"])
def test_entropy_clips_near_where_onnxruntimes_collector_does(name: str) -> None:
    """Within a quarter: onnxruntime's histogram has both signs, and its last step takes all the bins that are left."""
    calibrate = pytest.importorskip("onnxruntime.quantization.calibrate")
    x = np.concatenate([DRAWN[name], -DRAWN[name]]).astype(np.float32)
    collector = calibrate.HistogramCollector("entropy", False, 1001, 128, 99.99, None)
    theirs = collector.get_entropy_threshold((*np.histogram(x, 1001), x.min(), x.max()), 128)
    ours = entropy_threshold(*np.histogram(np.abs(x), 500, (0, np.abs(x).max())), 64)
    assert abs(ours - float(theirs[1])) < 0.25 * float(theirs[1]), (ours, theirs)


@pytest.mark.parametrize("name", DRAWN)
def test_entropy_leaves_at_most_a_hundredth_of_the_values_outside(name: str) -> None:
    x = np.abs(DRAWN[name])
    most = entropy_threshold(*np.histogram(x, 2048, (0, x.max() or 1.0)), 128)
    assert np.mean(x > most * (1 + 1e-9)) <= 0.01
    assert most >= 0.5 * min(x.max(), np.percentile(x, 99.9))


def test_few_bins_are_not_clipped() -> None:
    assert entropy_threshold(np.ones(100), np.linspace(0, 5, 101)) == 5


def test_a_large_tensor_is_sampled_and_its_extremes_are_exact() -> None:
    x = RNG.normal(size=1 << 18)
    found = seen(x)
    assert found.sample().size == 1 << 16
    assert (found.low, found.high) == (np.float32(x.min()), np.float32(x.max()))


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_a_samples_values_does_not_matter(method: str) -> None:
    """Boards and ONNX files hold images in different orders."""
    parts = RNG.standard_t(3, size=(20, 10_000)).astype(np.float32)
    assert range_of(seen(*parts), method) == range_of(seen(*(x[::-1].reshape(100, 100) for x in parts)), method)


def test_what_is_kept_of_large_samples_has_the_percentiles_of_all_their_values() -> None:
    parts = RNG.standard_t(3, size=(200, 10_000)).astype(np.float32)
    for share in (99.0, 99.9):
        found = range_of(seen(*parts), "percentile", share)
        np.testing.assert_allclose(found, np.percentile(parts, (50 - share / 2, 50 + share / 2)), rtol=0.05)


def test_another_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnsupportedError, match=r"minmax, moving-average, .* found 'median'"):
        range_of(seen([1.0]), "median")
