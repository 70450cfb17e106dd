"""A row whose lists repeat values that a file stores once is refused before it becomes Python's objects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.data import ArrowDataset
from emberlet.errors import FormatError
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

LONG = "x" * 1000


def one_list(values: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def in_views(levels: int) -> Any:
    """Lists of ten that all hold the same ten lists."""
    found = pa.array([1.5] * 10)
    for _ in range(levels):
        found = pa.ListViewArray.from_arrays(pa.array([0] * 10, pa.int32()), pa.array([10] * 10, pa.int32()), found)
    return found


SHARED: dict[str, Callable[[], Any]] = {
    "a text of a dictionary": lambda: one_list(pa.array([LONG]).dictionary_encode().take(pa.array([0] * 10_000))),
    "nulls": lambda: one_list(pa.nulls(1 << 26)),
    "nulls in lists of one size": lambda: pa.FixedSizeListArray.from_arrays(pa.nulls(1 << 26), 1 << 26),
    "views of views": lambda: in_views(7),
    "a run": lambda: one_list(pa.RunEndEncodedArray.from_arrays(pa.array([10_000], pa.int32()), pa.array([LONG]))),
    "in a struct": lambda: pa.StructArray.from_arrays([one_list(pa.nulls(1 << 26))], ["a"]),
    "in a dictionary": lambda: pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), one_list(pa.nulls(1 << 26))),
}


def write(column: Any, path: Path) -> Path:
    table = pa.table({"c": column})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("name", SHARED)
def test_a_row_that_repeats_what_is_stored_once_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emberlet.host.data.tables.EXPANDED", 4 << 20)
    path = write(SHARED[name](), tmp_path / "x.arrow")
    with pytest.raises(FormatError, match="a row would become more than 4194304 bytes in memory"):
        ArrowDataset(path)


def test_lists_that_share_little_are_read(tmp_path: Path) -> None:
    tags = one_list(pa.array(["a", "b", "a"]).dictionary_encode())
    assert ArrowDataset(write(tags, tmp_path / "tags.arrow"))[0] == {"c": ["a", "b", "a"]}
    assert ArrowDataset(write(in_views(2), tmp_path / "views.arrow"))[3] == {"c": [[1.5] * 10] * 10}


def size_of(value: Any) -> int:
    """Bytes of a value and of what it holds."""
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return sys.getsizeof(value) + sum(map(size_of, value))
    return 0 if value is None else sys.getsizeof(value)


def values(depth: int = 3) -> st.SearchStrategy[Any]:
    """Arrays of many kinds, with missing values."""
    sizes = st.integers(0, 6)
    flat = st.one_of(
        st.lists(st.none() | st.integers(-9, 9), max_size=9).map(lambda x: pa.array(x, pa.int64())),
        st.lists(st.none() | st.text("xyz", max_size=200), max_size=9).flatmap(
            lambda x: st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]).map(
                lambda kind: pa.array(x, kind)
            )
        ),
        sizes.map(pa.nulls),
        st.lists(st.binary(min_size=3, max_size=3), max_size=9).map(lambda x: pa.array(x, pa.binary(3))),
    )
    if not depth:
        return flat
    inner = values(depth - 1)
    return st.one_of(
        flat,
        inner.flatmap(
            lambda x: st.lists(st.integers(0, len(x)), min_size=1, max_size=6).map(
                lambda ends: pa.ListArray.from_arrays(pa.array(sorted(ends), pa.int32()), x)
            )
        ),
        inner.map(lambda x: pa.ListViewArray.from_arrays([0] * 4, [len(x)] * 4, x)),
        inner.map(lambda x: pa.FixedSizeListArray.from_arrays(x.slice(0, len(x) // 2 * 2), 2)),
        inner.map(lambda x: pa.StructArray.from_arrays([x, x], ["a", "b"])),
        inner.map(lambda x: pa.DictionaryArray.from_arrays(pa.array([0] * min(4, len(x)) + [None], pa.int8()), x)),
        inner.map(lambda x: x.slice(1)),
        inner.filter(len).map(lambda x: pa.RunEndEncodedArray.from_arrays(np.arange(3, 3 + len(x), dtype=np.int32), x)),
        inner.map(lambda x: pa.MapArray.from_arrays([0, len(x)], pa.array(range(len(x))), x)),
    )


@given(values())
def test_costs_are_about_what_python_takes_and_not_too_few(x: Any) -> None:
    from emberlet.host.data.row_costs import costs

    found = np.broadcast_to(np.asarray(costs(x), np.float64), (len(x),))
    for cost, value in zip(found, x.to_pylist(), strict=True):
        assert size_of(value) <= 4 * cost + 64
