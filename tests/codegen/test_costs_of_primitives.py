"""What the budget of evaluation counts for each primitive: at least the elements that it reads and makes, and what
sums over many elements take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import emberlet
import pytest
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.codegen import budget
from emberlet.codegen.budget import COSTS
from support.rows import every

HOME = get_backend("python")
F, I64 = dtypes.float32, dtypes.int64


def of(*shape: int, dtype: Any = F) -> Any:
    return HOME.full(shape, 0, dtype)


def at(*shape: int) -> Any:
    return of(*shape, dtype=I64)


ONES = ((1, 1), (1, 2))
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("from_bytes", (bytes(15), dtypes.int8, (3, 5))), ("from_list", ([1.0] * 6, F, (2, 3))),
    ("from_list", (["ab", "cde"], dtypes.string, (2,))), ("to_list", (of(2, 7),)), ("full", ((2, 7), 1.0, F)),
    ("arange", (3, 2, 11, I64)), ("random_bits", ((4, 3), 1, 2)), ("unary", ("exp", of(3, 5))),
    ("binary", ("add", of(3, 1), of(7))), ("binary", ("add", of(5), of(2, 3, 1))),
    ("binary", ("add", of(3, 0), of(1, 1))),
    ("where", (of(2, 1, 1, dtype=dtypes.bool), of(3, 1), of(5))), ("cast", (of(3, 5), dtypes.int8, True)),
    ("bitcast", (of(3, 5), dtypes.int32)), ("reduce", ("sum", of(3, 5), (0,), True)),
    ("argreduce", ("max", of(3, 5), 0, True)), ("cumulative", ("sum", of(3, 5), 0)), ("sort", (of(3, 5), 0, True)),
    ("matmul", (of(3, 2), of(2, 5))), ("matmul", (of(2, 1, 3, 2), of(7, 2, 5))), ("matmul", (of(0, 3, 2), of(1, 2, 5))),
    ("conv", (of(2, 6, 7, 8), of(4, 3, 3, 2), None, (2, 3), ONES, (2, 1), 2)),
    ("conv", (of(1, 1, 1), of(1, 1, 1), None, (1,), ((500, 499),), (1,), 1)),
    ("pool", ("max", of(2, 3, 7, 8), (3, 2), (2, 3), ONES, (2, 1))),
    ("take", (of(3, 5, 7), at(2, 11), 1)), ("gather", (of(3, 5), at(3, 4), 1)),
    ("scatter", (of(3, 5), at(2, 5), of(2, 5), 0, "add")), ("scatter", (of(3, 5), at(9, 5), of(9, 5), 0, "add")),
    ("nonzero", (HOME.full((3, 5, 2), 1, F),)), ("nonzero", (of(),)), ("reshape", (of(3, 5), (15,))),
    ("expand", (of(1, 5), (4, 5))), ("slice", (of(9, 9), (0, 0), (2, 3), (1, 1))),
    ("pad", (of(3, 5), ((1, 2), (0, 4)), 0.0)), ("concat", ([of(2, 3), of(4, 3), of(1, 3)], 0)),
]  # fmt: skip


def count(value: Any) -> int:
    """The elements of a tensor, of the largest of several, or of a nested list."""
    if isinstance(value, Sequence):
        return max(map(count, value)) if isinstance(value, tuple) else sum(map(count, value))
    return getattr(value, "size", 1)


@every(("primitive", "args"), CALLS)
def test_a_primitive_costs_at_least_the_elements_that_it_makes(primitive: str, args: tuple[Any, ...]) -> None:
    elements, work = COSTS[primitive](*args)
    assert elements >= count(getattr(HOME, primitive)(*args)) and work >= 0


def test_every_primitive_with_a_cost_has_a_case() -> None:
    assert {primitive for primitive, _ in CALLS} == set(COSTS)


def test_an_evaluation_is_stopped_at_32_megabytes_and_within_the_models_budget() -> None:
    x = emberlet.asarray([1.0, 2.0])
    with budget.model_budget():
        with budget.counted() as home:
            home.unary("exp", x)
            home.full(((32 << 20) // 8,), 0.0, F)
        with pytest.raises(budget.Exceeded), budget.counted() as home:
            home.full(((32 << 20) // 8 + 1,), 0.0, F)
        with budget.counted(stored=100) as home:  # what the file contains costs nothing
            home.full(((32 << 20) // 8 + 800,), 0.0, F)
        with pytest.raises(budget.Exceeded, match="constants take too long"):
            for _ in range(1 << 20):
                with budget.counted() as home:
                    home.to_list(home.full((1 << 16,), 0.0, F))
