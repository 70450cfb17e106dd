"""Sixteen threads that share models, with more shapes than a compiled model keeps plans for."""

from __future__ import annotations

import random
import threading

from emberlet.backend import get_backend

from soak import models
from soak.telling import Clock, Told

WHAT = "16 threads that share 3 compiled models and 12 shapes, with eager calls between"
NEEDS = ("gpu-driver",)
SHARE = 2

THREADS, MODELS, SHAPES = 16, 3, 12


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("calls")
    cpu, gpu = get_backend("numpy"), get_backend("wgpu")
    shared = [models.compiled(which) for which in range(MODELS)]
    eager = [models.model(which, gpu) for which in range(MODELS)]

    def work(draw: random.Random) -> None:
        while clock and len(told.failures) < 20:
            which, rows = draw.randrange(MODELS), draw.randint(1, SHAPES)
            x = models.given(rows, draw.randrange(9))
            try:
                if draw.random() < 0.1:
                    got = eager[which](models.tensor(x, gpu))
                else:
                    got = shared[which](models.tensor(x, cpu))
                if off := models.wrong(models.array(got), models.wanted(x, which)):
                    told.failures.append(f"model {which}, {rows} rows: {off}")
            except Exception as error:
                told.failures.append(f"model {which}, {rows} rows: {error!r}")
            told.tried += 1
            told.checked += 1

    threads = [threading.Thread(target=work, args=(random.Random(choose.random()),)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told
