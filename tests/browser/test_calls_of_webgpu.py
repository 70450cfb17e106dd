"""What the browser's two bindings of WebGPU pass to JavaScript, and make of its answers: without a browser, on a
JavaScript that writes down how it is called."""

from __future__ import annotations

import asyncio
import importlib
import io
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import emberlet.wgpu_backend
import pytest
from emberlet.errors import BackendError, UnsupportedError

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


def test_adapters_are_asked_for_and_described(web: SimpleNamespace, js: JavaScript) -> None:
    gpu = web.adapter.GPU()
    js.answers["gpu"] = "NAVIGATOR"
    js.answers["limits"] = Listed([("maxBufferSize", 99.0), ("maxTextureDimension2D", 8)])
    js.answers["info"] = Listed([("vendor", "acme"), ("architecture", "old"), ("device", None), ("description", None),
                                 ("isFallbackAdapter", True), ("subgroupMinSize", 4)])  # fmt: skip
    js.answers["features"] = ["shader-f16"]
    adapter = gpu.request_adapter_sync(power_preference="low-power", force_fallback_adapter=1)
    assert ("requestAdapter", "NAVIGATOR", "core", "low-power", True) in js.said()
    assert adapter.limits == {"max-buffer-size": 99, "max-texture-dimension-2d": 8}
    assert adapter.features == {"shader-f16"}
    assert adapter.summary == "acme old (CPU) via WebGPU"
    assert adapter.info["subgroup_min_size"] == 4
    js.answers["requestDevice"] = SimpleNamespace(queue="QUEUE")
    js.answers["list"] = lambda *names: list(names)
    made = adapter.request_device_async(label="l", required_features=["shader_f16"], required_limits={
        "max_buffer_size": 50, "max-texture-dimension-2d": None}).sync_wait()  # fmt: skip
    asked = next(call for call in js.said() if call[0] == "requestDevice")
    assert asked[2:] == ("l", ["shader-f16"], "maxBufferSize", 50, "maxTextureDimension2D", 8)
    assert made.queue._internal == "QUEUE"
    with pytest.raises(KeyError, match="unknown feature"):
        adapter.request_device_async(required_features=["no-such"])
    with pytest.raises(KeyError, match="unknown limit"):
        adapter.request_device_async(required_limits={"no-such": 1})


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


def test_a_page_without_webgpu_says_why(web: SimpleNamespace, js: JavaScript) -> None:
    gpu = web.adapter.GPU()
    for answer in (None, sys.modules["pyodide.ffi"].jsnull):
        js.answers["gpu"] = answer
        js.answers["secure"] = True
        with pytest.raises(RuntimeError, match="WebGPU"):
            gpu.request_adapter_sync()
        js.answers["secure"] = False
        with pytest.raises(RuntimeError, match="secure context"):
            gpu.enumerate_adapters_sync()
        with pytest.raises(RuntimeError, match="gave no adapter"):
            gpu._adapter(answer)


def test_adapters_that_look_alike_are_listed_once(web: SimpleNamespace, js: JavaScript) -> None:
    infos = {"A": [("vendor", "a")], "B": [("vendor", "b")], "C": [("vendor", "a")]}
    js.answers["info"] = lambda adapter: Listed(infos[adapter])
    js.answers["requestAdapters"] = list(infos)
    assert [a._internal for a in web.adapter.GPU().enumerate_adapters_sync()] == ["A", "B"]


def test_buffers_of_a_device(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    buffer = device.create_buffer(label="b", size=16, usage="STORAGE|COPY_DST")
    assert js.said() == [("createBuffer", "DEVICE", "b", 16, 0x88, False)]
    assert (buffer.size, buffer.map_state) == (16, "unmapped")
    assert device.create_buffer(size=16, usage=1, mapped_at_creation=True).map_state == "mapped"
    js.said()
    data = device.create_buffer_with_data(data=b"abcde", usage=0x80)
    assert data.size == 8
    name, _, _, size, usage, view = js.said()[0]
    assert (name, size, usage, bytes(view)) == ("createBufferWithData", 8, 0x80, b"abcde")
    with pytest.raises(ValueError, match="no data"):
        device.create_buffer_with_data(data=b"", usage=0x80)
    js.answers["createBuffer"] = JsException("RangeError", "too large")
    with pytest.raises(Exception, match="too large") as caught:
        device.create_buffer(size=4, usage=1)
    assert "OutOfMemory" in type(caught.value).__name__


def test_uploads(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    buffer = device.create_buffer(size=1 << 16, usage=0x8)
    js.said()
    queue = device.queue
    queue.write_buffer(buffer, 4, b"abcdefgh")
    name, owner, target, offset, scratch = js.said()[0]
    assert (name, owner, target, offset) == ("writeSmall", "QUEUE", buffer._internal, 4)
    assert bytes(scratch.content) == b"abcdefgh"
    queue.write_buffer(buffer, 0, b"12345678")
    assert js.said()[0][4] is scratch  # arrays of one size are used again
    for size in range(4, 4 * 20, 4):
        queue.write_buffer(buffer, 0, bytes(size))
    assert len(queue._scratch) == 3  # forgotten when there were 16
    js.said()
    queue.write_buffer(buffer, 8, b"abcdefgh", 4)
    assert [(c[0], c[3], bytes(c[4]), c[5], c[6]) for c in js.said()] == [("writeBuffer", 8, b"abcdefgh", 4, 4)]
    queue.write_buffer(buffer, 8, b"abcdefgh", 0, 4)
    assert [(c[0], c[5], c[6]) for c in js.said()] == [("writeBuffer", 0, 4)]
    queue.write_buffer(buffer, 0, bytes(16 * 1024))
    queue.write_buffer(buffer, 0, bytes(16 * 1024 + 4))
    assert [c[0] for c in js.said()] == ["writeSmall", "writeBuffer"]
    queue.write_buffer(buffer, (1 << 16) - 4, b"last")
    js.said()
    queue.write_buffer(buffer, 0, b"abcd", 4)
    assert [(c[0], c[5], c[6]) for c in js.said()] == [("writeBuffer", 4, 0)]
    for place, data, start, size, why in [
        (0, b"abcd", 5, 0, "the data has 4"), (0, b"abcd", -4, 4, "the data has 4"),
        (0, b"abcd", 0, 8, "the data has 4"),
        ((1 << 16) - 4, b"abcdefgh", 0, 0, "the buffer has"), (-4, b"abcd", 0, 0, "the buffer has"),
        (2, b"abcd", 0, 0, "multiples of 4"), (0, b"abcdef", 0, 0, "multiples of 4"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=why):
            queue.write_buffer(buffer, place, data, start, size)


def test_downloads(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    buffer = device.create_buffer(size=16, usage=1)
    staged = Bytes(8)
    staged.content[:] = b"abcdefgh"
    js.answers["bytesOfStaging"] = staged
    js.answers["readBuffer"] = "STAGING"
    js.said()
    assert bytes(device.queue.read_buffer(buffer, 8)) == b"abcdefgh"
    assert js.said() == [("readBuffer", device._watch, buffer._internal, 8, 8), ("bytesOfStaging", "STAGING"),
                         ("destroy", "STAGING")]  # fmt: skip
    assert bytes(device.queue.read_buffer(buffer, 0, 8)) == b"abcdefgh"
    assert js.said()[0][3:] == (0, 8)
    for offset, size, why in [(0, 20, "has 16"), (-4, 4, "has 16"), (12, 8, "has 16"), (2, 4, "multiples"),
                              (0, 6, "multiples")]:  # fmt: skip
        with pytest.raises(ValueError, match=why):
            device.queue.read_buffer_async(buffer, offset, size)
    device.queue.on_submitted_work_done_sync()
    assert js.said() == [("workDone", device._watch, "QUEUE")]


def test_mapped_buffers(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    buffer = device.create_buffer(size=32, usage=1)
    part = Bytes(8)
    js.answers["part"] = part
    js.said()
    with pytest.raises(RuntimeError, match="mapped; this one is unmapped"):
        buffer.read_mapped()
    with pytest.raises(RuntimeError, match="can only unmap"):
        buffer.unmap()
    buffer.map_sync("READ", 8, 16)
    assert js.said() == [("mapAsync", device._watch, buffer._internal, 1, 8, 16)]
    assert buffer.map_state == "mapped"
    with pytest.raises(RuntimeError, match="only map a buffer that is unmapped"):
        buffer.map_sync("READ")
    found = buffer.read_mapped(16, 8)
    assert js.said() == [("mappedRange", buffer._internal, 8, 16), ("part", "mappedRange()", 8, 16)]
    assert (found.nbytes, found.readonly) == (8, False)
    assert buffer.read_mapped(16, 8, copy=False).readonly
    assert [c[0] for c in js.said()] == ["part"]  # the range is fetched once
    part.content = bytearray(16)
    assert buffer.read_mapped().nbytes == 16
    with pytest.raises(RuntimeError, match="the other way"):
        buffer.write_mapped(b"abcd")
    for offset, size, why in [(0, 8, "before what is mapped"), (4, 4, "multiple of 8"), (-8, 8, "multiple of 8"),
                              (8, 6, "multiple of 4"), (8, 0, "multiple of 4"), (16, 12, "past the end")]:  # fmt: skip
        with pytest.raises(ValueError, match=why):
            buffer.read_mapped(offset, size)
    buffer.unmap()
    assert buffer.map_state == "unmapped"
    buffer.map_sync(2)
    js.said()
    buffer.write_mapped(b"abcdefg", 24)
    assert [(c[0], c[-2], bytes(c[-1])) for c in js.said()[1:]] == [("put", 24, b"abcdefg")]
    with pytest.raises(ValueError, match="past the end"):
        buffer.write_mapped(b"abcdefghi", 24)
    buffer.unmap()
    js.answers["mapAsync"] = lambda *_: JsException("GPUValidationError", "not now")
    with pytest.raises(Exception, match="not now"):
        buffer.map_sync(1)
    assert buffer.map_state == "unmapped"
    js.said()
    buffer.destroy()
    assert js.said() == [("destroy", buffer._internal)]


def test_commands(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    source, target = (device.create_buffer(size=32, usage=1) for _ in range(2))
    encoder = device.create_command_encoder(label="e")
    js.said()
    encoder.copy_buffer_to_buffer(source, 4, target, 8, 12)
    encoder.clear_buffer(target, 4, 8)
    assert [c[2:] for c in js.said()] == [(source._internal, 4, target._internal, 8, 12), (target._internal, 4, 8)]
    for arguments in [(source, 2, target, 0, 4), (source, 0, target, 2, 4), (source, 0, target, 0, 6)]:
        with pytest.raises(ValueError, match="multiples of 4"):
            encoder.copy_buffer_to_buffer(*arguments)
    for arguments in [(target, 2, 4), (target, 0, 6)]:
        with pytest.raises(ValueError, match="multiples of 4"):
            encoder.clear_buffer(*arguments)
    encoder.copy_buffer_to_buffer(source, 0, target, 0)
    run = encoder.begin_compute_pass(label="p")
    group = device.create_bind_group(
        layout=SimpleNamespace(_internal="LAYOUT"),
        entries=[
            {"binding": 0, "resource": source},
            {"binding": 2, "resource": {"buffer": target, "offset": 4, "size": 8}},
        ],
    )
    js.said()
    run.set_bind_group(1, group)
    run.set_bind_group(1, group, [4, 8])
    run.set_bind_group(1, group, [1, 2, 3, 4], 1, 2)
    run.dispatch_workgroups(2, 3)
    run.end()
    assert [(c[0], *c[2:]) for c in js.said()] == [
        ("setBindGroup", 1, group._internal), ("setBindGroupOffsets", 1, group._internal, 4, 8),
        ("setBindGroupOffsets", 1, group._internal, 2, 3), ("dispatch", 2, 3, 1), ("end",)]  # fmt: skip
    for some in [(1, None), (None, 2)]:
        with pytest.raises(ValueError, match="go together"):
            run.set_bind_group(1, group, [1, 2], *some)
    run.set_immediates(0, b"abcdefgh", 4)
    run.set_immediates(0, b"abcdefgh", 2, 3)
    assert [c[4:] for c in js.said()] == [(4, 4), (2, 3)]
    commands = encoder.finish()
    assert {id(x) for x in commands._used} >= {id(source), id(target), id(group)} and encoder._used == []
    device.queue.submit([commands])
    assert commands._used is None
    assert js.said()[-1] == ("submit", "QUEUE", commands._internal)


def test_groups_and_pipelines(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    p = web.pipeline
    buffer = device.create_buffer(size=32, usage=1)
    flat, buffers = p.bind_group_entries([{"binding": 3, "resource": buffer},
                                          {"binding": 1, "resource": {"buffer": buffer, "offset": 8}}])  # fmt: skip
    assert flat == [3, buffer._internal, 0, None, 1, buffer._internal, 8, None] and buffers == (buffer, buffer)
    entry = {"binding": 1, "visibility": "COMPUTE", "buffer": {}}
    assert p.bind_group_layout_entries([entry]) == [1, 4, "uniform", False, 0]
    entry["buffer"] = {"type": "storage", "has_dynamic_offset": 1, "min_binding_size": 16}
    assert p.bind_group_layout_entries([entry]) == [1, 4, "storage", True, 16]
    with pytest.raises(UnsupportedError, match="binding 1"):
        p.bind_group_layout_entries([{"binding": 1, "visibility": 4}])
    module = device.create_shader_module(code="fn main() {}")
    js.answers["record"] = lambda *parts: list(parts)
    assert p.compute_stage({"module": module}) == (module._internal, None, None)
    stage = p.compute_stage({"module": module, "entry_point": "main", "constants": {"a": 1, 2: True}})
    assert stage == (module._internal, "main", ["a", 1.0, "2", 1.0])
    assert p.pipeline_layout_of("auto") == "auto"
    layout = device.create_pipeline_layout(bind_group_layouts=[], immediate_size=0)
    assert js.said()[-1] == ("createPipelineLayout", "DEVICE", "", None)
    assert p.pipeline_layout_of(layout) == layout._internal
    with pytest.raises(TypeError, match="GPUPipelineLayout or 'auto'"):
        p.pipeline_layout_of(None)
    with pytest.raises(TypeError, match="WGSL source as a str"):
        device.create_shader_module(code=b"")
    with pytest.raises(ValueError, match=r"has no other, some; it has"):
        web.objects.check_struct("BufferBinding", {"some": 1, "other": 2, "buffer": 3})
    with pytest.raises(TypeError, match="or a dict, got 3"):
        web.objects.check_struct("BufferBinding", 3)
    from wgpu import structs

    binding = structs.BufferBinding(buffer=buffer)
    assert web.objects.check_struct("BufferBinding", binding) is binding


def test_objects_free_their_memory_once(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    buffer = device.create_buffer(size=16, usage=1)
    js.said()
    buffer.destroy()
    assert js.said() == [("destroy", "createBuffer()")]
    for freed in ([("destroy", "createBuffer()")], []):
        buffer._release()
        assert js.said() == freed
    buffer.destroy()
    queries = web.encoder.GPUQuerySet("q", "QUERIES", device, "timestamp", 2)
    queries.destroy()
    assert js.said() == [("destroy", "QUERIES")]
    queries._internal = None
    queries.destroy()
    assert js.said() == []
    watch = device._watch
    for freed in ([("unwatch", watch), ("destroy", "DEVICE")], []):
        device._release()
        assert [c for c in js.said() if c[0] in ("unwatch", "destroy")] == freed


def test_a_buffer_mapped_from_the_start_is_written(web: SimpleNamespace, device: Any, js: JavaScript) -> None:
    made = device.create_buffer(size=16, usage=1, mapped_at_creation=True)
    js.said()
    made.write_mapped(memoryview(b"a-b-c-d-")[::2], 8)
    (_, internal, *part), (*_, written) = js.said()[:2]
    assert (internal, part) == (made._internal, [0, 16]) and bytes(written) == b"abcd"
    with pytest.raises(RuntimeError, match="mapped the other way"):
        made.read_mapped()


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


def test_waiting_where_python_cannot_be_suspended_is_refused(web: SimpleNamespace, monkeypatch: Any) -> None:
    monkeypatch.setattr(web.bridge, "can_run_sync", lambda: False)
    with pytest.raises(RuntimeError, match="cannot wait here"):
        web.promise.GPUPromise("t", None, js=1).sync_wait()


# -- MicroPython's ----------------------------------------------------------------------------------------------------


class Port(io.BytesIO):
    """The channel for bytes: what was written, and what is to be read."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.content = b""

    def write(self, data: Any) -> int:
        self.written.append(bytes(data))
        return memoryview(data).nbytes

    def readinto(self, data: Any) -> int:
        data[:] = self.content[: len(data)]
        return len(data)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, js: JavaScript) -> SimpleNamespace:
    """The module micropython.device over the same JavaScript."""
    js.answers |= {"available": True, "secure": True, "info": ("acme", "old", "", "", False), "limits": [
        ("maxBufferSize", 99)]}  # fmt: skip
    port = Port()
    bridge = types.ModuleType(PACKAGE + "micropython.bridge")
    bridge.__dict__.update(bridge=js, port=port)
    found = imported(monkeypatch, "micropython", "device", {bridge.__name__: bridge})
    found.js, found.port = js, port
    return found


def settled(promise: Any, value: Any = None, error: str | None = None) -> Any:
    """The result of awaiting a Promise whose JavaScript one gives (value, error)."""

    def given() -> Iterator[Any]:
        yield from ()
        return value, error

    promise._promise = given()
    steps = promise.__await__()
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        return stop.value


@pytest.fixture
def micro(small: SimpleNamespace) -> Any:
    adapter = settled(small.device.gpu.request_adapter_async(), "ADAPTER")
    made = settled(adapter.request_device_async(), "DEVICE")
    small.js.said()
    return made


def test_micropython_asks_for_adapters(small: SimpleNamespace, js: JavaScript) -> None:
    gpu = small.device.gpu
    adapter = settled(gpu.request_adapter_async("low-power", True), "ADAPTER")
    assert ("requestAdapter", "low-power", True) in js.said()
    assert adapter.summary == "acme old (unknown) via WebGPU"
    assert adapter.limits == {"max-buffer-size": 99}
    for info, summary in [(("a", "b", "card", "d", True), "card (CPU)"), (("a", "b", "", "d", True), "d (CPU)"),
                          (("", "", "", "", False), "unnamed (unknown)")]:  # fmt: skip
        js.answers["info"] = info
        assert small.device.Adapter("A").summary == summary + " via WebGPU"
    adapter.request_device_async(("shader-f16",), {"max-buffer-size": 5})
    assert js.said()[-1] == ("requestDevice", "ADAPTER", '["shader-f16"]', '{"maxBufferSize": 5}')
    with pytest.raises(BackendError, match="gave no adapter"):
        settled(gpu.request_adapter_async(), None)
    with pytest.raises(BackendError, match="denied"):
        settled(gpu.request_adapter_async(), None, "denied")
    js.answers["available"] = False
    with pytest.raises(BackendError, match="this browser has none"):
        gpu.request_adapter_async()
    js.answers["secure"] = False
    with pytest.raises(BackendError, match="no secure context"):
        gpu.request_adapter_async()


def test_micropython_copies_bytes(small: SimpleNamespace, micro: Any, js: JavaScript) -> None:
    queue, port = micro.queue, small.port
    buffer = micro.create_buffer(16, 0x88, "b")
    assert js.said() == [("createBuffer", "DEVICE", "b", 16, 0x88)]
    assert micro.create_buffer_with_data(b"abcde", 1).size == 8
    assert [c[0] for c in js.said()] == ["createMapped", "unmap"] and port.written == [b"abcde"]
    port.written.clear()
    queue.write_buffer(buffer, 8, b"abcdefgh")
    assert js.said() == [("aimAt", "queue()", buffer._internal, 8)] and port.written == [b"abcdefgh"]
    queue.write_buffer(buffer, 0, b"abcdefgh", 4)
    queue.write_buffer(buffer, 12, b"abcdefgh", 0, 4)
    assert port.written[-3:] == [b"efgh", b"abcd", b"abcd"] and js.said()[-1][-1] == 12
    for at, data in [(2, b"abcd"), (0, b"abcdef"), (12, b"abcdefgh")]:
        with pytest.raises(BackendError, match="cannot write"):
            queue.write_buffer(buffer, at, data)
    port.content = b"12345678"
    assert bytes(settled(queue.read_buffer_async(buffer, 8), "STAGING")) == b"12345678"
    assert js.said()[-3:] == [("read", micro._state, buffer._internal, 8, 8), ("readFrom", "STAGING", 8),
                              ("doneReading", micro._state, "STAGING")]  # fmt: skip
    assert bytes(settled(queue.read_buffer_async(buffer, 12, 4), "STAGING")) == b"1234"
    for at, size in [(2, 4), (0, 6), (12, 8)]:
        with pytest.raises(BackendError, match="cannot read"):
            queue.read_buffer_async(buffer, at, size)
    assert settled(queue.on_submitted_work_done_async(), 5) is None


def test_micropython_records_commands(small: SimpleNamespace, micro: Any, js: JavaScript) -> None:
    source, target = micro.create_buffer(16, 1), micro.create_buffer(32, 1)
    encoder = micro.create_command_encoder()
    js.said()
    encoder.copy_buffer_to_buffer(source, 4, target, 8)
    encoder.copy_buffer_to_buffer(source, 4, target, 8, 4)
    encoder.clear_buffer(target, 4)
    encoder.clear_buffer(target, 4, 8)
    assert [c[2:] for c in js.said()] == [(source._internal, 4, target._internal, 8, 12),
                                          (source._internal, 4, target._internal, 8, 4),
                                          (target._internal, 4, 28), (target._internal, 4, 8)]  # fmt: skip
    micro.create_bind_group(
        "LAYOUT",
        [{"binding": 0, "resource": source}, {"binding": 1, "resource": {"buffer": target, "offset": 4, "size": 8}}],
    )
    assert js.said()[-1][-8:] == (0, source._internal, 0, None, 1, target._internal, 4, 8)
    run = encoder.begin_compute_pass()
    js.said()
    run.dispatch_workgroups(5)
    assert js.said()[-1][2:] == (5, 1, 1)
    micro.queue.submit([encoder.finish()])
    assert js.said()[-1] == ("submit", "queue()", "finish()")
    module = micro.create_shader_module("code")
    pipeline = micro.create_compute_pipeline({"module": module, "entry_point": "main"})
    assert js.said()[-1] == ("createPipeline", "DEVICE", "", module._internal, "main")
    assert pipeline.get_bind_group_layout(2) == "layoutOf()"
    assert settled(micro.create_compute_pipeline_async({"module": module}), "P")._internal == "P"
    with pytest.raises(BackendError, match="only layout='auto'"):
        micro.create_compute_pipeline({"module": module}, "other")
    js.answers["createBuffer"] = None
    js.answers["take"] = "out of memory"
    with pytest.raises(BackendError, match="out of memory"):
        micro.create_buffer(4, 1)
