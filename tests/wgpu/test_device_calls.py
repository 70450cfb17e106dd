"""What a Device asks of the GPU's library: buffers, pages, pools, pipelines, its end. A stand-in notes every call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.errors import BackendError
from emberlet.wgpu_backend import device as devices
from emberlet.wgpu_backend.device import Device, device_class
from emberlet.wgpu_backend.run.buffers import Allocation, size_class
from emberlet.wgpu_backend.run.pipelines import pipelines_of
from support.stand_in_gpu import REAL, SOFTWARE, Raw


@pytest.fixture
def raw() -> Raw:
    return Raw()


@pytest.fixture
def device(raw: Raw) -> Device:
    return Device(raw)


def test_buffers_are_pooled_in_four_sizes_for_each_power_of_two() -> None:
    wanted = {
        0: 256, 1: 256, 255: 256, 256: 256, 257: 320, 320: 320, 321: 384, 384: 384, 385: 448, 448: 448, 449: 512,
        511: 512, 512: 512, 513: 640, 640: 640, 641: 768, 769: 896, 897: 1024, 1024: 1024, 1025: 1280, 4097: 5120,
        (1 << 20) - 1: 1 << 20, 1 << 20: 1 << 20, (1 << 20) + 1: (1 << 20) + (1 << 18), 7 << 18: 7 << 18,
        (7 << 18) + 1: 1 << 21,
    }  # fmt: skip
    assert {n: size_class(n) for n in wanted} == wanted


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, "gpu"), ({"adapter_type": "CPU"}, "cpu"), ({"device": "SwiftShader Device"}, "swiftshader"),
        ({"description": "swiftshader"}, "swiftshader"), ({"architecture": "SWIFTSHADER"}, "swiftshader"),
        ({"device": "llvmpipe (LLVM 15)"}, "cpu"), ({"description": "Lavapipe"}, "cpu"),
        ({"device": "Microsoft Basic Render Driver"}, "cpu"), ({"device": None}, "gpu"),
        ({"device": "llvmpipe", "architecture": "swiftshader"}, "swiftshader"),
    ],
)  # fmt: skip
def test_the_class_of_a_device(changed: dict[str, Any], wanted: str) -> None:
    assert device_class(REAL | changed) == wanted


def test_a_device_knows_its_limits() -> None:
    found = Device(Raw(features=("subgroups", "shader-f16")))
    assert (found.device_class, found.subgroups, found.page_bytes, found.workgroup_bytes, found.max_bindings) == (
        "gpu", True, 1024, 16384, 8,
    )  # fmt: skip
    other = Device(Raw(SOFTWARE, features=(), **{"max-storage-buffers-per-shader-stage": 40}))
    assert (other.device_class, other.subgroups, other.max_bindings) == ("cpu", False, 16)
    assert [found.lost, found.forked, found.failures, found.live_bytes, found.free_bytes] == [False, None, 0, 0, 0]
    assert devices.features(SimpleNamespace(features={"subgroups", "x", "timestamp-query"})) == [
        "subgroups",
        "timestamp-query",
    ]


def test_a_buffer_returns_to_the_pool_and_is_lent_again(raw: Raw, device: Device) -> None:
    first = device.allocate(300)
    assert raw.said == ["buffer 0 of 320, usage 0x8c"]
    assert (first.nbytes, device.live_bytes, device.lent, first.pages) == (320, 320, {raw.buffers[0]: 320}, [first])
    first.free()
    first.free()
    assert (device.live_bytes, device.free_bytes, device.lent) == (0, 320, {})
    second = device.allocate(257)
    assert second.gpu is raw.buffers[0] and device.free_bytes == 0 and device.created_buffers == 1
    other = device.allocate(256)
    assert other.gpu is raw.buffers[1] and device.created_buffers == 2
    del second
    assert device.free_bytes == 320
    assert device.allocate(0).nbytes == 256


def test_a_pooled_buffer_beyond_the_pools_limit_is_destroyed(
    raw: Raw, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_POOL_BYTES", 576)
    first, second, third = device.allocate(256), device.allocate(320), device.allocate(256)
    for one in (first, second, third):
        one.free()
    assert device.free_bytes == 576
    assert raw.said[3:] == ["destroy buffer 2"]
    device.trim()
    assert raw.said[4:] == ["destroy buffer 0", "destroy buffer 1"]
    assert (device.free_bytes, device.free) == (0, {})


def test_words_are_written_across_pages(raw: Raw, device: Device) -> None:
    one = device.allocate(64)
    device.write(one, b"")
    device.write(one, bytes(range(8)))
    device.write(one, b"abcd", 8)
    assert raw.said[1:] == ["write 8 to buffer 0 at 0", "write 4 to buffer 0 at 8"]
    assert device.read(one, 12) == bytes(range(8)) + b"abcd"
    large = device.allocate(2560)
    data = bytes(n % 251 for n in range(2560))
    del raw.said[:]
    device.write(large, data)
    device.write(large, b"x" * 8, 1020)
    device.write(large, b"y" * 4, 2048)
    device.write(large, b"z" * 1028, 1024)
    assert raw.said == [
        "write 1024 to buffer 1 at 0", "write 1024 to buffer 2 at 0", "write 512 to buffer 3 at 0",
        "write 4 to buffer 1 at 1020", "write 4 to buffer 2 at 0",
        "write 4 to buffer 3 at 0",
        "write 1024 to buffer 2 at 0", "write 4 to buffer 3 at 0",
    ]  # fmt: skip
    want = data[:1020] + b"x" * 4 + b"z" * 1028 + data[2052:]
    del raw.said[:]
    assert device.read(large, 2560) == want
    assert device.read(large, 1028) == want[:1028]
    assert raw.said == [
        "read 1024 of buffer 1 from 0", "read 1024 of buffer 2 from 0", "read 512 of buffer 3 from 0",
        "read 1024 of buffer 1 from 0", "read 4 of buffer 2 from 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "said", "lost"),
    [
        (RuntimeError("odd"), "uploading failed: odd", False),
        (BackendError("known"), "known", False),
        (RuntimeError("Parent device is lost"), "the GPU device was lost while uploading, with all", True),
        (RuntimeError("Device lost\nnow "), r"opens a new device \(Device lost now\)", True),
        (RuntimeError("it was lost"), "was lost while uploading", True),
        (BackendError("the GPU device was lost"), "lost while uploading", True),
    ],
)
def test_errors_of_the_library_become_sentences(
    raw: Raw, device: Device, error: Exception, said: str, lost: bool
) -> None:
    pooled, x = device.allocate(512), device.allocate(8)
    pooled.free()
    raw.refuse = error
    with pytest.raises(BackendError, match=said):
        device.write(x, b"1234")
    assert device.lost == lost and device.failures == 1
    assert raw.said[-1] == "destroy buffer 0"  # no earlier buffer is used again
    raw.refuse = None
    x.free()
    assert device.free_bytes == 0
    assert (raw.said[-1] == "destroy buffer 1") != lost
    if not lost:
        device.allocate(8).free()
        assert device.free_bytes == 256


def test_memory_that_is_short_stays_a_memory_error(raw: Raw, device: Device) -> None:
    raw.refuse = MemoryError()
    with pytest.raises(MemoryError):
        device.allocate(8)
    raw.refuse = RuntimeError("out of memory")
    with pytest.raises(BackendError, match=r"allocating 320.*GPU"):
        device.allocate(300)
    raw.refuse = None
    x = device.allocate(8)
    raw.refuse = RuntimeError("odd")
    for call, what in [(lambda: device.clear([x]), "clearing buffers"), (lambda: device.read(x, 4), "reading back")]:
        with pytest.raises(BackendError, match=f"{what} failed: odd"):
            call()
        assert device._calls == 0


def test_a_device_that_is_destroyed_waits_for_running_calls(raw: Raw, device: Device) -> None:
    pooled = device.allocate(8)
    pooled.free()
    device.enter()
    device.enter()
    device.destroy()
    device.destroy()
    assert "destroy device" not in raw.said and device.lost
    with pytest.raises(BackendError, match="was lost or destroyed, with all tensors on it"):
        device.enter()
    device.leave()
    assert "destroy device" not in raw.said
    device.leave()
    assert raw.said.count("destroy device") == 1
    assert (device.free, device.free_bytes) == ({}, 0)
    device.destroy()
    assert raw.said.count("destroy device") == 1


def test_a_device_without_calls_is_destroyed_at_once(raw: Raw, device: Device) -> None:
    x = device.allocate(8)
    device.destroy()
    assert raw.said[1:] == ["destroy device"]
    x.free()
    assert raw.said[1:] == ["destroy device"] and device.live_bytes == 0 and device.free == {}


def test_a_lost_device_is_not_destroyed_again(raw: Raw, device: Device) -> None:
    device.lost = True
    device.destroy()
    assert raw.said == []


def test_a_forked_process_neither_uses_nor_frees(raw: Raw, device: Device) -> None:
    x = device.allocate(8)
    device.forked = (raw, raw, {})
    with pytest.raises(BackendError, match="before this process was forked"):
        device.enter()
    live, said = device.live_bytes, list(raw.said)
    x.free()
    assert device.live_bytes == live and raw.said == said and list(device.lent) == [raw.buffers[0]]


def test_an_allocation_that_was_never_made_frees_nothing() -> None:
    Allocation.__new__(Allocation).__del__()


def test_a_pipeline_is_compiled_once(raw: Raw, device: Device) -> None:
    first = device.pipeline("add", "text")
    assert raw.said == [
        "module add: 'text'",
        "pipeline add auto {'module': 'module add', 'entry_point': 'main'}",
    ]
    assert first[1] == "layout 0 of add" and device.pipeline("add", "text") is first
    assert pipelines_of(device, [("add", "text"), ("mul", "other"), ("add", "text")])[::2] == [first, first]
    assert [said for said in raw.said if said.startswith("pipeline")][1:] == [
        "pipeline mul auto {'module': 'module mul', 'entry_point': 'main'}"
    ]


def test_a_kernel_that_is_refused_is_shown_with_numbers_of_lines(raw: Raw, device: Device) -> None:
    raw.refuse = RuntimeError("line 2 is odd")
    with pytest.raises(BackendError) as caught:
        device.pipeline("add", "first\nsecond")
    assert str(caught.value) == "compiling kernel add failed: line 2 is odd\n   1  first\n   2  second"
