"""What the budget of evaluation counts for each primitive: the elements of its largest tensor, and further work."""

from __future__ import annotations

from math import prod
from types import SimpleNamespace
from typing import Any

import emberlet
import pytest
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.codegen import budget
from emberlet.codegen.budget import COSTS, LISTED, PRODUCTS
from support.rows import every


def of(*shape: int) -> Any:
    """A tensor of which only the size is asked."""
    return SimpleNamespace(shape=shape, size=prod(shape))


CASES: dict[str, tuple[tuple[Any, ...], tuple[int, int]]] = {
    "from_bytes": ((b"", dtypes.int8, (3, 5)), (15, 0)),
    "from_list of numbers": (([1.0] * 6, dtypes.float32, (2, 3)), (6, 6 * LISTED)),
    "from_list of texts": ((["ab", "cde"], dtypes.string, (2,)), (64 * 5, 2 * LISTED)),
    "from_list of empty texts": (([""] * 70, dtypes.string, (70,)), (70, 70 * LISTED)),
    "to_list": ((of(2, 7),), (14, 14 * LISTED)),
    "full": (((2, 7), 1.0, dtypes.float32), (14, 0)),
    "arange": ((3, 2, 11, dtypes.int64), (11, 0)),
    "random_bits": (((4, 3), 1, 2), (12, 0)),
    "unary": (("exp", of(3, 5)), (15, 0)),
    "binary": (("add", of(3, 1), of(7)), (21, 0)),
    "binary of another rank": (("add", of(5), of(2, 3, 1)), (30, 0)),
    "binary of nothing": (("add", of(3, 0), of(1, 1)), (0, 0)),
    "where": ((of(2, 1, 1), of(3, 1), of(5)), (30, 0)),
    "where of one shape": ((of(4), of(4), of(4)), (4, 0)),
    "cast": ((of(3, 5), dtypes.int8, True), (15, 0)),
    "bitcast": ((of(3, 5), dtypes.int32), (15, 0)),
    "reduce": (("sum", of(3, 5), (0,), True), (15, 0)),
    "argreduce": (("argmax", of(3, 5), 0, True), (15, 0)),
    "cumulative": (("sum", of(3, 5), 0), (15, 0)),
    "sort": ((of(3, 5), 0, True), (15, 16 * 15)),
    "matmul": ((of(3, 32), of(32, 5)), (15, 15 * 32 // PRODUCTS)),
    "matmul of stacks": ((of(2, 1, 3, 16), of(7, 16, 5)), (2 * 7 * 15, 2 * 7 * 15 * 16 // PRODUCTS)),
    "matmul of short rows": ((of(3, 5), of(5, 2)), (6, 6 * 5 // PRODUCTS)),
    "matmul of no matrices": ((of(0, 3, 16), of(1, 16, 5)), (0, 0)),
    # 9 x 11 with margins; a window of 3 x 2 with a gap, 2 and 3 apart: 3 x 4 positions
    "conv": (
        (of(2, 6, 7, 8), of(60, 3, 3, 2), None, (2, 3), ((1, 1), (1, 2)), (2, 1), 2),
        (2 * 60 * 3 * 4, 2 * 6 * 9 * 11 + 2 * 6 * 3 * 4 * 6 * (1 + 60 // 2 // PRODUCTS)),
    ),
    "conv with much padding": (
        (of(1, 1, 1), of(1, 1, 1), None, (100,), ((500, 499),), (1,), 1),
        (1000, 1000 + 10 * (1 + 0)),
    ),
    "conv with large windows": (
        (of(1, 4, 90), of(2, 4, 60), None, (1,), ((0, 0),), (1,), 1),
        (4 * 31 * 60, 4 * 90 + 4 * 31 * 60),
    ),
    "conv of huge windows": (
        (of(1, 8, 9000), of(2, 8, 4000), None, (1,), ((0, 0),), (1,), 1),
        (1 << 21, 8 * 9000 + 8 * 5001 * 4000),
    ),
    "conv of a window that does not fit": (
        (of(1, 1, 4), of(1, 1, 7), None, (1,), ((0, 0),), (1,), 1), (4, 4)),
    "pool": (("max", of(2, 3, 7, 8), (3, 2), (2, 3), ((1, 1), (1, 2)), (2, 1)), (2 * 3 * 9 * 11, 2 * 3 * 3 * 4 * 6)),
    "pool of many places": (("max", of(1, 1, 8), (8,), (1,), ((7, 7),), (1,)), (22, 15 * 8)),
    "take": ((of(3, 5, 7), of(2, 11), 1), (3 * 22 * 7, 0)),
    "gather": ((of(3, 5), of(2, 5), 0), (10, 0)),
    "scatter of few": ((of(3, 5), of(2, 5), of(2, 5), 0, "add"), (15, 0)),
    "scatter of many": ((of(3, 5), of(9, 5), of(9, 5), 0, "add"), (45, 0)),
    "nonzero": ((of(3, 5, 2),), (90, 0)),
    "nonzero of a scalar": ((of(),), (1, 0)),
    "reshape": ((of(3, 5), (15,)), (15, 0)),
    "expand": ((of(1, 5), (4, 5)), (20, 0)),
    "slice": ((of(9, 9), (0, 0), (2, 3), (1, 1)), (6, 0)),
    "pad": ((of(3, 5), ((1, 2), (0, 4)), 0.0), (6 * 9, 0)),
    "concat": (([of(2, 3), of(4, 3), of(1, 3)], 0), (21, 0)),
}  # fmt: skip


@every("case", CASES)
def test_a_primitive_costs_what_it_makes_and_reads(case: str) -> None:
    args, cost = CASES[case]
    assert COSTS[case.split()[0]](*args) == cost


def test_every_primitive_with_a_cost_has_a_case() -> None:
    assert {case.split()[0] for case in CASES} == set(COSTS)


def test_the_limits_are_a_tensor_of_32_megabytes_and_tenths_of_a_second() -> None:
    assert (budget.ELEMENTS * 8, budget.WORK, budget.MODEL, budget.SECONDS) == (32 << 20, 8 << 22, 64 << 22, 2.0)
    assert (budget.EACH, budget.CALL, budget.LISTED, budget.PRODUCTS) == (4096, 2048, 16, 16)


def test_the_budget_of_one_evaluation_is_taken_from_that_of_the_model() -> None:
    x = emberlet.asarray([1.0, 2.0])
    with budget.model_budget():
        left = budget._model.get()
        assert left == [budget.MODEL]
        with budget.counted() as home:
            assert home.name == get_backend().name
            assert (home.budget.elements, home.budget.work) == (budget.ELEMENTS, budget.WORK)  # type: ignore[attr-defined]
            home.unary("exp", x)
            home.to_list(x)
            spent = 2 * budget.CALL + 2 + 2 + 2 * LISTED
            assert home.budget.work == budget.WORK - spent  # type: ignore[attr-defined]
        assert left == [budget.MODEL - budget.EACH - spent]
        with budget.model_budget():  # part of the outer one
            assert budget._model.get() is left
        with budget.counted(100) as home:
            assert home.budget.elements == budget.ELEMENTS + 800  # type: ignore[attr-defined]
            assert home.budget.work == budget.WORK + 6400  # type: ignore[attr-defined]
            home.unary("exp", x)
        # what the file contains costs nothing
        assert left == [budget.MODEL - 2 * budget.EACH - spent]
        with pytest.raises(budget.Exceeded), budget.counted() as home:
            home.full((budget.ELEMENTS + 1,), 0.0, dtypes.float32)
        left[0] = budget.EACH
        with budget.counted():
            pass
        assert left == [0]
        with pytest.raises(budget.Exceeded, match="constants take too long"), budget.counted():
            pass
    assert budget._model.get() is None
    assert budget._done.get() is None


def test_what_is_small_is_computed_once_for_each_key() -> None:
    calls: list[int] = []

    def evaluate() -> int:
        calls.append(1)
        return len(calls)

    assert [budget.remembered("a", None, evaluate, lambda n: True) for _ in range(2)] == [1, 2]
    with budget.model_budget():
        given = [("a", True), ("a", True), ("b", False), ("b", False), ("a", False), ("b", True), ("b", True)]
        found = [budget.remembered(key, None, evaluate, lambda n, small=small: small) for key, small in given]  # type: ignore[misc]
        assert found == [3, 3, 4, 5, 3, 6, 6]
    with budget.model_budget():
        assert budget.remembered("a", None, evaluate, lambda n: True) == 7
