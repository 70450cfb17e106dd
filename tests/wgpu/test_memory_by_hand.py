"""Memory that is freed by hand where Python never frees objects (MicroPython), and what runs only there or in tabs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import BackendError
from emberlet.tensor import Tensor
from emberlet.wgpu_backend import backend, plan_file
from emberlet.wgpu_backend.run import runtime
from emberlet.wgpu_backend.run.buffers import Allocation
from emberlet.wgpu_backend.run.carried import Carried


@pytest.fixture
def freed(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The ids of the Allocations that are freed by a call of `free`, all of which stay alive."""
    found: list[int] = []
    kept: list[Allocation] = []
    allocate = gpu.device.allocate

    def keeping(nbytes: int, *rest: Any) -> Allocation:
        kept.append(allocate(nbytes, *rest))
        return kept[-1]

    def free(self: Allocation) -> None:
        found.append(id(self))

    monkeypatch.setattr(gpu.device, "allocate", keeping)
    with monkeypatch.context() as patched:
        patched.setattr(Allocation, "free", free)
        yield found
    for allocation in kept:
        allocation.free()


def tensor(gpu: Any, *values: float) -> Tensor:
    found: Tensor = gpu.from_list(list(values), dtypes.float32, (len(values),))
    return found


def test_a_run_without_finalizers_frees_its_numbers_and_temporaries_only(
    gpu: Any, freed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (backend, runtime):
        monkeypatch.setattr(module, "FINALIZERS", False)
    x = tensor(gpu, *range(1, 301))
    scaled = x * 2.5  # the number is passed to the kernel in a buffer
    gpu.realize(scaled)
    assert len(freed) == 1
    assert id(x.data.buffer) not in freed and id(scaled.data.buffer) not in freed
    del freed[:]
    two = gpu.realize(y := F.sum(F.softmax(F.reshape(x, (3, 100)), 1) @ F.reshape(x, (100, 3)), 1))
    assert two is None and freed  # temporaries between the kernels
    assert {id(t.data.buffer) for t in (x, y, scaled)}.isdisjoint(freed)
    np.testing.assert_allclose(gpu.to_list(scaled)[:2], [2.5, 5.0])


def test_a_run_with_finalizers_frees_nothing_itself(gpu: Any, freed: list[int]) -> None:
    x = tensor(gpu, *range(1, 301))
    gpu.realize(F.sum(F.softmax(F.reshape(x, (3, 100)), 1) @ F.reshape(x, (100, 3)), 1) * 2.5)
    assert freed == []


# -- states of a saved plan -------------------------------------------------------------------------------------------


@pytest.fixture
def saved(gpu: Any, tmp_path: Path) -> Iterator[plan_file.SavedPlan]:
    zeros = F.zeros((70,))
    narrow = F.zeros((70,), dtype="int8")
    plan_file.save(
        str(tmp_path / "a.plan"),
        lambda x, h, n: (x * 2 + h, h + x, n, F.astype(h, "int32"), h[:35] + x[:35]),
        zeros, zeros, narrow, inputs=["x", "h", "n"],
    )  # fmt: skip
    plan = plan_file.load(str(tmp_path / "a.plan"), gpu.device)
    yield plan
    plan.release()


def test_carried_states_of_two_callers_do_not_meet(gpu: Any, saved: Any) -> None:
    one, other = Carried(saved, [(1, 1)]), Carried(saved, [(1, 1)])
    assert one.wanted == [0, 2, 3, 4]
    x, n = np.arange(70, dtype="f4"), np.arange(70, dtype="i1")

    def run(carried: Any, value: Any) -> Any:
        found = asyncio.run(saved.program.run_async(saved.words([value, None, n]), carried))
        return np.asarray(saved.narrowed(found, [saved.outputs[i] for i in carried.wanted])[0]).reshape(-1)

    np.testing.assert_array_equal(run(one, x), x * 2)  # states begin as zeros
    np.testing.assert_array_equal(run(one, x), x * 3)
    np.testing.assert_array_equal(run(other, x), x * 2)
    np.testing.assert_array_equal(run(one, x), x * 4)
    one.reset()
    np.testing.assert_array_equal(run(one, x), x * 2)
    np.testing.assert_array_equal(run(other, x), x * 3)
    with pytest.raises(BackendError, match="input 1"):
        saved.program.run(saved.words([x, None, n]))
    buffers = [one.inputs[1], other.inputs[1]]
    for carried in (one, other):
        carried.free()
        assert carried.inputs == {} and not carried.out.staging
    assert [b.gpu for b in buffers] == [None, None]


@pytest.mark.parametrize("pair, said", [((1, 3), "cannot carry"), ((1, 4), "cannot carry"), ((2, 2), "16 bits")])
def test_a_state_and_its_result_have_one_kind(saved: Any, pair: tuple[int, int], said: str) -> None:
    with pytest.raises(BackendError, match=said):
        Carried(saved, [pair])
