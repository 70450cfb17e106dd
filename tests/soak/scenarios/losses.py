"""Devices that are destroyed while other threads compute on them, and opened again."""

from __future__ import annotations

import random
import threading
import time

from emberlet.backend import get_backend
from emberlet.errors import BackendError
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.device import Device

from soak import models
from soak.telling import Clock, Told

WHAT = "Device.destroy() while 4 threads compute on the device; then a new one"
NEEDS = ("gpu-driver",)
SHARE = 2


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("devices lost")
    adapter = get_backend("wgpu").device.raw.adapter
    cpu = get_backend("numpy")
    x = models.given(4)
    want = models.wanted(x)
    while clock and len(told.failures) < 20:
        device = Device(adapter.request_device_sync())
        backend = WgpuBackend(device=device)
        ready = compile(models.model(0, backend), models.tensor(x, cpu), backend=backend)
        eager = models.model(0, backend)

        def work(draw: random.Random, device=device, backend=backend, ready=ready, eager=eager) -> None:
            while True:
                try:
                    if draw.random() < 0.7:
                        got = ready(models.tensor(x, cpu))
                    else:
                        got = eager(models.tensor(x, backend))
                    if off := models.wrong(models.array(got), want):
                        told.failures.append(off)
                    told.checked += 1
                except BackendError as error:
                    if not device.lost:
                        told.failures.append(repr(error))
                    return
                except Exception as error:
                    told.failures.append(repr(error))
                    return

        threads = [threading.Thread(target=work, args=(random.Random(choose.random()),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(choose.uniform(0.0, 0.2))
        device.destroy()
        told.tried += 1
        for thread in threads:
            thread.join(60)
            if thread.is_alive():
                told.failures.append("a thread waits for a lost device")
                return told
    return told
