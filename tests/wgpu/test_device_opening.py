"""How GPU devices are opened, in threads, forks and tabs, and how their pipelines are compiled there."""

from __future__ import annotations

import threading
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.errors import BackendError
from emberlet.host import memory
from emberlet.wgpu_backend import cffi_types, native
from emberlet.wgpu_backend import device as devices
from emberlet.wgpu_backend.device import Device
from support.stand_in_gpu import LIMITS, Raw


@pytest.fixture
def raw() -> Raw:
    return Raw()


@pytest.fixture
def device(raw: Raw) -> Device:
    return Device(raw)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the devices that were opened, all stand-ins."""
    said: list[int] = []
    monkeypatch.setattr(devices, "_devices", {})
    monkeypatch.setattr(native, "forked", False)

    def open_raw(index: int) -> Raw:
        said.append(index)
        return Raw()

    monkeypatch.setattr(devices, "_open", open_raw)
    return said


def test_an_early_error_is_left_to_the_call_that_needs_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_early", set())
    monkeypatch.setattr(native, "_opening", [])
    tried = []

    def fails(index: int) -> None:
        tried.append(index)
        raise BackendError("none")

    before = set(threading.enumerate())
    native.open_early(5, fails)
    native.open_early(5, fails)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert tried == [5] and native._opening == []


def adapter(kind: str, backend: str = "Vulkan", **limits: int) -> Any:
    asked: dict[str, Any] = {}

    def request_device_sync(**options: Any) -> Any:
        asked.update(options)
        return asked

    return SimpleNamespace(
        info={"adapter_type": kind, "backend_type": backend},
        limits={**LIMITS, "max-bind-groups": 4, **limits},
        features={"subgroups"},
        request_device_sync=request_device_sync,
    )


def test_adapters_are_sorted_by_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cffi_types, "quicken_wgpu", lambda: True)
    listed = [("CPU", "Vulkan"), ("VirtualGPU", "Vulkan"), ("IntegratedGPU", "OpenGL"), ("IntegratedGPU", "Vulkan"),
              ("DiscreteGPU", "OpenGL"), ("Unknown", "Vulkan"), ("DiscreteGPU", "Metal")]  # fmt: skip
    wgpu = SimpleNamespace(gpu=SimpleNamespace(enumerate_adapters_sync=lambda: [adapter(*kind) for kind in listed]))
    found = [(a.info["adapter_type"], a.info["backend_type"]) for a in native.adapters(wgpu)]
    assert found == [
        ("DiscreteGPU", "Metal"), ("DiscreteGPU", "OpenGL"), ("IntegratedGPU", "Vulkan"), ("IntegratedGPU", "OpenGL"),
        ("VirtualGPU", "Vulkan"), ("CPU", "Vulkan"), ("Unknown", "Vulkan"),
    ]  # fmt: skip


def test_addresses_for_a_driver_are_asked_for_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cffi_types, "quicken_wgpu", lambda: True)
    monkeypatch.setattr(native, "_check_room", cache(native._check_room.__wrapped__))
    monkeypatch.setattr(native.os, "sched_getaffinity", lambda _: range(4), raising=False)
    wgpu = SimpleNamespace(gpu=SimpleNamespace(enumerate_adapters_sync=lambda: [adapter("CPU")]))
    left = iter([1535 << 20, 1536 << 20])
    monkeypatch.setattr(memory, "room", lambda: next(left))
    with pytest.raises(BackendError, match=r"needs 1536 MB.*has 1535 MB left"):
        native.adapters(wgpu)
    for _ in range(2):  # the driver is there the second time
        assert len(native.adapters(wgpu)) == 1


def test_a_device_is_requested_with_the_limits_that_tensors_need(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [adapter("DiscreteGPU"), adapter("CPU", **{"max-buffer-size": 99})]
    monkeypatch.setattr(native, "adapters", lambda _: found)
    pytest.importorskip("wgpu")
    asked = native.open_raw(1, devices.features)
    wanted = ("max-storage-buffer-binding-size", "max-buffer-size", "max-storage-buffers-per-shader-stage")
    assert asked == {
        "required_features": ["subgroups"],
        "required_limits": dict(zip(wanted, (1024, 99, 8), strict=True)),
    }
    with pytest.raises(BackendError, match=r"GPU adapter 2.*2"):
        native.open_raw(2, devices.features)


@pytest.mark.parametrize("variable", ["DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", None])
def test_mesas_warning_is_silenced_only_without_a_desktop(
    variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native.sys, "platform", "linux")
    for given, wanted in [(None, None if variable else "1"), ("0", "0")]:
        environment = {} if variable is None else {variable: ""}
        if given:
            environment["NODEVICE_SELECT"] = given
        monkeypatch.setattr(native.os, "environ", environment)
        native.quiet()
        assert environment.get("NODEVICE_SELECT") == wanted
    monkeypatch.setattr(native.os, "environ", {})
    monkeypatch.setattr(native.sys, "platform", "win32")
    native.quiet()
    assert native.os.environ == {}


def test_what_a_fork_leaves_behind_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    for opening, every, forked in [([], [], False), ([3], [], True), ([], [Device(Raw())], True)]:
        lock = threading.RLock()
        lock.acquire()
        monkeypatch.setattr(native, "_opening", opening)
        monkeypatch.setattr(native, "every", every)
        monkeypatch.setattr(native, "locks", [lock])
        monkeypatch.setattr(native, "forked", False)
        for one in every:
            one.allocate(8).free()
        native._after_fork()
        assert native.forked == forked
        assert threading.Thread(target=lock.acquire).start() is None  # its holder is not in this process
        for one in every:
            assert (one.free, one.free_bytes) == ({}, 0)
            for used in (one.raw, one.queue):
                with pytest.raises(BackendError, match="before this process was forked"):
                    used.submit([])
        native._after_fork()
        assert native.forked == forked
