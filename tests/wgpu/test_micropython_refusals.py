"""Errors of MicroPython's device if a page has no GPU; the JavaScript side is replaced."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.errors import BackendError

DEVICE = "emberlet.wgpu_backend.micropython.device"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with a bridge whose answers a test sets."""
    bridge = SimpleNamespace(available=lambda: False, secure=lambda: True)
    stub = SimpleNamespace(bridge=bridge, port=None)
    monkeypatch.setitem(sys.modules, "emberlet.wgpu_backend.micropython.bridge", stub)
    monkeypatch.delitem(sys.modules, DEVICE, raising=False)
    yield importlib.import_module(DEVICE)
    sys.modules.pop(DEVICE, None)  # it holds the stub


@pytest.mark.parametrize(
    ("secure", "reason"), [(True, "this browser has none"), (False, "serve it over https or from http://localhost")]
)
def test_a_page_without_webgpu_says_why(device: Any, secure: bool, reason: str) -> None:
    device.bridge.secure = lambda: secure
    with pytest.raises(BackendError, match=reason):
        device.gpu.request_adapter_async()


def test_no_adapter_is_not_no_webgpu(device: Any) -> None:
    with pytest.raises(BackendError, match="gave no adapter"):
        device.gpu._adapter(None)


# wgpu-py's names of limits -> JavaScript's
NAMES = {
    "max-texture-dimension-2d": "maxTextureDimension2D", "max-bind-groups": "maxBindGroups",
    "max-storage-buffers-per-shader-stage": "maxStorageBuffersPerShaderStage", "max-buffer-size": "maxBufferSize",
    "max-compute-workgroup-size-x": "maxComputeWorkgroupSizeX",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_limits_have_the_names_of_wgpu_py(device: Any, name: str) -> None:
    assert device._camel(name) == device._camel(name.replace("-", "_")) == NAMES[name]
    assert device._kebab(NAMES[name]) == name
