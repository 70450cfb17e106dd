"""Files of weights and plans that are truncated or changed before they are opened or while they are open."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np
from emberlet.backend import get_backend
from emberlet.burnpack import Burnpack
from emberlet.errors import EmberletError
from emberlet.host.burnpack_writer import save
from emberlet.wgpu_backend import plan_file

from soak import models
from soak.telling import Clock, Told

WHAT = "burnpacks and plans truncated or with flipped bits, before they are opened and between opening and reading"
NEEDS = ("gpu-driver",)
SHARE = 1


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("damaged files")
    outcomes = {"refused": 0, "read": 0}
    cpu = get_backend("numpy")
    want = models.wanted(models.given(4))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.bpk"
        weights = {f"w{i}": models.tensor(models.given(64, i), cpu) for i in range(6)}
        save(str(path), weights)
        sound = {"burnpack": path.read_bytes(), "plan": models.plan_bytes()}
        while clock and len(told.failures) < 20:
            kind = choose.choice(list(sound))
            file = Path(folder) / f"{told.tried}.{kind}"
            late = kind == "burnpack" and choose.random() < 0.5
            file.write_bytes(sound[kind] if late else _damaged(sound[kind], choose))
            told.tried += 1
            try:
                if kind == "plan":
                    plan_file.load(str(file), verify=True).release()
                else:
                    pack = Burnpack.from_file(str(file))
                    if late:
                        file.write_bytes(_damaged(sound[kind], choose))
                    for name in pack.tensors:
                        np.asarray(cpu.to_bytes(pack.tensor(name, cpu)))
                outcomes["read"] += 1
            except EmberletError:
                outcomes["refused"] += 1
            except Exception as error:
                told.failures.append(f"{kind}: {error!r}")
            file.unlink()
            if told.tried % 50 == 0:
                told.checked += 1
                if off := models.wrong(models.array(models.plan().run(models.given(4))[0]), want):
                    told.failures.append(f"a sound plan afterwards: {off}")
    told.facts["outcomes"] = outcomes
    return told


def _damaged(data: bytes, choose: random.Random) -> bytes:
    if choose.random() < 0.5:
        return data[: choose.randrange(len(data))]
    out = bytearray(data)
    for _ in range(choose.choice([1, 1, 3, 100])):
        out[choose.randrange(len(out))] ^= 1 << choose.randrange(8)
    return bytes(out)
