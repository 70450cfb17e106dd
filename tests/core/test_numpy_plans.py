"""Plans of NumPy calls: buffers that are needed at once never share memory, and chains run block by block compute what
they compute whole."""

from __future__ import annotations

import random
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import blocks, compile, grids, lowering, memory, steps
from emberlet.host.numpy_backend.compile.memory import Buffers, Memory
from emberlet.host.numpy_backend.compile.steps import Step
from support.rows import every

FLOAT = np.dtype(np.float32)


def made(*needs: tuple[int, int, int]) -> tuple[Buffers, list[Any]]:
    """Buffers of (bytes, first step, last step)."""
    buffers = Buffers()
    for size, first, last in needs:
        buffers.new((size,), np.dtype(np.uint8))
        buffers.all[-1].first, buffers.all[-1].last = first, last
    return buffers, buffers.all


# (bytes, first, last) of each buffer -> their offsets, and the size of the arena.
ARRANGED: list[tuple[list[tuple[int, int, int]], list[int], int]] = [
    ([(64, 0, 1), (64, 1, 2)], [0, 64], 128),
    ([(64, 0, 1), (64, 2, 3)], [0, 0], 64),
    ([(65, 0, 1), (1, 0, 1)], [0, 128], 192),
    ([(1, 0, 1), (200, 0, 1)], [256, 0], 320),
    ([(256, 0, 1), (64, 2, 3), (64, 2, 3)], [0, 0, 64], 256),
    ([(64, 0, 1), (64, 0, 1), (128, 2, 3)], [0, 64, 0], 128),
    ([(64, 0, 1), (64, 0, 3), (128, 2, 3)], [0, 64, 128], 256),
    ([(64, 0, 3), (64, 0, 1), (128, 2, 3)], [0, 64, 64], 192),
    ([(128, 0, 1), (64, 0, 5), (64, 2, 2), (64, 2, 5), (64, 3, 5)], [0, 128, 0, 64, 0], 192),
    ([(64, -1, -1), (64, 0, 1)], [-1, 0], 64),
    ([], [], 0),
]


@pytest.mark.parametrize(("needs", "offsets", "end"), ARRANGED)
def test_buffers_take_the_first_gap_that_is_large_enough(needs: Any, offsets: Any, end: int) -> None:
    buffers, every = made(*needs)
    assert buffers.arrange() == end
    assert [b.offset for b in every] == offsets


@every("seed", range(30))
def test_buffers_that_are_needed_at_once_lie_apart(seed: int) -> None:
    draw = random.Random(seed)
    needs = []
    for _ in range(draw.randint(1, 25)):
        first = draw.randint(0, 20)
        needs.append((draw.choice([1, 63, 64, 65, 128, 300]) if seed % 2 else 100, first, first + draw.randint(0, 8)))
    buffers, every = made(*needs)
    end = buffers.arrange()
    size = {id(b): -(-b.nbytes // 64) * 64 for b in every}
    for i, a in enumerate(every):
        assert a.offset % 64 == 0 and 0 <= a.offset <= end - size[id(a)]
        for b in every[:i]:
            if a.first <= b.last and b.first <= a.last:
                assert a.offset + size[id(a)] <= b.offset or b.offset + size[id(b)] <= a.offset
    peak = max(sum(size[id(b)] for b in every if b.first <= step <= b.last) for step in range(30))
    assert end == peak if not seed % 2 else peak <= end <= sum(size.values())


def test_buffers_with_a_fill_share_memory_with_those_of_their_kind_at_other_times() -> None:
    buffers = Buffers()
    for shape, fill, key, first, last in (
        ((2, 3), 0, None, 0, 3), ((2, 3), 0, None, 3, 5), ((2, 3), 0, None, 4, 9), ((2, 3), 1, None, 7, 9),
        ((3, 2), 0, None, 7, 9), ((2, 3), 0, "other", 7, 9), ((2, 3), 0, None, 10, 12), ((2, 3), 0, None, -1, -1),
    ):  # fmt: skip
        buffers.new(shape, FLOAT, fill, key)
        buffers.all[-1].first, buffers.all[-1].last = first, last
    found = [[buffers.all.index(b) for b in group] for group in buffers.filled()]
    assert sorted(found) == [[0, 2, 6], [1], [3], [4], [5]]
    assert buffers.arrange() == 0
    assert Memory(buffers, 0).nbytes == 5 * 24


def test_a_view_of_a_buffer_keeps_its_place_in_the_arena() -> None:
    buffers = Buffers()
    a, b = buffers.new((4, 6), FLOAT), buffers.new((5,), FLOAT)
    filled = buffers.new((2, 3), FLOAT, 7.0)
    for buffer in buffers.all:
        buffer.first, buffer.last = 0, 1
    constant = np.ones(3, np.float32)
    end = buffers.arrange()
    room = Memory(buffers, end)
    assert room.nbytes == end + 24 == 128 + 64 + 24
    found, other = room.relocated(a), room.relocated(b)
    found[...] = np.arange(24).reshape(4, 6)
    other[...] = -1
    assert found.ctypes.data % 64 == 0 and other.ctypes.data % 64 == 0
    np.testing.assert_array_equal(room.relocated(a[1:, ::-2]), found[1:, ::-2])
    np.testing.assert_array_equal(room.relocated(a.T[2]), found[:, 2])
    assert (
        room.relocated(filled).tolist() == [[7.0] * 3] * 2 and room.relocated(filled[:, 1:]).tolist() == [[7.0] * 2] * 2
    )
    assert room.relocated(constant) is constant and room.relocated("text") == "text"
    pair = room.relocated([a[0], (b, 3)])
    assert np.shares_memory(pair[0], found) and np.shares_memory(pair[1][0], other) and pair[1][1] == 3
    assert type(pair) is list and type(pair[1]) is tuple and room.relocated(a[:0]).shape == (0, 6)
    x = F.zeros((4, 6), backend="numpy")
    moved = room.relocated(type(x)(a, x.dtype, x.shape, x.backend))
    assert np.shares_memory(moved.data, found)
    assert not np.shares_memory(Memory(buffers, end).relocated(a), found)
    assert buffers.of(a[1:].T) is buffers.all[0] and buffers.of(constant) is None
    assert memory.owner(a[1:]) == memory.owner(a) != memory.owner(b)


def test_a_buffer_is_needed_from_its_first_step_to_its_last() -> None:
    buffers = Buffers()
    given, first, middle, result, unused = (buffers.new((2,), FLOAT) for _ in range(5))
    groups = [
        [Step(np.exp, (given, first), (first,))],
        [Step(np.add, (first, [middle]), (middle,)), Step(np.exp, (middle,), (middle,))],
        [Step(np.add, (middle[:1], result), (result,))],
        [Step(np.negative, (1.0,), (first[1:],))],
    ]
    steps.lifetimes(groups, buffers, [given], [result])
    assert [(b.first, b.last) for b in buffers.all] == [(0, 1), (1, 4), (2, 3), (3, 5), (-1, -1)]
    assert unused is buffers.all[4].array


def test_steps_are_printed() -> None:
    x = np.zeros((2, 3), np.float32)
    assert repr(Step(np.add, (x, np.float64(2), [x[0], "a"], F.zeros((1,), backend="numpy")), ())) == (
        "add(float32[2, 3], np.float64(2.0), [float32[3], 'a'], float32[1])"
    )
    assert repr(Step(steps.maximum, (np.zeros(()), int), ())) == "maximum(float64, int)"


def chained(buffers: Buffers, shape: tuple[int, ...], draw: random.Random, count: int) -> tuple[list[Step], list[Any]]:
    """Random elementwise steps over buffers of one shape, and the buffers."""
    values = [buffers.new(shape, FLOAT) for _ in range(draw.randint(1, 4))]
    row = np.random.default_rng(draw.randrange(99)).normal(size=shape[-1:]).astype(np.float32)
    column = np.random.default_rng(1).normal(size=(shape[0], *(1,) * (len(shape) - 1))).astype(np.float32)
    made: list[Step] = []
    for _ in range(count):
        out, a, b = draw.choice(values), draw.choice(values), draw.choice([*values, row, column, np.float32(0.5)])
        if draw.random() < 0.15:
            a = a[::-1]  # another block's elements
        made.append(Step(np.add, (a, b, out), (out,), out))
        made.append(Step(np.tanh, (out, out), (out,), out))
    return made, values


@pytest.mark.parametrize("block", [1, 40, 100, 1000])
@pytest.mark.parametrize("seed", range(12))
def test_chains_in_blocks_compute_what_they_compute_whole(
    monkeypatch: pytest.MonkeyPatch, seed: int, block: int
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", block)
    monkeypatch.setattr(blocks, "LONG", 8)
    draw = random.Random(seed)
    shape = draw.choice([(6, 8), (3, 4, 5), (1, 7, 6), (24,), (2, 1, 9)])
    buffers = Buffers()
    made, values = chained(buffers, shape, draw, draw.randint(1, 7))
    kept = draw.sample(values, draw.randint(1, len(values)))
    start = [np.random.default_rng(i).normal(size=shape).astype(np.float32) for i in range(len(values))]

    def run(parts: list[Step]) -> list[Any]:
        for value, first in zip(values, start, strict=True):
            value[...] = first
        for step in parts:
            step.function(*step.args)
        return [value.copy() for value in kept]

    expected = run(made)
    read_first = set()  # what is read before it is written comes from outside, and so is needed whole
    written: set[int] = set()
    for step in made:
        read_first |= {id(buffers.of(a)) for a in step.args[:-1] if isinstance(a, np.ndarray)} - written
        written.add(id(buffers.of(step.args[-1])))
    outside = [v for v in values if id(buffers.of(v)) in read_first]
    groups = blocks.grouped(made, buffers, kept + outside)
    assert sum(len(g) == 1 for g in groups) <= len(made)
    for found, want in zip(run([step for group in groups for step in group]), expected, strict=True):
        np.testing.assert_array_equal(found, want)


# Shape, bytes of a block -> the shapes of the blocks that two steps become.
CUTS: list[tuple[tuple[int, ...], int, list[tuple[int, ...]]]] = [
    ((6, 8), 32, [(1, 8)] * 6),
    ((6, 8), 64, [(2, 8)] * 3),
    ((6, 8), 130, [(3, 8)] * 2),
    ((6, 8), 191, [(3, 8)] * 2),
    ((6, 8), 192, [(6, 8)]),
    ((7, 8), 96, [(3, 8), (3, 8), (1, 8)]),
    ((6, 8), 16, [(1, 4), (1, 4)] * 6),
    ((6, 8), 1, [(1, 1)] * 48),
    ((2, 3, 4), 32, [(1, 2, 4), (1, 1, 4)] * 2),
    ((1, 6, 8), 64, [(1, 2, 8)] * 3),
    ((10,), 12, [(3,), (3,), (3,), (1,)]),
]


@pytest.mark.parametrize(("shape", "block", "cuts"), CUTS)
def test_blocks_are_of_about_the_same_size(monkeypatch: pytest.MonkeyPatch, shape: Any, block: int, cuts: Any) -> None:
    monkeypatch.setattr(blocks, "BLOCK", block)
    monkeypatch.setattr(blocks, "LONG", 4)
    buffers = Buffers()
    x, inner, out = (buffers.new(shape, FLOAT) for _ in range(3))
    made = [Step(np.exp, (x, inner), (inner,), inner), Step(np.negative, (inner, out), (out,), out)]
    ((*found,),) = blocks.grouped(made, buffers, [x, out])
    assert [step.over.shape for step in found[1::2]] == cuts == [step.over.shape for step in found[::2]]
    if len(cuts) > 1:  # what lies between the steps takes the memory of one block
        assert {id(buffers.of(step.over)) for step in found[::2]} == {id(buffers.all[3])}
        assert buffers.all[3].nbytes == 4 * np.prod(cuts[0])
    whole = blocks.grouped(made, buffers, [x, out, inner])
    assert all(buffers.of(step.args[0]) in buffers.all[:3] for step in whole[0])


def chain_ends(made: list[Step], buffers: Buffers) -> list[int]:
    return [len(g) for g in blocks.grouped(made, buffers, [b.array for b in buffers.all])]


def test_a_chain_ends_where_a_block_would_read_what_another_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LONG", 96)
    buffers = Buffers()
    x, y, z = (buffers.new((4, 6), FLOAT) for _ in range(3))
    small, wide = buffers.new((4, 5), FLOAT), buffers.new((4, 6), np.dtype(np.complex128))
    half = buffers.new((4, 6), np.dtype(np.float64))

    def step(*args: Any) -> Step:
        return Step(np.add, args, (args[-1],), args[-1])

    assert chain_ends([step(x, x, y), step(y, x, z)], buffers) == [2]
    assert chain_ends([step(x, x, y), step(y[::-1], x, z)], buffers) == [1, 1]  # y was just written
    assert chain_ends([step(x, x, y), step(x[::-1], x, z)], buffers) == [2]
    assert chain_ends([step(x[::-1], x, y), step(y, y, x)], buffers) == [1, 1]  # x was read backwards
    assert chain_ends([step(x, x, y), step(y, x, y[::-1])], buffers) == [1, 1]
    assert chain_ends([step(x, x, y), step(z, x, y[::-1])], buffers) == [1, 1]  # both write y
    assert chain_ends([step(x, x, y), step(z, x, y)], buffers) == [2]
    assert chain_ends([step(x, y, y), step(y, y, x)], buffers) == [2]
    assert chain_ends([step(x[::-1], 1.0, x)], buffers) == [1]
    assert chain_ends([step(x, x, y), step(small, small, small)], buffers) == [1, 1]
    assert chain_ends([step(x, x, y), step(y, y, half), step(y, y, wide)], buffers) == [2, 1]
    assert chain_ends([step(x, x, y), Step(np.sum, (y,), ()), step(y, y, z), step(y, z, x)], buffers) == [1, 1, 2]
    monkeypatch.setattr(blocks, "LONG", 97)
    assert chain_ends([step(x, x, y), step(y, x, z)], buffers) == [1, 1]


def test_the_small_functions_of_plans() -> None:
    x, out = np.arange(6.0).reshape(2, 3), np.zeros((2, 3))
    lowering.copy_broadcast(x[0], out)
    assert out.tolist() == [[0, 1, 2]] * 2
    lowering.copy_where(x > 3, 9.0, out)
    assert out.tolist() == [[0, 1, 2], [0, 9, 9]]
    grids.copy_cast(np.array([300, -1]), counts := np.zeros(2, np.uint8))
    assert counts.tolist() == [44, 255]
    lowering.arange_into(3, -2, 4, counts := np.zeros(4, np.int32))
    assert counts.tolist() == [3, 1, -1, -3]
    for indices, axis in ((np.array([2, -1, 0]), 1), (np.array([[1], [-2]]), 0), (np.array(-3), 1), (np.array(1), 0)):
        expected = np.take(x, indices, axis)
        lowering.take_into(x, indices, axis, found := np.empty(expected.shape))
        np.testing.assert_array_equal(found, expected)
    lowering.take_into(x, np.zeros(0, int), 1, np.empty((2, 0)))
    for index in (3, -4):
        with pytest.raises(IndexError, match=r"axis 1.*length 3"):
            lowering.take_into(x, np.array([0, index]), 1, np.empty((2, 2)))
    assert lowering.reshaped(x.T, (6,)) is None and lowering.reshaped(x, (3, 2)).base is not None
    assert len(list(steps.arrays_in([x, [x, (x,)], 3, F.zeros((1,), backend="numpy")]))) == 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("step", [1, 2, 4, 8])
def test_numbers_are_negated_whatever_lies_between_them(dtype: Any, step: int) -> None:
    x = emberlet.asarray(np.arange(1, 81).reshape(2, 40).astype(dtype), backend="numpy")

    def model(x: Any) -> Any:
        part = x[:, ::step]
        return F.stack([-part, part, -part], axis=-1)

    want = np.asarray(model(x))
    assert (want[..., 0] == -np.arange(1, 81).reshape(2, 40)[:, ::step]).all()
    np.testing.assert_array_equal(np.asarray(compile(model, x)(x)), want)


def test_a_process_without_more_mappings_plans_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory.mmap, "mmap", refused)
    x = emberlet.asarray(np.arange(1 << 16, dtype=np.float32), backend="numpy")
    np.testing.assert_array_equal(np.asarray(compile(lambda x: x * 2, x)(x)), np.asarray(x) * 2)


@pytest.mark.parametrize("function", [
    lambda x: F.max_pool2d(x, 1, 3), lambda x: F.max_pool2d(x, 1, 1), lambda x: F.max_pool2d(x, (1, 1), (1, 2)),
    lambda x: x[:, 1:], lambda x: F.pad(x, 0), lambda x: F.sum(x, axis=()), lambda x: F.tile(x, (1,)),
])  # fmt: skip
def test_a_compiled_model_returns_memory_of_its_own(function: Any) -> None:
    array = np.random.default_rng(0).random((1, 2, 7, 7), np.float32)
    model = compile(function, backend="numpy")
    for _ in range(3):
        found = np.asarray(model(emberlet.asarray(array, backend="numpy")))
        kept, given = found.copy(), array.copy()
        array[...] = 9
        assert np.array_equal(found, kept)
        array[...] = given
        found[...] = -1
        assert np.array_equal(array, given)
