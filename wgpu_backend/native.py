"""Opening a GPU through wgpu-py, and what happens to an open one in a fork: all that only CPython does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from emberlet.errors import BackendError

_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")
FORKED = (
    "the GPU was opened before this process was forked, and a fork cannot use it. Start processes by 'spawn' "
    "(multiprocessing.set_start_method), or use the GPU only after the fork"
)

every: WeakSet[Any] = WeakSet()  # Devices, and locks, which a fork may find taken by a thread that it does not have
locks: WeakSet[Any] = WeakSet()
forked = False  # from a process that had opened a device


def open_raw(index: int, features: Callable[[Any], list[str]]) -> Any:
    """wgpu-py's device number `index`; features: what to ask an adapter for. Raises BackendError where there
    is none, or no wgpu-py."""
    try:
        if sys.platform == "emscripten":
            from . import browser  # noqa: F401  (gives wgpu-py's stub a body)
        quiet()
        import wgpu
    except ImportError as error:
        from emberlet.host.extras import sentence

        missing = sentence("backend 'wgpu'", ["wgpu"])
        raise BackendError(f"{missing} ({error})") from error

    found = adapters(wgpu)
    if index >= len(found):
        raise BackendError(f"there is no GPU adapter {index}; the machine has {len(found)}")
    adapter = found[index]
    return adapter.request_device_sync(required_features=features(adapter), required_limits=_limits(adapter))


def quiet() -> None:
    """Without a desktop, keep Mesa's layer that chooses among devices by it from complaining on every start."""
    if sys.platform == "linux" and not [v for v in _DESKTOP if v in os.environ]:
        os.environ.setdefault("NODEVICE_SELECT", "1")


def adapters(wgpu: Any) -> list[Any]:
    """wgpu-py's adapters by their index: software and OpenGL ones come last, so that 0 is the best GPU there is."""
    if sys.platform != "emscripten":
        from .cffi_types import quicken_wgpu

        quicken_wgpu()
    rank = {"DiscreteGPU": 0, "IntegratedGPU": 1, "VirtualGPU": 2}
    found = list(wgpu.gpu.enumerate_adapters_sync())
    found.sort(key=lambda a: (rank.get(a.info["adapter_type"], 3), 1 if a.info["backend_type"] == "OpenGL" else 0))
    return found


def _limits(adapter: Any) -> dict[str, int]:
    wanted = ("max-storage-buffer-binding-size", "max-buffer-size", "max-storage-buffers-per-shader-stage")
    return {name: adapter.limits[name] for name in wanted}


class _OfAnotherProcess:
    """Stands for what a process has no right to: the GPU library of the one it was forked from."""

    def __getattr__(self, name: str) -> Any:
        raise BackendError(FORKED)


def _after_fork() -> None:
    """This process was forked from one that opened devices: they can be neither used nor given back here."""
    global forked
    for taken in list(locks):
        taken._at_fork_reinit()
    for device in list(every):
        forked = True
        device.forked = (device.raw, device.queue, device.free)
        device.raw = device.queue = _OfAnotherProcess()
        device.free = {}
        device.free_bytes = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
