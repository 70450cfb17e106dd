"""How GPU devices are opened, in threads, forks and tabs, and how their pipelines are compiled there."""

from __future__ import annotations

import asyncio
import sys
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
from emberlet.wgpu_backend.run import pipelines
from emberlet.wgpu_backend.run.pipelines import pipelines_async, pipelines_of, prepare
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


def test_a_device_is_opened_once_and_again_when_it_is_lost(opened: list[int]) -> None:
    first = devices.open_device(1)
    assert devices.open_device(1) is first and devices.open_device(0) is not first and opened == [1, 0]
    assert asyncio.run(devices.open_device_async(1)) is first
    first.lost = True
    second = devices.open_device(1)
    assert second is not first and opened == [1, 0, 1]
    late = Device(Raw())
    assert devices._keep_device(1, late) is second and late.lost


def test_a_forked_process_opens_no_device(opened: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "forked", True)
    with pytest.raises(BackendError, match="before this process was forked"):
        devices.open_device()
    assert opened == []


def test_a_device_is_opened_early_in_one_thread(opened: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_early", set())
    monkeypatch.setattr(native, "_opening", [])
    before = set(threading.enumerate())
    devices.open_early(3)
    devices.open_early(3)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert opened == [3] and native._opening == [] and native._early == {3}
    devices.open_device(4)
    devices.open_early(4)
    assert native._early == {3}  # it is open already


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


def test_devices_and_locks_are_known_to_a_fork() -> None:
    made = Device(Raw())
    assert made in native.every and made._lock in native.locks


def test_where_python_cannot_wait_a_device_is_awaited(opened: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert not devices.must_await() and devices.can_wait()
    asked = []

    async def request_device_async(features: list[str]) -> Raw:
        return Raw(features=tuple(features))

    async def request_adapter_async(preference: str) -> Any:
        asked.append(preference)
        return SimpleNamespace(features=["subgroups", "other"], request_device_async=request_device_async)

    monkeypatch.setattr(devices, "must_await", lambda: True)
    binding = SimpleNamespace(gpu=SimpleNamespace(request_adapter_async=request_adapter_async))
    monkeypatch.setitem(sys.modules, "emberlet.wgpu_backend.micropython.device", binding)  # type: ignore[arg-type]
    assert not devices.can_wait()
    first = asyncio.run(devices.open_device_async())
    assert first.raw.features == ("subgroups",) and asked == ["high-performance"] and opened == []
    assert asyncio.run(devices.open_device_async(0)) is first and devices._devices == {0: first} and len(asked) == 1
    with pytest.raises(BackendError, match="GPU adapter 1"):
        asyncio.run(devices.open_device_async(1))


def test_what_only_awaits_says_so_when_it_is_asked_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_devices", {})
    monkeypatch.setattr(native, "forked", False)
    monkeypatch.setattr(devices, "must_await", lambda: True)
    with pytest.raises(BackendError, match="MicroPython"):
        devices.open_device()


def test_the_first_device_is_opened_by_default(opened: list[int]) -> None:
    devices.open_device()
    assert opened == [0]


def awaited(device: Device, kernels: list[tuple[str, str]]) -> Any:
    return asyncio.run(pipelines_async(device, kernels))


@pytest.mark.parametrize("get", [pipelines_of, awaited])
def test_pipelines_are_started_together_and_kept(
    raw: Raw, device: Device, get: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = device.pipeline("old", "c")
    del raw.said[:]
    monkeypatch.setattr(devices.sys, "platform", "emscripten")
    found = get(device, [("add", "a"), ("mul", "b"), ("again", "a"), ("old", "c")])
    started = [text for text in raw.said if text.startswith("start")]
    assert started == [
        f"start {name} auto {{'module': 'module {name}', 'entry_point': 'main'}}" for name in ("add", "mul")
    ]
    assert found[0] is found[2] and found[0] is not found[1] and found[3] is known and found[0][1] == "layout 0 of add"
    assert get(device, [("add", "a")]) == found[:1] and device.pipelines.get("b") is found[1]
    assert [text for text in raw.said if text.startswith("start")] == started


@pytest.mark.parametrize("get", [pipelines_of, awaited])
@pytest.mark.parametrize("late", [None, "line 3 is odd"])
def test_the_first_faulty_pipeline_is_told_with_the_message_that_comes_later(
    raw: Raw, device: Device, get: Any, late: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices.sys, "platform", "emscripten")
    raw.late = {"mul": "bad mul", "sub": "bad sub"} | ({"message": late} if late else {})
    with pytest.raises(BackendError, match=f"compiling kernel mul failed: {late or 'bad mul'}\n   1  b"):
        get(device, [("add", "a"), ("mul", "b"), ("sub", "c")])
    assert device.pipelines.get("a") is not None and ("waited" in raw.said) == (late is None)


def test_in_a_tab_no_thread_compiles(raw: Raw, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(prepare(device, [("add", "a"), ("mul", "b")])) == ["a", "b"]
    monkeypatch.setattr(pipelines, "must_await", lambda: True)
    assert prepare(device, [("add", "c"), ("mul", "d")]) == {}
    monkeypatch.setattr(pipelines, "must_await", lambda: False)
    monkeypatch.setattr(devices.sys, "platform", "emscripten")
    assert prepare(device, [("add", "c"), ("mul", "d")]) == {}


def test_where_locks_are_missing_the_substitute_does_nothing() -> None:
    with pytest.raises(ValueError), devices._NoLock() as lock:
        assert isinstance(lock, devices._NoLock)
        raise ValueError


def test_what_micropythons_binding_keeps_is_freed_too(
    raw: Raw, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw.trim = lambda: raw.said.append("trim")  # type: ignore[attr-defined]
    device.trim()
    assert raw.said == []
    monkeypatch.setattr(devices, "must_await", lambda: True)
    device.trim()
    assert raw.said == ["trim"]
    del raw.trim  # type: ignore[attr-defined]
    device.trim()
    assert raw.said == ["trim"]
