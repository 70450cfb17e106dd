"""How much a compiled step does: kernels, submissions, memory."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
from emberlet import optim

from . import networks
from .networks import batch, dense, squares

GPU = pytest.mark.needs("gpu-driver")


@GPU
def test_a_step_on_the_gpu_is_one_submission_and_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    step = dense(None, "wgpu").compile_step(squares, optim.AdamConfig().init(), *batch())
    step(0.1, *batch())
    queue = step.backend.device.queue
    submitted = []

    class Counted:
        write_buffer = queue.write_buffer

        def submit(self, commands: Any) -> None:
            submitted.append(len(commands))
            queue.submit(commands)

    monkeypatch.setattr(step.backend.device, "queue", Counted())
    for i in range(5):
        loss = step(0.1 / (i + 1), *batch())
    assert submitted == [1] * 5
    monkeypatch.undo()
    assert float(loss) > 0


@GPU
def test_steps_on_the_gpu_take_no_more_memory() -> None:
    step = dense(None, "wgpu").compile_step(squares, optim.AdamConfig().init())
    device = step.backend.device
    counts = []
    for _ in range(4):
        for _ in range(25):
            loss = step(0.1, *batch())
        float(loss)
        gc.collect()
        counts.append((device.live_bytes, device.created_buffers))
    assert counts[1] == counts[2] == counts[3]


@pytest.mark.parametrize("backend", ["numpy", "wasm"])
def test_steps_take_no_more_memory(backend: str) -> None:
    step = dense(None, backend).compile_step(squares, optim.AdamConfig().init())
    items = batch()
    sizes = []
    tracemalloc.start()
    try:
        for _ in range(4):
            for _ in range(80):
                step(0.1, *items)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[3] - sizes[1] < 5_000


@pytest.mark.parametrize(("backend", "most"), [("numpy", 220), ("wasm", 59), pytest.param("wgpu", 52, marks=GPU)])
def test_a_step_of_the_digits_is_so_many_kernels(backend: str, most: int) -> None:
    """NumPy calls, or kernels. More of them means that something is no longer fused."""
    model, loss, optimizer, items = networks.digits(backend)
    step = model.compile_step(loss, optimizer, *items(0))
    (found,) = step._plans
    plan = next(iter(found.plan._calls.values())) if backend == "numpy" else found.plan.plan
    steps = plan.steps
    assert len(steps) <= most, "\n".join(map(repr, steps))
