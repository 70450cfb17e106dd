"""Forks of a process that has computed on the GPU."""

from __future__ import annotations

import os
import random
import select
import signal
import threading
from collections.abc import Callable

from emberlet.backend import get_backend
from emberlet.errors import BackendError

from soak import models
from soak.telling import Clock, Told

WHAT = "os.fork() of a process whose threads compute on the GPU: the child gets a clear error, the parent continues"
NEEDS = ("gpu-driver",)
SHARE = 1
PATIENCE = 30.0  # seconds a child gets before it counts as hanging


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("forks")
    if not hasattr(os, "fork"):
        told.facts["left out"] = "this system has no fork"
        return told
    want = models.wanted(models.given(4))
    calls = models.ways()
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            calls["compiled"]()

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        while clock and len(told.failures) < 20:
            name = choose.choice(list(calls))
            if said := _in_a_child(calls[name]):
                told.failures.append(f"{name} in the child: {said}")
            told.tried += 1
            if off := models.wrong(calls[name](), want):
                told.failures.append(f"{name} in the parent: {off}")
            told.checked += 1
    finally:
        stop.set()
        thread.join()
    return told


def _in_a_child(call: Callable[[], object]) -> str:
    """A description of what is wrong with how a forked child is refused, or ""."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "it computed"
        try:
            get_backend("python")
            call()
        except BackendError as error:
            said = str(error)
        except BaseException as error:
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], PATIENCE)
    said = os.read(reading, 4096).decode() if ready else f"nothing after {PATIENCE:.0f} s"
    os.close(reading)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "" if "before this process was forked" in said else said
