"""What a Device asks of the GPU's library: buffers, pages, pools, pipelines, its end. A stand-in notes every call."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet.errors import BackendError
from emberlet.wgpu_backend import device as devices
from emberlet.wgpu_backend.device import Device, device_class
from emberlet.wgpu_backend.run.buffers import Allocation
from support.stand_in_gpu import REAL, Raw


@pytest.fixture
def raw() -> Raw:
    return Raw()


@pytest.fixture
def device(raw: Raw) -> Device:
    return Device(raw)


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


def test_an_allocation_that_was_never_made_frees_nothing() -> None:
    Allocation.__new__(Allocation).__del__()
