"""What the browser's binding of WebGPU makes of what it is given and of the answers of JavaScript, which here answers
as it is told. test_wgpu_portable.py, test_wgpu_browser.py and test_micropython_device.py run in a browser."""

from __future__ import annotations

import asyncio
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import emberlet.wgpu_backend
import pytest
from emberlet.errors import UnsupportedError

PACKAGE = "emberlet.wgpu_backend."
FOLDER = Path(emberlet.wgpu_backend.__path__[0])


class JsException(Exception):
    """Stands for a JavaScript error."""

    def __init__(self, name: str, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.name, self.message, self.reason = name, message, reason


class Bytes:
    """Stands for a Uint8Array."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)

    def assign(self, data: Any) -> None:
        self.content[:] = data

    def assign_to(self, data: Any) -> None:
        data[:] = self.content


class JavaScript:
    """The bridge: `calls` has the name and arguments of each call; `answers` what a function returns or raises."""

    def __init__(self, **answers: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answers = {"limits": Listed([]), "info": Listed([]), "features": [], **answers}

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            answer = self.answers.get(name, f"{name}()")
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return call

    def said(self) -> list[tuple[Any, ...]]:
        """The calls since the last time."""
        found, self.calls = self.calls, []
        return found


class Listed(list[Any]):
    length = property(len)

    def to_py(self) -> Listed:
        return self


def imported(monkeypatch: pytest.MonkeyPatch, package: str, names: str, fakes: dict[str, Any]) -> SimpleNamespace:
    """Modules of a package whose `__init__` only imports in a browser."""
    holder = types.ModuleType(PACKAGE + package)
    holder.__path__ = [str(FOLDER / package)]
    for name, module in {holder.__name__: holder, **fakes}.items():
        monkeypatch.setitem(sys.modules, name, module)
    found = SimpleNamespace()
    for name in names.split():
        full = f"{holder.__name__}.{name}"
        monkeypatch.delitem(sys.modules, full, raising=False)
        module = importlib.import_module(full)
        monkeypatch.setitem(sys.modules, full, module)
        setattr(found, name, module)
    return found


@pytest.fixture
def js() -> JavaScript:
    return JavaScript()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, js: JavaScript) -> Iterator[SimpleNamespace]:
    """The modules of the package browser over a JavaScript that answers at once."""
    pytest.importorskip("wgpu")

    def wait(promise: Any) -> Any:
        if isinstance(promise, Exception):
            raise promise
        return promise

    ffi = types.ModuleType("pyodide.ffi")
    ffi.__dict__.update(JsException=JsException, can_run_sync=lambda: True, run_sync=wait, jsnull=object(),
                        create_proxy=lambda f: SimpleNamespace(call=f, destroy=lambda: None))  # fmt: skip
    window = types.ModuleType("js")
    window.__dict__["Uint8Array"] = SimpleNamespace(new=Bytes)
    fakes = {"pyodide": types.ModuleType("pyodide"), "pyodide.ffi": ffi, "js": window, "emberlet_webgpu": js}
    names = "bridge errors objects promise pipeline encoder buffer queue device adapter"
    found = imported(monkeypatch, "browser", names, fakes)
    found.js = js
    yield found


@pytest.fixture
def device(web: SimpleNamespace) -> Any:
    adapter = web.adapter.GPU()._adapter("ADAPTER")
    made = web.device.GPUDevice("d", "DEVICE", adapter, set(), {}, web.queue.GPUQueue("", "QUEUE", None))
    web.js.said()
    return made


@pytest.mark.parametrize(
    "info, summary",
    [
        ([("device", "card"), ("description", "d"), ("type", "discrete GPU"), ("backend", "vulkan")],
         "card (discrete GPU) via vulkan"),
        ([("description", "d")], "d (unknown) via WebGPU"),
        ([], "unnamed (unknown) via WebGPU"),
    ],
)  # fmt: skip
def test_adapters_are_named_as_far_as_they_are_known(
    web: SimpleNamespace, js: JavaScript, info: Any, summary: str
) -> None:
    js.answers["info"] = Listed(info)
    assert web.adapter.GPU()._adapter("ADAPTER").summary == summary


def test_adapters_that_look_alike_are_listed_once(web: SimpleNamespace, js: JavaScript) -> None:
    infos = {"A": [("vendor", "a")], "B": [("vendor", "b")], "C": [("vendor", "a")]}
    js.answers["info"] = lambda adapter: Listed(infos[adapter])
    js.answers["requestAdapters"] = list(infos)
    assert [a._internal for a in web.adapter.GPU().enumerate_adapters_sync()] == ["A", "B"]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda d, b: d.queue.write_buffer(b, 0, b"abcd", 5), "the data has 4"),
        (lambda d, b: d.queue.write_buffer(b, 0, b"abcd", -4, 4), "the data has 4"),
        (lambda d, b: d.queue.write_buffer(b, 0, b"abcd", 0, 8), "the data has 4"),
        (lambda d, b: d.queue.write_buffer(b, 28, b"abcdefgh"), "the buffer has"),
        (lambda d, b: d.queue.write_buffer(b, -4, b"abcd"), "the buffer has"),
        (lambda d, b: d.queue.write_buffer(b, 2, b"abcd"), "multiples of 4"),
        (lambda d, b: d.queue.write_buffer(b, 0, b"abcdef"), "multiples of 4"),
        (lambda d, b: d.queue.read_buffer_async(b, 0, 36), "has 32"),
        (lambda d, b: d.queue.read_buffer_async(b, -4, 4), "has 32"),
        (lambda d, b: d.queue.read_buffer_async(b, 28, 8), "has 32"),
        (lambda d, b: d.queue.read_buffer_async(b, 2, 4), "multiples"),
        (lambda d, b: d.queue.read_buffer_async(b, 0, 6), "multiples"),
        (lambda d, b: d.create_command_encoder().copy_buffer_to_buffer(b, 2, b, 0, 4), "multiples of 4"),
        (lambda d, b: d.create_command_encoder().copy_buffer_to_buffer(b, 0, b, 16, 6), "multiples of 4"),
        (lambda d, b: d.create_command_encoder().clear_buffer(b, 2, 4), "multiples of 4"),
        (lambda d, b: d.create_buffer_with_data(data=b"", usage=0x80), "no data"),
    ],
)
def test_parts_that_a_buffer_does_not_have_are_refused(device: Any, call: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call(device, device.create_buffer(size=32, usage=1))


@pytest.mark.parametrize(
    ("offset", "size", "why"),
    [(0, 8, "before what is mapped"), (4, 4, "multiple of 8"), (-8, 8, "multiple of 8"), (8, 6, "multiple of 4"),
     (8, 0, "multiple of 4"), (16, 12, "past the end")],
)  # fmt: skip
def test_parts_that_are_not_mapped_are_not_read(device: Any, offset: int, size: int, why: str) -> None:
    buffer = device.create_buffer(size=32, usage=1)
    with pytest.raises(RuntimeError, match="mapped; this one is unmapped"):
        buffer.read_mapped()
    buffer.map_sync("READ", 8, 16)
    with pytest.raises(RuntimeError, match="the other way"):
        buffer.write_mapped(b"abcd")
    with pytest.raises(ValueError, match=why):
        buffer.read_mapped(offset, size)


def test_an_adapter_takes_features_that_it_or_webgpu_names(web: SimpleNamespace) -> None:
    adapter = web.adapter.GPU()._adapter("ADAPTER")
    adapter._features = {"odd-one"}
    assert [adapter._feature(name) for name in ("odd_one", "shader-f16")] == ["odd-one", "shader-f16"]
    with pytest.raises(KeyError, match="'other-one'"):
        adapter._feature("other_one")


def test_the_default_device_is_made_once(web: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    import wgpu.utils.device

    helper = wgpu.utils.device.helper
    asked: list[Any] = []

    async def request_device_async(**details: Any) -> str:
        asked.append(details)
        return "new"

    async def request_adapter_async(**details: Any) -> Any:
        asked.append(details)
        return SimpleNamespace(features={"shader-f16"}, request_device_async=request_device_async)

    monkeypatch.setattr(helper, "_the_device", None)
    monkeypatch.setattr(helper, "_adapter_kwargs", {"power_preference": "low-power"})
    monkeypatch.setattr(helper, "_device_kwargs", {"preferred_features": ["shader-f16", "subgroups"], "label": "d"})
    monkeypatch.setattr(wgpu, "gpu", SimpleNamespace(request_adapter_async=request_adapter_async))
    for _ in range(2):
        found = asyncio.run(web.adapter.get_default_device_async(power_preference="high-performance"))
        assert found == helper._the_device == "new"
    assert asked == [{"power_preference": "high-performance"}, {"label": "d", "required_features": {"shader-f16"}}]


def test_installing_twice_changes_nothing(web: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    import wgpu
    import wgpu.backends

    auto = types.ModuleType("wgpu.backends.auto")
    monkeypatch.setattr(wgpu, "gpu", None)
    monkeypatch.setattr(wgpu.backends, "js_webgpu", None, raising=False)
    monkeypatch.setitem(sys.modules, "wgpu.backends.js_webgpu", auto)
    monkeypatch.setitem(sys.modules, "wgpu.backends.auto", auto)
    install = importlib.import_module(PACKAGE + "browser.install").install
    del sys.modules[PACKAGE + "browser.install"]
    first = install()
    assert first is install() is wgpu.gpu is auto.gpu is sys.modules["wgpu.backends.js_webgpu"].gpu
    monkeypatch.delitem(sys.modules, "wgpu.backends.auto")
    monkeypatch.setattr(wgpu, "gpu", None)
    assert install() is not first and auto.gpu is first


def test_errors_of_javascript_have_counterparts(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    e = web.errors
    lost = e.translate(JsException("DeviceLostError", "", "destroyed"))
    assert isinstance(lost, e.DeviceLostError)
    assert str(lost) == "The GPU device was lost (destroyed): the browser gives no cause" and lost.reason == "destroyed"
    assert e.translate(JsException("GPUPipelineError", "bad", "validation")).reason == "validation"
    assert isinstance(e.translate(JsException("TypeError", "bad")), TypeError)
    assert "OddError: bad" in str(e.translate(JsException("OddError", "bad")))
    assert "Validation" in type(e.named("GPUValidationError", "bad")).__name__
    assert "Internal" in type(e.named("OddError", "bad")).__name__
    js.answers["popErrorScope"] = Listed(["GPUValidationError", "bad"])
    assert "bad" in str(device.pop_error_scope_sync())
    js.answers["popErrorScope"] = Listed([])
    assert device.pop_error_scope_sync() is None
    seen: list[Any] = []
    device.onuncapturederror = seen.append
    js.said()[-1][-1].call("GPUInternalError", "late")
    assert str(seen[0].args[0] if seen[0].args else seen[0]).endswith("late")
    with pytest.raises(UnsupportedError, match=r"GPUDevice.create_texture"):
        device.create_texture()


def test_promises_are_settled_once(web: SimpleNamespace) -> None:
    p = web.promise
    assert p.resolved("r", 3).sync_wait() == 3
    with pytest.raises(ValueError, match="bad"):
        p.rejected("r", ValueError("bad")).sync_wait()
    promise = p.GPUPromise("t", lambda x: x + 1, js=4)
    assert promise.sync_wait() == 5
    promise._settle(9)
    assert promise.sync_wait() == 5
    listeners: list[Any] = []

    async def listening() -> None:
        waiting = p.GPUPromise("t", None, js=SimpleNamespace(then=lambda *both: listeners.append(both)))
        waiting.then(lambda _: None)
        waiting.then(lambda _: None)

    asyncio.run(listening())
    assert len(listeners) == 1
    assert promise not in p.GPUPromise._UNRESOLVED and p.GPUPromise("t", None) in p.GPUPromise._UNRESOLVED
    failing = p.GPUPromise("t", None, js=JsException("GPUInternalError", "no"))
    with pytest.raises(Exception, match="no"):
        failing.sync_wait()


def test_promises_are_awaited(web: SimpleNamespace) -> None:
    p = web.promise
    waits: list[int] = []

    class Later:
        """Stands for a promise of JavaScript."""

        def __init__(self, value: Any) -> None:
            self.value = value

        def __await__(self) -> Any:
            waits.append(1)
            yield from asyncio.sleep(0).__await__()
            if isinstance(self.value, Exception):
                raise self.value
            return self.value

    async def awaited() -> None:
        promise = p.GPUPromise("t", lambda x: x + 1, js=Later(4))
        assert await promise == 5 and await promise == 5
        assert waits == [1]  # its result is known the second time
        assert await p.resolved("r", 3) == 3
        with pytest.raises(Exception, match="no"):
            await p.GPUPromise("t", None, js=Later(JsException("GPUInternalError", "no")))

    asyncio.run(awaited())


# -- MicroPython's ----------------------------------------------------------------------------------------------------
