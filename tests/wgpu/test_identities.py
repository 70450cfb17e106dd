"""The number that changes nothing in a reduction, in each type of WGSL."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet.wgpu_backend.lower.reductions import identity
from emberlet.wgpu_backend.lower.tiles import Tile


def test_a_tile_is_made_of_its_numbers() -> None:
    assert Tile(2, 4, 1, 8).numbers() == [2, 4, 1, 8, 0, 1]
    assert Tile(*[0, 0, 0, 0, 2]).numbers() == [0, 0, 0, 0, 2, 1]


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("sum", [0, 0, 0, 0]), ("any", [0, 0, 0, 0]), ("prod", [1, 1, 1, 1]), ("all", [1, 1, 1, 1]),
        *((op, [-(2**31), 0, False, -float("inf")]) for op in ("max", "argmax")),
        *((op, [2**31 - 1, 2**32 - 1, True, float("inf")]) for op in ("min", "argmin")),
    ],
)  # fmt: skip
def test_what_changes_nothing_in_a_reduction(op: str, wanted: list[Any]) -> None:
    found = [identity(op, kind) for kind in ("i32", "u32", "bool", "f32")]
    assert found == wanted and [type(n) for n in found] == [type(n) for n in wanted]
