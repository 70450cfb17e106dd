"""The six best tiles of products and convolutions for each class of device, by the cost model.

A worse tile computes the same, so no other test would notice. `UPDATE_SNAPSHOTS=1 pytest` on this file records them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from emberlet import dtypes
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.lower.contraction import problem
from emberlet.wgpu_backend.lower.reductions import identity
from emberlet.wgpu_backend.lower.tiles import CLASSES, Tile, candidates, choose, cost
from support.recorded import assert_recorded
from support.work.counting import digest

RECORDED = Path(__file__).with_name("tile_candidates.txt")

PRODUCTS = [
    (1, 16, 4), (1, 64, 64), (1, 1000, 1000), (1, 4096, 11008), (2, 8, 2), (3, 30, 7), (4, 4, 4), (7, 16, 15),
    (8, 8, 8), (16, 15, 16), (16, 64, 16), (31, 64, 33), (32, 32, 32), (64, 1, 64), (64, 64, 63), (128, 128, 128),
    (197, 192, 768), (256, 256, 256), (512, 4, 512), (512, 2000, 3), (1000, 1000, 1000), (1024, 64, 4096),
    (2048, 2048, 2048),
]  # fmt: skip
CONVOLUTIONS = [
    ((1, 3, 32, 32), (16, 3, 3, 3), 1), ((1, 64, 14, 14), (64, 64, 1, 1), 1), ((1, 64, 14, 14), (64, 64, 3, 3), 1),
    ((2, 32, 20, 21), (32, 1, 3, 3), 32), ((1, 32, 9, 9), (48, 8, 3, 3), 4), ((1, 3, 64, 64), (32, 3, 7, 7), 1),
    ((1, 256, 56, 56), (256, 256, 3, 3), 1), ((1, 8, 300), (16, 8, 5), 1), ((1, 4, 9, 9, 9), (8, 4, 3, 3, 3), 1),
]  # fmt: skip


def product(m: int, k: int, n: int, lead: tuple[int, ...] = ()) -> Any:
    backend = WgpuBackend(planning=True)
    a, b = (backend.full(shape, 1.0, dtypes.float32) for shape in ((*lead, m, k), (*lead, k, n)))
    return problem(backend.matmul(a, b).data)


def convolution(x: tuple[int, ...], w: tuple[int, ...], groups: int) -> Any:
    backend = WgpuBackend(planning=True)
    n = len(x) - 2
    given = (backend.full(shape, 1.0, dtypes.float32) for shape in (x, w))
    return problem(backend.conv(*given, None, (1,) * n, ((0, 0),) * n, (1,) * n, groups).data)


def described(what: Any) -> str:
    lines = []
    for device_class, kind in CLASSES.items():
        found = candidates(what, device_class)
        numbers = [tile.numbers() for tile in found]
        assert choose(what, device_class).numbers() == numbers[0]
        assert [tile.numbers() for tile in candidates(what, device_class, 2)] == numbers[:2]
        costs = [
            float(f"{cost(what, rows, columns, unroll, split, kind):.9g}")
            for rows, columns, unroll, split in [(1, 1, 1, 1), (4, 4, 1, 1), (8, 8, 4, 1), (9, 8, 2, 1), (1, 4, 1, 8)]
        ]
        every = [tile.numbers() for tile in candidates(what, device_class, 1000)]
        lines.append(f"{device_class}: {len(every)} from {numbers[0]}, {digest([every, [repr(c) for c in costs]])}")
    return "\n".join(lines)


@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_products_have_the_recorded_tiles(sizes: tuple[int, int, int]) -> None:
    assert_recorded(RECORDED, f"product {sizes}", described(product(*sizes)))


@pytest.mark.parametrize("lead", [(2,), (3, 50), (300,)], ids=str)
def test_batches_of_products_have_the_recorded_tiles(lead: tuple[int, ...]) -> None:
    assert_recorded(RECORDED, f"{lead} products", described(product(16, 24, 40, lead)))


@pytest.mark.parametrize(("x", "w", "groups"), CONVOLUTIONS, ids=str)
def test_convolutions_have_the_recorded_tiles(x: tuple[int, ...], w: tuple[int, ...], groups: int) -> None:
    assert_recorded(RECORDED, f"convolution of {x} by {w} in {groups}", described(convolution(x, w, groups)))


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
