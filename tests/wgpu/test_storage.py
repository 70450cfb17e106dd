"""Uploads and downloads: bytes of every dtype to words and back, with and without NumPy."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.wgpu_backend.run import storage
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rows import every

HELD = [d for d in dtypes.ALL if storage.word(d) is not None and not d.name.startswith("q")]
LIMITS = {"int64": (-(1 << 31), (1 << 31) - 1), "uint64": (0, (1 << 32) - 1)}


@pytest.fixture(params=["numpy", "plain"])
def way(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(storage, "_numpy", lambda: None)
    return request.param


@pytest.mark.parametrize("name", LIMITS)
def test_64_bit_integers_are_held_up_to_the_ends_of_32_bits(way, name):
    dtype, (low, high) = dtypes.dtype(name), LIMITS[name]
    for values, fit in (([low, high], True), ([0, low - 1], False), ([high + 1, 0], False), ([], True)):
        if values and min(values) < dtype.range[0]:
            continue
        data = np.array(values, name).tobytes()
        words = storage.widen(data, dtype, len(values))
        assert storage.from_list(values, dtype) == words
        assert (words is not None) == fit
        if words is not None:
            assert len(words) == 4 * len(values)
            assert bytes(storage.narrow(words, dtype, len(values))) == data
            assert storage.to_list(words, dtype, len(values)) == values


def numbers(dtype):
    if dtype.is_bool:
        return st.booleans()
    if dtype.is_integer:
        low, high = LIMITS.get(dtype.name, dtype.range)
        return st.integers(low, high)
    return st.floats(width=16, allow_nan=False)


@pytest.mark.parametrize("dtype", HELD, ids=str)
@settings(max_examples=20)
@given(data=st.data())
def test_both_ways_give_the_same_words_and_bring_the_elements_back(dtype, data):
    host = get_backend("numpy")
    values = data.draw(st.lists(numbers(dtype), min_size=1, max_size=9))
    x = host.from_list(values, dtype, (len(values),))
    given = bytes(host.to_bytes(x))
    ways = []
    for numpy in (np, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage, "_numpy", lambda numpy=numpy: numpy)
            words = bytes(storage.widen(given, dtype, len(values)))
            assert bytes(storage.narrow(words, dtype, len(values))) == given
            found = storage.to_list(words, dtype, len(values))
            assert found == host.to_list(x)
            if storage.word(dtype) != "f32":
                lowest, highest = storage.extremes(words, storage.word(dtype), len(values))
                assert (lowest, highest) == (min(found), max(found))
            ways.append(words)
    assert ways[0] == ways[1]


@every("dtype", HELD)
@pytest.mark.parametrize("shape", [(3, 5), (), (0, 2)], ids=str)
@pytest.mark.parametrize("computed", [False, True])
def test_elements_awaited_are_those_read_at_once(gpu, make, dtype, shape, computed):
    given = make.cpu.cast(make(shape, dtypes.float32 if dtype.is_float else dtype), dtype)  # float64 is computed in f32
    x = gpu.from_bytes(given.backend.to_bytes(given), dtype, shape)
    if computed:
        x = gpu.concat([x, x], 0) if shape else gpu.where(gpu.full((), True, dtypes.bool), x, x)
        given = given.backend.concat([given, given], 0) if shape else given
    found = asyncio.run(gpu.to_data_async(x))
    assert (found.shape, found.dtype) == (given.shape, dtype)
    assert bytes(found.bytes) == bytes(gpu.to_bytes(x)) == bytes(given.backend.to_bytes(given))


def test_elements_that_only_the_host_can_hold_are_awaited_too(gpu, make):
    wide = make.of([1 << 40, -(1 << 50)], dtypes.int64)
    x = gpu.from_bytes(wide.backend.to_bytes(wide), dtypes.int64, (2,))
    assert bytes(asyncio.run(gpu.to_data_async(x)).bytes) == bytes(wide.backend.to_bytes(wide))


def test_numbers_beyond_float32_become_infinite_from_halfway_to_the_next_power_of_two(way):
    """2^128 - 2^103 is halfway between the largest float32 and 2^128, to which it rounds."""
    halfway = 2.0**128 - 2.0**103
    below = np.nextafter(halfway, 0.0)
    values = [sign * v for v in (below, halfway, 1e300) for sign in (1.0, -1.0)]
    with np.errstate(over="ignore"):
        want = np.array(values).astype(np.float32)
    assert list(np.isinf(want)) == [False, False, True, True, True, True]
    assert storage.from_list(values, dtypes.float32) == want.tobytes()
    assert [storage.f32_bits(v) for v in values] == want.view(np.uint32).tolist()
