"""Memory that is freed by hand where Python never frees objects (MicroPython), and what runs only there or in tabs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import BackendError, ShapeError
from emberlet.tensor import Tensor
from emberlet.wgpu_backend import WgpuBackend, backend, device, plan_file, resident
from emberlet.wgpu_backend.awaited_steps import AwaitedSteps
from emberlet.wgpu_backend.run import runtime
from emberlet.wgpu_backend.run.buffers import Allocation
from emberlet.wgpu_backend.run.carried import Carried
from emberlet.wgpu_backend.run.stepwise import measure


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


# -- steps that are awaited -------------------------------------------------------------------------------------------


class Steps:
    """AwaitedSteps of a model with a weight, one growing state and a fixed one."""

    def __init__(self, gpu: Any, forward: Any, entries: list[tuple[int, int, int | None]]) -> None:
        states = [SimpleNamespace(input=i, output=o, axis=axis) for i, o, axis in entries]
        self.steps = AwaitedSteps(SimpleNamespace(forward=forward), states, gpu)

    def __call__(self, *arguments: Any, check: Any = None) -> list[Any]:
        found: list[Any] = asyncio.run(self.steps.step_async(list(arguments), check))
        return found


def test_a_step_reads_its_outputs_and_frees_what_only_it_has_used(gpu: Any, freed: list[int]) -> None:
    weight = tensor(gpu, 1.0, 2.0)
    gpu.realize(weight)
    run = Steps(gpu, lambda x, h: (x * weight, h + x, 7, weight, x), [(1, 1, None)])
    x, h = tensor(gpu, 3.0, 4.0), tensor(gpu, 1.0, 1.0)
    y, after, number, same, given = run(x, h)
    assert number == 7
    for got, want in [(y, [3.0, 8.0]), (after, [4.0, 5.0]), (same, [1.0, 2.0]), (given, [3.0, 4.0])]:
        assert gpu.to_list(got) == want
    assert y.data.op == same.data.op == given.data.op == "data"  # read, not on the GPU
    assert after.data.op == "buffer" and x.data.op == "data"  # states stay there; uploads are of a copy
    assert len(freed) == 2  # the result y, and the copy of x; neither the weight nor the states
    assert not {id(weight.data.buffer), id(after.data.buffer)} & set(freed)


def test_a_model_with_one_result_and_no_states(gpu: Any, freed: list[int]) -> None:
    run = Steps(gpu, lambda x: x + 1, [(0, 1, None)])
    (y,) = run(tensor(gpu, 1.0))
    assert gpu.to_list(y) == [2.0]
    assert run.steps.step([tensor(gpu, 1.0)]) is None


def test_states_are_uploaded_once_and_freed_when_no_session_holds_them(gpu: Any, freed: list[int]) -> None:
    run = Steps(gpu, lambda x, h: (x * 2, h + x), [(1, 1, None)])
    x, first = tensor(gpu, 1.0, 1.0), tensor(gpu, 5.0, 6.0)
    _, second = run(x, first)
    assert first.data.op == "buffer" and id(first.data.buffer) not in freed
    _, third = run(x, second)
    del freed[:]
    run.steps.release([first], [second])
    assert freed == []  # the caller's own
    run.steps.release([second], [second, third])
    assert freed == []  # held on
    run.steps.release([second], [third])
    assert freed == [id(second.data.buffer)]
    run.steps.share([third])
    run.steps.release([third], [])
    assert freed == [id(second.data.buffer)]  # others hold it
    run.steps.release(
        [gpu.host.from_list([1.0], dtypes.float32, (1,))], [gpu.host.from_list([1.0], dtypes.float32, (1,))]
    )
    run.steps.share([gpu.host.from_list([1.0], dtypes.float32, (1,))])


def test_a_state_that_is_a_weight_or_an_output_too_is_not_freed(gpu: Any, freed: list[int]) -> None:
    weight = tensor(gpu, 1.0, 2.0)
    gpu.realize(weight)
    run = Steps(gpu, lambda x, h, g: (h, weight, F.reshape(h, (2, 1))), [(1, 0, None), (2, 1, None)])
    h, g = tensor(gpu, 5.0, 6.0), tensor(gpu, 7.0, 8.0)
    after, also, view = run(tensor(gpu, 0.0), h, g)
    assert gpu.to_list(view) == [5.0, 6.0] and view.shape == (2, 1)
    run.steps.release([after, also], [])
    assert freed == []


def test_growing_states_are_checked_before_anything_runs(gpu: Any, freed: list[int]) -> None:
    lengths: list[int] = []

    def check(length: int) -> None:
        lengths.append(length)
        if length > 3:
            raise ShapeError("too long")

    entries: list[tuple[int, int, int | None]] = [(1, 1, 0), (2, 2, None), (3, 9, 0)]
    run = Steps(gpu, lambda x, h, g, o: (x, F.concat([h, x], 0), g + 1), entries)
    x, h, g = tensor(gpu, 1.0), tensor(gpu, 1.0, 2.0), tensor(gpu, 0.0, 0.0, 0.0, 0.0, 0.0)
    _, h, g = run(x, h, g, None, check=check)
    assert lengths == [3] and gpu.to_list(h) == [1.0, 2.0, 1.0]
    del freed[:]
    with pytest.raises(ShapeError, match="too long"):
        run(x, h, g, None, check=check)
    assert lengths == [3, 4] and freed == []


def test_results_of_other_backends_are_handed_on(gpu: Any, freed: list[int]) -> None:
    there = gpu.host.from_list([1.0], dtypes.float32, (1,))
    run = Steps(gpu, lambda x, h: (there, there), [(1, 1, None)])
    assert run(tensor(gpu, 1.0), there) == [there, there]


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


# -- plans with open sizes --------------------------------------------------------------------------------------------


@pytest.fixture
def opened(gpu: Any, tmp_path: Path) -> Iterator[plan_file.SavedPlan]:
    def cut(x: Any) -> Any:
        return F.exp(x), x[3:] * 2

    plan_file.save(str(tmp_path / "b.plan"), cut, F.zeros((8, 4)), dims={"x": {0: ("rows", (4, 64))}})
    plan = plan_file.load(str(tmp_path / "b.plan"), gpu.device)
    plan.program.prepare()
    yield plan
    plan.release()


def test_sizes_that_a_plan_does_not_serve_are_refused_and_leave_it_as_it_was(opened: Any) -> None:
    program = opened.program
    program.fit((8,))
    steps, out = program.steps, program._out
    for rows in (3, 65):
        with pytest.raises(BackendError, match=f"rows is {rows}; the plan takes 4 to 64"):
            program.fit((rows,))
    assert program.steps is steps and program._out is out
    program.fit((8,))
    assert program.steps is steps  # nothing is done for the sizes of the last call
    program.fit((9,))
    assert program.steps is not steps and [n for _, n in program._out.results] == [9 * 16, 6 * 16]
    program.open_results = [(program.open_results[0][0], 64 * 16 + 512)]
    with pytest.raises(BackendError, match="does not fit its buffer"):
        program.fit((10,))


# -- times by the host's clock ----------------------------------------------------------------------------------------


class Encoder:
    """Stands for a command encoder and its pass: counts the workgroups of a submission."""

    def __init__(self) -> None:
        self.groups = 0

    def begin_compute_pass(self) -> Encoder:
        return self

    def finish(self) -> Encoder:
        return self

    def set_pipeline(self, pipeline: str) -> None:
        assert pipeline[0] == "p"

    def set_bind_group(self, number: int, group: str) -> None:
        assert number == 0 and group[0] == "g"

    def dispatch_workgroups(self, x: int, y: int, z: int) -> None:
        self.groups += x * y * z

    def end(self) -> None:
        pass


class Machine:
    """Stands for a device on which an empty submission takes 10 and a workgroup 1; every third one 5 more."""

    def __init__(self, fails: bool = False) -> None:
        self.now, self.number, self.inside, self.fails = 0, 0, 0, fails
        self.raw = SimpleNamespace(create_command_encoder=Encoder)
        self.queue = self

    def enter(self) -> None:
        self.inside += 1

    def leave(self) -> None:
        self.inside -= 1

    def failure(self, what: str, error: Exception) -> Exception:
        return BackendError(f"{what}: {error}")

    def submit(self, commands: list[Encoder]) -> None:
        assert self.inside == 1
        self.number += 1
        self.now += 10 + sum(c.groups for c in commands) + 5 * (self.number % 3 == 0)

    async def on_submitted_work_done_async(self) -> None:
        if self.fails:
            raise ValueError("lost")


class Timed:
    """Stands for a Program with three dispatches."""

    def __init__(self, machine: Machine) -> None:
        self.device = machine
        self.steps = [("p0", "g0", 7, 1, 1), ("p1", "g1", 2, 3, 4), ("p0", "g2", 1, 1, 1)]
        steps = [SimpleNamespace(kernel=k) for k in (0, 1, 0)]
        self.plan = SimpleNamespace(steps=steps, kernels=[("first", ""), ("second", "")])
        self.prepared = 0

    async def prepare_async(self) -> None:
        self.prepared += 1


def test_the_shortest_time_of_each_dispatch_less_that_of_an_empty_submission() -> None:
    program = Timed(Machine())
    found = asyncio.run(measure(program, lambda: program.device.now))
    assert found == [("first", [7, 1, 1], 7), ("second", [2, 3, 4], 24), ("first", [1, 1, 1], 1)]
    # Once before, then three rounds of an empty submission and each dispatch.
    assert program.prepared == 1 and program.device.number == 1 + 3 * 4 and program.device.inside == 0
    program = Timed(Machine())
    assert asyncio.run(measure(program, lambda: program.device.now, 1))[1][2] == 24
    assert program.device.number == 1 + 4


def test_dispatches_that_a_size_leaves_out_keep_their_names_and_times_are_not_negative() -> None:
    program: Any = Timed(Machine())
    program.steps = program.steps[1:]
    program.dispatched = [1, 2]
    ticks = iter(range(1000, 0, -1))
    found = asyncio.run(measure(program, lambda: next(ticks)))
    assert [name for name, _, _ in found] == ["second", "first"]
    assert [time for *_, time in found] == [0, 0]


def test_a_device_that_fails_while_it_is_timed_says_so() -> None:
    program = Timed(Machine(fails=True))
    with pytest.raises(BackendError, match="measuring kernels: lost"):
        asyncio.run(measure(program, lambda: 0))
    assert program.device.inside == 0


def test_who_runs_the_steps_of_a_session(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, planning = SimpleNamespace(forward=None), WgpuBackend(planning=True)
    assert type(gpu.resident(model, [], None)) is resident.Resident
    assert planning.resident(model, [], None) is None
    monkeypatch.setattr(resident, "must_await", lambda: True)
    assert gpu.resident(model, [], None) is None  # a plan could not be waited for
    monkeypatch.setattr(backend, "FINALIZERS", False)
    assert gpu.resident(model, [], None) is None
    monkeypatch.setattr(device, "must_await", lambda: True)
    assert type(gpu.resident(model, [], None)) is AwaitedSteps
    assert planning.resident(model, [], None) is None
