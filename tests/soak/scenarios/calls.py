"""A hundred thousand calls of a model on each backend, eager and compiled: nothing grows."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from emberlet.backend import get_backend
from emberlet.host.extras import missing

from soak import models
from soak.telling import Clock, Told, resident

WHAT = "up to 100,000 calls of a model on each backend, eager and compiled: memory, objects, files and threads stay"
NEEDS = ("gpu-driver",)
SHARE = 12

CALLS = 100_000  # of each way
WARM = 300
ROUND = 500  # calls of a way before the next has its turn
GROWTH = 24.0  # megabytes of all ways that allocators and the driver may be slow to return
BLOCKS = 0.01  # blocks of Python's memory that a call may leave on average, beside SOME: a leak leaves one or more
SOME = 200


def ways() -> dict[str, Callable[[], np.ndarray]]:
    """Calls of a model by name, on every backend; plain Python has no compiled form."""
    from emberlet.host.numpy_backend.compile import compile as numpy_plan
    from emberlet.wgpu_backend.compiled import compile as program

    x = models.given(4)
    numpy = get_backend("numpy")
    found: dict[str, Callable[[], np.ndarray]] = {}
    for name in ("python", "numpy", "wgpu", "wasm", *(() if missing(["llvmlite"]) else ("native",))):
        backend = get_backend(name)
        found[f"{name} eager"] = _call(models.model(0, backend), x, backend)
        if name == "numpy":
            found["numpy compiled"] = _call(numpy_plan(models.model(0, numpy), models.tensor(x, numpy)), x, numpy)
        elif name != "python":
            ready = program(models.model(0, backend), models.tensor(x, numpy), backend=backend)
            found[f"{name} compiled"] = _call(ready, x, numpy)
    return found


def _call(model: Any, x: np.ndarray, backend: Any) -> Callable[[], np.ndarray]:
    return lambda: models.array(model(models.tensor(x, backend)))


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("calls")
    want = models.wanted(models.given(4))
    calls = ways()
    for call in calls.values():
        for _ in range(WARM):
            call()
    gpu = get_backend("wgpu").device
    before, live = _held(), gpu.live_bytes
    megabytes = resident()
    made = dict.fromkeys(calls, 0)
    blocks = dict.fromkeys(calls, 0)
    while clock and min(made.values()) < CALLS and not told.failures:
        for name in choose.sample(sorted(calls), len(calls)):
            gc.collect()
            already = sys.getallocatedblocks()
            for _ in range(ROUND):
                got = calls[name]()
            if off := models.wrong(got, want):
                told.failures.append(f"{name}: {off}")
            del got
            gc.collect()
            blocks[name] += sys.getallocatedblocks() - already
            made[name] += ROUND
            told.checked += 1
    told.tried = sum(made.values())
    _compare(told, before, _held())
    for name, grown in blocks.items():
        if grown > SOME + BLOCKS * made[name]:
            told.failures.append(f"{name}: {grown} blocks of Python's memory more after {made[name]} calls")
    grown = resident() - megabytes
    if grown > GROWTH:
        told.failures.append(f"{grown:.0f} MB more than before")
    if gpu.live_bytes > live:
        told.failures.append(f"{gpu.live_bytes - live} bytes more on the GPU")
    told.facts["calls of each way"] = min(made.values())
    told.facts["MB before"] = round(megabytes)
    told.facts["MB grown"] = round(grown, 1)
    told.facts["blocks of Python's memory grown"] = blocks
    told.facts["bytes grown on the GPU"] = gpu.live_bytes - live
    return told


def _held() -> dict[str, int]:
    """Open files and threads of this process."""
    files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return {"open files": files, "threads": threading.active_count()}


def _compare(told: Told, before: dict[str, int], after: dict[str, int]) -> None:
    for what, count in after.items():
        told.facts[f"{what} grown"] = count - before[what]
        if count > before[what]:
            told.failures.append(f"{count - before[what]} {what} more than before")
