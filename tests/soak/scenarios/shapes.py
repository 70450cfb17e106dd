"""A thousand shapes of a compiled model, of an eager one and of a function: memory stays below a limit."""

from __future__ import annotations

import gc
import random

import numpy as np
from emberlet import functional as F
from emberlet.backend import get_backend

from soak import models
from soak.telling import Clock, Told, resident

WHAT = "up to 1,000 shapes of a compiled model, an eager one or softmax, in a random order; the ceiling is 400 MB"
NEEDS = ("gpu-driver",)
SHARE = 16

SHAPES = 1000
CEILING = 400.0  # megabytes


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("shapes")
    cpu, gpu = get_backend("numpy"), get_backend("wgpu")
    ready, eager = models.compiled(), models.model(0, gpu)
    before = resident()
    top = before
    at = {}
    for rows in choose.sample(range(1, SHAPES + 1), SHAPES):
        if not clock:
            break
        x = models.given(rows)
        way = choose.choice(["compiled", "eager", "softmax"])
        if way == "compiled":
            got, want = ready(models.tensor(x, cpu)), models.wanted(x)
        elif way == "eager":
            got, want = eager(models.tensor(x, gpu)), models.wanted(x)
        else:
            e = np.exp(x - x.max(1, keepdims=True))
            got, want = F.softmax(models.tensor(x, gpu)), e / e.sum(1, keepdims=True)
        if off := models.wrong(models.array(got), want):
            told.failures.append(f"{way}, {rows} rows: {off}")
        told.checked += 1
        told.tried += 1
        top = max(top, resident())
        if told.tried % 250 == 0:
            at[str(told.tried)] = round(resident())
    if top > CEILING:
        told.failures.append(f"{top:.0f} MB, more than {CEILING:.0f}")
    told.facts["MB before"] = round(before)
    told.facts["MB at most"] = round(top)
    told.facts["MB after so many shapes"] = at
    kernels = len(gpu.device.pipelines)
    del ready
    gc.collect()
    told.facts["kernels kept, with the compiled model and without"] = f"{kernels}, {len(gpu.device.pipelines)}"
    return told
