"""Compiles kernels on several threads: the driver and wgpu's compiler release Python's lock."""

from __future__ import annotations

from collections.abc import Iterable
from os import cpu_count
from threading import Thread
from typing import Any


def compile_kernels(device: Any, kernels: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The pipelines of `kernels`, (name, source) each, by source: those that the Device has, and the others compiled,
    one per core at a time. A single missing one and those that fail are left out; `Device.pipeline` compiles the one
    and raises the others' errors."""
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, source in kernels:
        known = device.pipelines.get(source)
        if known is None:
            missing.setdefault(source, name)
        else:
            found[source] = known
    if len(missing) < 2:
        return found
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

    # This thread works too. Importing concurrent.futures for a pool would take longer than compiling a small model.
    others = [Thread(target=work) for _ in range(min(len(missing), cpu_count() or 1) - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    for source, pipeline in done:
        found[source] = device.keep(source, pipeline)
    return found
