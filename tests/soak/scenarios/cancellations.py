"""Overlapping awaited calls of one model, some of them cancelled at a random moment."""

from __future__ import annotations

import asyncio
import random

from soak import models
from soak.telling import Clock, Told

WHAT = "2 to 12 awaited calls of the same models at once, some cancelled at a random moment"
NEEDS = ("gpu-driver",)
SHARE = 2


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("cancelled tasks")
    asyncio.run(_run(clock, choose, told))
    return told


async def _run(clock: Clock, choose: random.Random, told: Told) -> None:
    want = models.wanted(models.given(4))
    calls = models.ways_async()
    loop = asyncio.get_running_loop()
    for call in calls.values():
        await call()
    while clock and len(told.failures) < 20:
        names = choose.choices(list(calls), k=choose.randint(2, 12))
        tasks = [asyncio.create_task(calls[name]()) for name in names]
        for task in tasks:
            if choose.random() < 0.4:
                loop.call_later(choose.expovariate(100.0), task.cancel)
        for name, result in zip(names, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
            if isinstance(result, asyncio.CancelledError):
                told.tried += 1
                continue
            told.checked += 1
            if isinstance(result, BaseException):
                told.failures.append(f"{name}: {result!r}")
            elif off := models.wrong(result, want):
                told.failures.append(f"{name}: {off}")
