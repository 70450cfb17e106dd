"""Opens a GPU through wgpu-py, and disables an open one in a forked process. CPython only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakSet

from emberlet.errors import BackendError

_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")
FORKED = (
    "the GPU was opened before this process was forked, and a fork cannot use it. Start processes by 'spawn' "
    "(multiprocessing.set_start_method), or use the GPU only after the fork"
)

every: WeakSet[Any] = WeakSet()  # Devices; locks, which a fork may find held by a thread that it does not have
locks: WeakSet[Any] = WeakSet()
forked = False  # whether from a process that had opened a device
_early: set[int] = set()  # numbers of the devices that a thread was started for
_opening: list[int] = []  # those it has not finished


def open_raw(index: int, features: Callable[[Any], list[str]]) -> Any:
    """wgpu-py's device number `index`. features(adapter): the features to request. Raises BackendError without such a
    device or without wgpu-py."""
    try:
        if sys.platform == "emscripten":
            from . import browser  # noqa: F401  (gives wgpu-py's stub a body)
        quiet()
        import wgpu
    except ImportError as error:
        from emberlet.host.extras import not_loaded

        raise BackendError(not_loaded("backend 'wgpu'", "wgpu", error)) from error

    found = adapters(wgpu)
    if index >= len(found):
        raise BackendError(f"there is no GPU adapter {index}; the machine has {len(found)}")
    adapter = found[index]
    try:
        return adapter.request_device_sync(required_features=features(adapter), required_limits=_limits(adapter))
    except RuntimeError as error:  # also that isolated sub-interpreters have no threads, which wgpu-py starts
        raise BackendError(f"GPU adapter {index} gives no device: {error}") from error


def open_early(index: int, opened: Callable[[int], object]) -> None:
    """Begin opened(index) in a thread, once for each device; a model is read and traced in the meantime.

    Errors are left to the call that needs the device.
    """
    if sys.platform == "emscripten" or index in _early:
        return
    import threading

    def run() -> None:
        try:
            opened(index)
        except Exception:
            pass
        finally:
            _opening.remove(index)

    _early.add(index)
    _opening.append(index)
    try:
        # Not a daemon thread: a process must not end inside a driver.
        threading.Thread(target=run, name="emberlet-gpu").start()
    except RuntimeError:  # no more threads
        _opening.remove(index)


def quiet() -> None:
    """Without a desktop, silence Mesa's device-select layer, which warns at every start that it finds none."""
    if sys.platform == "linux" and not [v for v in _DESKTOP if v in os.environ]:
        os.environ.setdefault("NODEVICE_SELECT", "1")


def adapters(wgpu: Any) -> list[Any]:
    """wgpu-py's adapters in our order: software and OpenGL ones come last, so that 0 is the best GPU."""
    if sys.platform != "emscripten":
        _check_room()
        from .cffi_types import quicken_wgpu

        quicken_wgpu()
    rank = {"DiscreteGPU": 0, "IntegratedGPU": 1, "VirtualGPU": 2}
    found = list(wgpu.gpu.enumerate_adapters_sync())
    found.sort(key=lambda a: (rank.get(a.info["adapter_type"], 3), 1 if a.info["backend_type"] == "OpenGL" else 0))
    return found


@cache
def _check_room() -> None:
    """Raise BackendError where a driver would have so few addresses that it may end the process. Lavapipe takes 0.6 GB
    on one core, 1.2 GB on two and 1.8 GB on 16, most of it for its threads; once it is there, a device takes 0.2 GB."""
    from emberlet.host.memory import ADVICE, room

    left = room()
    if left is None:
        return
    needed = (1 << 30) + (min(len(os.sched_getaffinity(0)), 16) << 27)
    if left < needed:
        raise BackendError(
            f"out of memory: a GPU's driver needs {needed >> 20} MB of addresses, and this process has {left >> 20} "
            f"MB left; {ADVICE}, or use another backend"
        )


def _limits(adapter: Any) -> dict[str, int]:
    wanted = ("max-storage-buffer-binding-size", "max-buffer-size", "max-storage-buffers-per-shader-stage")
    return {name: adapter.limits[name] for name in wanted}


class _OfAnotherProcess:
    """Replaces the parent's GPU device in a forked process; any use raises BackendError."""

    def __getattr__(self, name: str) -> Any:
        raise BackendError(FORKED)


def _after_fork() -> None:
    """Disable the parent's devices in a forked process, where they can be neither used nor freed."""
    global forked
    forked = forked or bool(_opening)
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
