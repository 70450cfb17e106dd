"""Compiling kernels on several threads: the driver and wgpu's own compiler run without Python's lock."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
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
    with ThreadPoolExecutor(min(len(missing), cpu_count() or 1)) as threads:
        started = [(source, threads.submit(device.compiled, name, source)) for source, name in missing.items()]
        for source, future in started:
            try:
                device.keep(source, future.result())
            except Exception:
                continue
