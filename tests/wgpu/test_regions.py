"""The positions of a region that is assigned in place, and the words that are written there from the host."""

from __future__ import annotations

import itertools
import random
import struct
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.wgpu_backend.record.node import Node
from emberlet.wgpu_backend.run import assignment, storage
from support.rows import every


def positions(shape: tuple[int, ...], starts: list[int], sizes: list[int], steps: list[int]) -> list[int]:
    at, axes = assignment._axes(shape, starts, sizes, steps)
    return [
        at + sum(n * stride for n, (_, stride) in zip(place, axes, strict=True))
        for place in itertools.product(*(range(length) for length, _ in axes))
    ]


@every("seed", range(60))
def test_the_positions_of_a_region_are_those_of_a_slice(seed: int) -> None:
    choose = random.Random(seed)
    shape = tuple(choose.choice([1, 2, 3, 5, 8]) for _ in range(choose.randint(1, 4)))
    cut = []
    for d in shape:
        low = choose.randrange(d)
        cut.append(slice(low, choose.randint(low + 1, d), choose.choice([1, 1, 2])))
        if choose.random() < 0.3:
            cut[-1] = slice(low, None, -1)
    chosen = [range(d)[part] for d, part in zip(shape, cut, strict=True)]
    want = np.arange(int(np.prod(shape))).reshape(shape)[tuple(cut)].ravel().tolist()
    given = [r[0] for r in chosen], [len(r) for r in chosen], [r.step for r in chosen]
    assert positions(shape, *given) == want


@pytest.mark.parametrize(
    ("shape", "starts", "sizes", "steps", "wanted"),
    [
        ((4, 5), [0, 0], [4, 5], [1, 1], (0, [(20, 1)])),
        ((4, 5), [1, 0], [2, 5], [1, 1], (5, [(10, 1)])),
        ((4, 5), [1, 1], [2, 4], [1, 1], (6, [(2, 5), (4, 1)])),
        ((4, 5), [1, 2], [1, 1], [1, 1], (7, [(1, 1)])),
        ((4, 5), [0, 3], [4, 1], [1, 1], (3, [(4, 5)])),
        ((4, 1, 5), [0, 0, 0], [4, 1, 5], [1, 1, 1], (0, [(20, 1)])),
        ((4, 5), [3, 4], [4, 5], [-1, -1], (19, [(20, -1)])),
        ((4, 6), [0, 0], [4, 3], [1, 2], (0, [(12, 2)])),
        ((2, 3, 4), [0, 0, 0], [2, 2, 4], [1, 1, 1], (0, [(2, 12), (8, 1)])),
    ],
)  # fmt: skip
def test_neighboring_axes_of_a_region_are_merged(shape: Any, starts: Any, sizes: Any, steps: Any, wanted: Any) -> None:
    assert assignment._axes(shape, starts, sizes, steps) == wanted


def test_few_words_are_written_from_the_host() -> None:
    data = Node("data", (), b"12345678", dtypes.float32, (2,), "f32")
    turned = Node("reshape", (data,), None, dtypes.float32, (1, 2), "f32")
    assert assignment._words(data, "f32") == assignment._words(turned, "f32") == b"12345678"
    assert assignment._words(data, "i32") is None
    assert assignment._words(Node("input", (), 0, dtypes.float32, (2,), "f32"), "f32") is None
    for value, dtype, word in [(1.5, dtypes.float32, "f32"), (-2, dtypes.int32, "i32"), (True, dtypes.bool, "u32")]:
        full = Node("full", (), value, dtype, (3,), word)
        assert assignment._words(full, word) == struct.pack("<I", storage.word_of(value, dtype)) * 3
    for count, there in [(assignment.LONGEST, True), (assignment.LONGEST + 1, False)]:
        long = Node("full", (), 0.0, dtypes.float32, (count,), "f32")
        assert (assignment._words(long, "f32") is not None) == there
    assert (assignment.LONGEST, assignment.AXES, assignment.WORKGROUP, assignment.MAX_GROUPS) == (16384, 5, 64, 65535)


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        (True, "bool", 1), (False, "bool", 0), (2.0, "bool", 1), (1.0, "float32", 0x3F800000),
        (-0.0, "float32", 1 << 31), (1e300, "float32", 0x7F800000),
        (-1, "int32", 0xFFFFFFFF), (7, "uint8", 7), (-2, "int8", 0xFFFFFFFE),
        (1 << 31, "uint32", 1 << 31),
    ],
)  # fmt: skip
def test_a_number_as_a_word(values: Any, dtype: str, wanted: int) -> None:
    assert storage.word_of(values, dtypes.dtype(dtype)) == wanted


def test_how_each_dtype_is_stored() -> None:
    def told(dtype: Any) -> tuple[Any, ...]:
        held = storage.word(dtype)
        return held, storage.packed(dtype), storage.register(dtype), storage.rounding(dtype)

    wanted: dict[str, tuple[Any, ...]] = {
        "float32": ("f32", None, "f32", None), "float64": ("f32", None, "f32", None),
        "float16": ("f32", None, "f32", ("round_f16", None)), "bfloat16": ("f32", None, "f32", ("round_bf16", None)),
        "int8": ("i32", "i8", "i32", ("wrap_i", 8)), "uint8": ("u32", "u8", "u32", ("wrap_u", 8)),
        "int16": ("i32", None, "i32", ("wrap_i", 16)), "uint16": ("u32", None, "u32", ("wrap_u", 16)),
        "int32": ("i32", None, "i32", None), "uint32": ("u32", None, "u32", None),
        "int64": ("i32", None, "i32", None), "uint64": ("u32", None, "u32", None),
        "bool": ("u32", "u8", "bool", None), "int4": ("i32", None, "i32", ("wrap_i", 4)),
        "uint4": ("u32", None, "u32", ("wrap_u", 4)), "float8_e4m3fn": (None, None, None, None),
    }  # fmt: skip
    assert {name: told(dtypes.dtype(name)) for name in wanted if name in dtypes.BY_NAME} == {
        name: value for name, value in wanted.items() if name in dtypes.BY_NAME
    }
    sizes = [
        (word, count, storage.nbytes(word, count)) for word in ("f32", "i8", "f16") for count in (0, 1, 2, 3, 4, 5)
    ]
    assert [n for _, _, n in sizes] == [0, 4, 8, 12, 16, 20, 0, 4, 4, 4, 4, 8, 0, 4, 4, 8, 8, 12]


@pytest.mark.parametrize("plain", [False, True])
def test_the_extremes_of_words(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if plain:
        monkeypatch.setattr(storage, "_numpy", lambda: None)
    for word, values, kind in [("i32", [5, -3, 9], "i"), ("u32", [5, 1 << 31, 9], "I"), ("i8", [-128, 4], "b"),
                               ("u8", [255, 4], "B")]:  # fmt: skip
        data = struct.pack(f"<{len(values)}{kind}", *values) + struct.pack(f"<{kind}", 0)
        assert storage.extremes(data, word, len(values)) == (min(values), max(values))
