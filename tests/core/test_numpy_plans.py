"""What plans of NumPy calls do without, print and cut into blocks. The contract holds what they compute."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import blocks, compile, grids, lowering, memory, steps
from emberlet.host.numpy_backend.compile.memory import Buffers
from emberlet.host.numpy_backend.compile.steps import Step

FLOAT = np.dtype(np.float32)


def test_steps_are_printed() -> None:
    x = np.zeros((2, 3), np.float32)
    assert repr(Step(np.add, (x, np.float64(2), [x[0], "a"], F.zeros((1,), backend="numpy")), ())) == (
        "add(float32[2, 3], np.float64(2.0), [float32[3], 'a'], float32[1])"
    )
    assert repr(Step(steps.maximum, (np.zeros(()), int), ())) == "maximum(float64, int)"


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


def test_a_process_without_more_mappings_plans_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory.mmap, "mmap", refused)
    x = emberlet.asarray(np.arange(1 << 16, dtype=np.float32), backend="numpy")
    np.testing.assert_array_equal(np.asarray(compile(lambda x: x * 2, x)(x)), np.asarray(x) * 2)
