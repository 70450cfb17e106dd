"""Compiling kernels on several threads: the driver and wgpu's own compiler run without Python's lock."""

from __future__ import annotations

from collections.abc import Iterable
from os import cpu_count
from threading import Thread
from typing import Any


def compile_kernels(device: Any, kernels: Iterable[tuple[str, str]]) -> None:
    """Compile the (name, source) of `kernels` that the Device has no pipeline for, as many at a time as there are
    cores. One that fails is left out: whoever asks for it alone is told why."""
    missing: dict[str, str] = {}
    for name, source in kernels:
        if device.pipelines.get(source) is None:
            missing.setdefault(source, name)
    if len(missing) < 2:
        return
    left = list(missing.items())
    done: list[tuple[str, Any]] = []

    def work() -> None:
        while left:
            try:
                source, name = left.pop()
            except IndexError:  # another thread took the last one
                return
            try:
                done.append((source, device.compiled(name, source)))
            except Exception:
                continue

    # This thread is one of them; concurrent.futures would take longer to import than a small model to compile.
    others = [Thread(target=work) for _ in range(min(len(missing), cpu_count() or 1) - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    for source, pipeline in done:
        device.keep(source, pipeline)
