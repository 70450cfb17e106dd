"""Assigning to parts of tensors in GPU memory: the elements are NumPy's, and nothing is copied where nobody shares
them."""

from __future__ import annotations

import random
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.wgpu_backend.run.assignment import AXES, LONGEST
from support.rows import every


def placed(gpu: Any, array: Any) -> Any:
    """A tensor whose elements are in GPU memory."""
    x = emberlet.asarray(array, device=gpu)
    gpu.realize(x)
    if x.data.op == "data":
        gpu.upload(x.data)
    assert x.data.op == "buffer"
    return x


def part(choose: random.Random, n: int) -> Any:
    """An index of an axis: a number, a range in either direction."""
    kind = choose.randrange(5)
    if kind == 0:
        return choose.randrange(-n, n)
    low, high = sorted((choose.randrange(n + 1), choose.randrange(n + 1)))
    if kind == 1:
        return slice(None)
    if kind == 2:
        return slice(low, high)
    if kind == 3:
        return slice(low, high, choose.randint(1, 3))
    return slice(high, low or None, -choose.randint(1, 3))


@every("seed", range(40), share=4)
def test_drawn_regions_get_numpys_elements(gpu: Any, seed: int) -> None:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    dtype = choose.choice(["float32", "int32", "uint32", "float32", "int64", "bool"])
    shape = tuple(choose.choice([1, 2, 3, 5, 8]) for _ in range(choose.randint(1, 5)))
    array = rng.integers(0, 9, shape).astype(dtype)
    x = placed(gpu, array)
    for _ in range(4):
        index = tuple(part(choose, n) for n in shape)
        region = array[index]
        kind = choose.randrange(3)
        if kind == 0:
            value: Any = int(rng.integers(0, 2))
        else:
            value = rng.integers(0, 9, region.shape).astype(dtype)
        array[index] = value
        given = emberlet.asarray(value, device=gpu) if kind else value
        x[index] = placed(gpu, value) if kind == 2 and value.size else given
        assert np.array_equal(np.asarray(x), array), index


@pytest.mark.parametrize("count", [1, LONGEST, LONGEST + 1, 5000])
def test_a_run_of_elements_is_written_in_place(gpu: Any, count: int) -> None:
    array = np.arange(40_000, dtype=np.float32)
    x = placed(gpu, array)
    buffer = id(x.data.buffer)  # a reference would be another owner
    value = np.full(count, -1, np.float32) * np.arange(count, dtype=np.float32)
    x[7 : 7 + count] = emberlet.asarray(value, device=gpu)
    array[7 : 7 + count] = value
    assert np.array_equal(np.asarray(x), array)
    assert id(x.data.buffer) == buffer
    x[3:5] = 8.0
    array[3:5] = 8
    x[5000:0:-700] = emberlet.asarray(np.arange(8, dtype=np.float32), device=gpu)
    array[5000:0:-700] = np.arange(8)
    assert np.array_equal(np.asarray(x), array)
    assert id(x.data.buffer) == buffer


def test_shared_elements_are_not_changed(gpu: Any) -> None:
    x = placed(gpu, np.zeros((4, 5), np.float32))
    before = x + 0
    x[2, 3] = 1.0
    assert np.asarray(before).sum() == 0.0
    assert np.asarray(x)[2, 3] == 1.0 and np.asarray(x).sum() == 1.0


def test_integers_are_known_to_be_what_was_assigned(gpu: Any) -> None:
    x = placed(gpu, np.array([1, 2, 3, 4], np.int64))
    assert (x + 0).tolist() == [1, 2, 3, 4]
    x[1:3] = emberlet.asarray(np.array([1 << 30, -(1 << 30)], np.int64), device=gpu)
    assert (x * 4).tolist() == [4, 1 << 32, -(1 << 32), 16]
    x[0] = (1 << 31) - 1
    assert (x + 1).tolist()[0] == 1 << 31


def test_regions_of_more_axes_than_a_kernel_takes_are_assigned_too(gpu: Any) -> None:
    shape = (3,) * (AXES + 1)
    array = np.arange(3 ** (AXES + 1), dtype=np.float32).reshape(shape)
    x = placed(gpu, array)
    index = (slice(0, 2),) * (AXES + 1)
    value = -np.arange(2 ** (AXES + 1), dtype=np.float32).reshape((2,) * (AXES + 1))
    x[index] = emberlet.asarray(value, device=gpu)
    array[index] = value
    assert np.array_equal(np.asarray(x), array)
