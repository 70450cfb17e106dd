"""Data sets over data sets: their laws, and what they read."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from emberlet.data import (
    ComposedDataset,
    InMemDataset,
    MapperDataset,
    PartialDataset,
    SamplerDataset,
    ShuffledDataset,
    WindowsDataset,
    split,
)
from emberlet.errors import ArgumentError, EmberletError, IndexingError
from hypothesis import given
from hypothesis import strategies as st

from tools.micropython import Port

from . import items

SIZES = st.integers(0, 40)


@given(SIZES, st.integers(0, 40), st.integers(0, 40))
def test_part_is_a_slice(n: int, start: int, end: int) -> None:
    if start <= end <= n:
        assert list(PartialDataset(items.Numbers(n), start, end)) == list(range(n))[start:end]
    else:
        with pytest.raises(ArgumentError, match=f"of a data set of {n}"):
            PartialDataset(items.Numbers(n), start, end)


@given(st.lists(SIZES, max_size=6))
def test_composed_data_sets_follow_each_other(sizes: list[int]) -> None:
    found = ComposedDataset([range(100 * k, 100 * k + n) for k, n in enumerate(sizes)])
    assert list(found) == [100 * k + i for k, n in enumerate(sizes) for i in range(n)]
    assert len(found) == sum(sizes)


@given(SIZES, st.integers(1, 9), st.integers(1, 9))
def test_windows_are_the_runs_of_their_size(n: int, size: int, stride: int) -> None:
    values = list(range(n))
    expected = [values[i : i + size] for i in range(0, n - size + 1, stride)]
    assert list(WindowsDataset(items.Numbers(n), size, stride)) == expected


@given(SIZES, st.integers())
def test_shuffled_items_are_the_same_in_another_order(n: int, seed: int) -> None:
    found = list(ShuffledDataset(items.Numbers(n), seed))
    assert sorted(found) == list(range(n))
    assert found == list(ShuffledDataset(items.Numbers(n), seed))


def test_every_order_of_four_is_as_likely() -> None:
    counts = Counter(tuple(ShuffledDataset(range(4), seed)) for seed in range(4800))
    assert len(counts) == 24
    # chi-squared with 23 degrees of freedom: above 49.7 with a chance of 0.1 %
    assert sum((c - 200) ** 2 / 200 for c in counts.values()) < 49.7


@given(st.integers(1, 20), SIZES, st.integers())
def test_sample_without_replacement_takes_everything_before_it_repeats(n: int, size: int, seed: int) -> None:
    found = list(SamplerDataset(items.Numbers(n), size, replacement=False, seed=seed))
    assert len(found) == size
    counts = Counter(dict.fromkeys(range(n), 0))
    counts.update(found)
    assert max(counts.values()) - min(counts.values()) <= 1
    for start in range(0, size, n):
        assert len(set(found[start : start + n])) == len(found[start : start + n])


def test_sample_with_replacement_is_uniform_and_independent() -> None:
    counts = Counter(SamplerDataset(range(10), 20000, seed=4))
    assert sum((counts[i] - 2000) ** 2 / 2000 for i in range(10)) < 27.9  # 9 degrees of freedom, 0.1 %
    pairs = list(SamplerDataset(range(3), 9001, seed=4))
    of_pairs = Counter(itertools.pairwise(pairs))
    assert sum((of_pairs[i, j] - 1000) ** 2 / 1000 for i in range(3) for j in range(3)) < 26.1  # 8


@given(SIZES, st.lists(st.integers(1, 5), min_size=1, max_size=4), st.one_of(st.none(), st.integers()))
def test_split_divides_all_items(n: int, weights: list[int], seed: int | None) -> None:
    parts = split(items.Numbers(n), [w / sum(weights) for w in weights], seed=seed)
    together = [i for part in parts for i in part]
    assert sorted(together) == list(range(n))
    assert seed is not None or together == list(range(n))
    assert all(abs(len(p) - n * w / sum(weights)) <= 1 for p, w in zip(parts, weights, strict=True))


def test_nothing_is_read_before_an_item_is() -> None:
    read: list[int] = []

    class Watched(items.Numbers):
        def __getitem__(self, i: int) -> int:
            read.append(i)
            return i

    stacked = WindowsDataset(MapperDataset(PartialDataset(ShuffledDataset(Watched(9), 1), 2, 8), lambda x: x + 100), 2)
    composed = ComposedDataset([stacked, SamplerDataset(Watched(9), 20)])
    assert (len(composed), read) == (25, [])
    assert len(composed[0]) == 2
    assert len(read) == 2


def test_mapper_is_a_function_or_an_object() -> None:
    class Double:
        def map(self, x: int) -> int:
            return 2 * x

    assert list(MapperDataset([1, 2], Double())) == list(MapperDataset([1, 2], items.doubled)) == [2, 4]


def test_items_are_counted_from_both_ends() -> None:
    found = InMemDataset.from_dataset(MapperDataset(range(5), items.doubled))
    assert (found[-1], found[-5], found.get(4), found.get(5), found.get(-1)) == (8, 0, 8, None, None)
    for i in (5, -6):
        with pytest.raises(IndexingError, match=f"item {i} of a data set of 5"):
            found[i]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WindowsDataset([1], 0), "at least 1"),
        (lambda: SamplerDataset([], 3), "a sample of 3 items of a data set of 0"),
        (lambda: split([1], [0.7, 0.7]), "at most 1"),
        (lambda: split([1], []), "fractions"),
    ],
)
def test_arguments_are_checked(make: Any, message: str) -> None:
    with pytest.raises(EmberletError, match=message):
        make()


def test_data_sets_and_batches_run_under_micropython(unix_port: Port) -> None:
    script = """
import emberlet
from emberlet.data import ArrayDataset, DataLoader, InMemDataset, MapperDataset, ShuffledDataset, WindowsDataset, split
data = InMemDataset([(float(i), i % 2) for i in range(6)])
train, test = split(data, [0.5, 0.5])
for x, y in DataLoader(train, batch_size=2):
    print(x.tolist(), y.tolist())
print(sorted(ShuffledDataset(test, 3)[i][0] for i in range(3)))
for batch in DataLoader(WindowsDataset(range(5), 3), batch_size=2):
    print(batch.tolist())
print([b.tolist() for b in DataLoader(MapperDataset(range(20), lambda i: 3 * i), batch_size=8, shuffle=7)])
x = emberlet.arange(6).reshape((3, 2))
print([[p.tolist() for p in b] for b in DataLoader(ArrayDataset(x, emberlet.asarray([7, 8, 9])), batch_size=2)])
try:
    next(iter(DataLoader(MapperDataset([1], lambda i: i // 0), batch_size=1)))
except emberlet.EmberletError as error:
    print(type(error).__name__, error)
"""
    from emberlet.data import DataLoader

    shuffled = [b.tolist() for b in DataLoader(range(0, 60, 3), batch_size=8, shuffle=7)]
    assert unix_port.run(script, heap="1M").check().stdout.splitlines() == [
        "[0.0, 1.0] [0, 1]",
        "[2.0] [0]",
        "[3.0, 4.0, 5.0]",
        "[[0, 1, 2], [1, 2, 3]]",
        "[[2, 3, 4]]",
        str(shuffled),
        "[[[[0, 1], [2, 3]], [7, 8]], [[[4, 5]], [9]]]",
        "DataError item 0 of the data set: ZeroDivisionError: divide by zero",
    ]
