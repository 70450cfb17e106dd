"""A hundred thousand inferences: nothing grows."""

from __future__ import annotations

import gc
import random

from emberlet.backend import get_backend

from soak import models
from soak.telling import Clock, Told, resident

WHAT = "up to 100,000 inferences, compiled, eager and by a saved plan, with models made and dropped between"
NEEDS = ("gpu-driver",)
SHARE = 5

INFERENCES = 100_000
GROWTH = 24.0  # megabytes that the allocators of Python and of the driver may be slow to return


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("inferences")
    want = models.wanted(models.given(4))
    calls = models.ways()
    gpu = get_backend("wgpu")
    names = list(calls)

    def some(count: int) -> None:
        for number in range(count):
            if not clock or told.tried >= INFERENCES:
                return
            name = names[number % len(names)]
            got = calls[name]()
            told.tried += 1
            if told.tried % 10 == 0:
                told.checked += 1
                if off := models.wrong(got, want):
                    told.failures.append(f"{name}: {off}")
        other = models.plan(choose.randrange(3))
        other.run(models.given(4))

    for _ in range(3):
        some(300)
    gc.collect()
    before, live = resident(), gpu.device.live_bytes
    while clock and told.tried < INFERENCES and len(told.failures) < 20:
        some(1000)
    gc.collect()
    grown = resident() - before
    told.facts["MB before"] = round(before)
    told.facts["MB grown"] = round(grown, 1)
    told.facts["bytes grown on the GPU"] = gpu.device.live_bytes - live
    if grown > GROWTH:
        told.failures.append(f"{grown:.0f} MB more than before")
    if gpu.device.live_bytes > live:
        told.failures.append(f"{gpu.device.live_bytes - live} bytes more on the GPU")
    return told
