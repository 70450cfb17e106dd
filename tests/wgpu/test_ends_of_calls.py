"""The next call works, however a call on the GPU ends and whatever runs at the same time."""

from __future__ import annotations

import asyncio
import gc
import os
import threading

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend.plans import MAX_SHAPES
from emberlet.errors import BackendError
from emberlet.wgpu_backend import device as devices
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.device import Device
from soak import models


@pytest.fixture
def ready(gpu):
    return models.compiled()


@pytest.fixture
def right(make):
    """Checks the results of a compiled model for 4 rows."""
    x = models.given(4)

    def check(compiled):
        got = models.array(compiled(models.tensor(x, make.cpu)))
        np.testing.assert_allclose(got, models.wanted(x), atol=1e-4)

    return check


@pytest.mark.parametrize("method", ["map_sync", "read_mapped", "unmap"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, asyncio.CancelledError])
def test_after_an_interrupt_at_the_staging_buffer_the_next_call_works(ready, right, make, monkeypatch, method, error):
    kind = type(ready._last.program._out.staging[0] if ready._last.program._out.staging else _any_buffer(ready))
    real = getattr(kind, method)

    def interrupted(self, *args, **named):
        if method != "map_sync":
            raise error
        kind.map_async(self, *args, **named)  # it is on its way when the interrupt comes
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(kind, method, interrupted)
        with pytest.raises(error):
            ready(models.tensor(models.given(4), make.cpu))
    assert getattr(kind, method) is real
    for _ in range(3):
        right(ready)


def _any_buffer(compiled):
    return compiled.backend.device.raw.create_buffer(size=4, usage=devices.READABLE)


def test_awaited_calls_of_one_model_overlap(gpu):
    async def run():
        calls = models.ways_async()
        return await asyncio.gather(*[calls[name]() for name in ["compiled", "plan", "compiled"] * 8])

    for got in asyncio.run(run()):
        np.testing.assert_allclose(got, models.wanted(models.given(4)), atol=1e-4)


def test_a_cancelled_call_disturbs_no_other(gpu):
    async def run():
        call = models.ways_async()["compiled"]
        await call()
        tasks = [asyncio.create_task(call()) for _ in range(6)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        return await asyncio.gather(*tasks[1::2])

    for got in asyncio.run(run()):
        np.testing.assert_allclose(got, models.wanted(models.given(4)), atol=1e-4)


def test_a_program_that_is_given_up_while_it_runs_ends_its_call(ready, make, monkeypatch):
    program = ready._last.program
    real = program._submit

    def slow(data, taken, *more):
        for rows in range(10, 12 + MAX_SHAPES):
            ready(models.tensor(models.given(rows), make.cpu))
        assert all(planned.program is not program for planned in ready._plans.values())
        return real(data, taken, *more)

    monkeypatch.setattr(program, "_submit", slow)
    x = models.given(4)
    got = models.array(ready(models.tensor(x, make.cpu)))
    np.testing.assert_allclose(got, models.wanted(x), atol=1e-4)


def test_release_waits_for_the_calls_under_way_and_later_ones_are_refused(gpu, monkeypatch):
    plan = models.plan()
    program = plan.program
    real = program._submit

    def released(data, taken, *more):
        program.release()
        return real(data, taken, *more)

    monkeypatch.setattr(program, "_submit", released)
    x = models.given(4)
    np.testing.assert_allclose(models.array(plan.run(x)[0]), models.wanted(x), atol=1e-4)
    with pytest.raises(BackendError, match="was released"):
        plan.run(x)


def test_released_plans_give_all_their_memory_back(gpu):
    models.plan().release()
    gc.collect()
    live, kernels = gpu.device.live_bytes, len(gpu.device.pipelines)
    for _ in range(5):
        plan = models.plan()
        plan.run(models.given(4))
        plan.release()
        assert gpu.device.live_bytes == live
        assert len(gpu.device.pipelines) <= kernels  # fewer if unused kernels were released meanwhile


def test_an_input_left_as_it_is_must_have_been_given(gpu, monkeypatch):
    plan = models.plan()
    with pytest.raises(BackendError, match="input 0"):
        plan.run(None)
    x = models.given(4)
    first = models.array(plan.run(x)[0])
    np.testing.assert_array_equal(models.array(plan.run(None)[0]), first)

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(plan.program.device, "write", interrupted)
        plan.run(x)
    with pytest.raises(BackendError, match="input 0"):
        plan.run(None)


def test_eight_threads_open_one_device(gpu, monkeypatch):
    monkeypatch.setattr(devices, "_devices", {})
    monkeypatch.setattr(devices, "_open", lambda index: gpu.device.raw)
    begin = threading.Barrier(8)
    found = []

    def work():
        begin.wait()
        found.append(devices.open_device())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_refused_in_words(ready, right):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "no error"
        try:
            ready(models.tensor(models.given(4), models.get_backend("numpy")))
        except BackendError as error:
            said = str(error)
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as told:
        assert "before this process was forked" in told.read()
    os.waitpid(child, 0)
    right(ready)


def test_a_destroyed_device_lets_calls_end_and_refuses_later_ones(gpu, make, monkeypatch):
    device = Device(gpu.device.raw.adapter.request_device_sync())
    backend = type(gpu)(device=device)
    x = models.given(4)
    compiled = compile(models.model(0, backend), models.tensor(x, make.cpu), backend=backend)
    gone = []
    monkeypatch.setattr(type(device.raw), "destroy", lambda raw: gone.append(raw))
    device.enter()
    device.destroy()
    with pytest.raises(BackendError, match="lost or destroyed"):
        compiled(models.tensor(x, make.cpu))
    assert gone == []
    device.leave()
    assert gone == [device.raw]


def test_the_kernels_of_a_model_go_with_it(gpu, make):
    def model(x):
        return F.softmax(x * 1.2345)

    gc.collect()
    before = len(gpu.device.pipelines)
    compiled = compile(model, models.tensor(models.given(3), make.cpu), backend=gpu)
    for rows in range(3, 5 + MAX_SHAPES):
        compiled(models.tensor(models.given(rows), make.cpu))
    assert len(gpu.device.pipelines) > before
    del compiled
    gc.collect()
    assert len(gpu.device.pipelines) <= before


def test_realizing_many_graphs_keeps_a_bounded_number_of_plans(gpu, monkeypatch):
    monkeypatch.setattr(gpu._plans, "limit", 64 << 10)
    for n in range(1, 60):
        x = models.tensor(models.given(n), gpu)
        gpu.to_list(F.softmax(x))
    assert len(gpu._plans) < 40


def test_a_plan_runs_as_before_when_the_same_file_is_loaded_twice(gpu):
    x = models.given(4)
    first, second = plan_file.load(models.plan_bytes()), plan_file.load(models.plan_bytes())
    first.release()
    np.testing.assert_allclose(models.array(second.run(x)[0]), models.wanted(x), atol=1e-4)
