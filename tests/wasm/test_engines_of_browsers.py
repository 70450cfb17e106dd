"""How the engines of browsers are called from MicroPython and Pyodide, on a JavaScript that writes down its calls."""

from __future__ import annotations

import importlib
import sys
import types
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.errors import BackendError
from emberlet.wgpu_backend import micropython as micropython_bindings
from emberlet.wgpu_backend.wasm import engine, set_threads
from emberlet.wgpu_backend.wasm.engine import micropython, probes

BRIDGE = "emberlet.wgpu_backend.micropython.bridge"


class Page:
    """The bridge and its port: `calls` has what was called and written, `answers` what functions return."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.answers: dict[str, Any] = {"validModule": True, "take": "why"}
        self.bridge = self.port = self

    def write(self, data: bytes) -> None:
        self.calls.append(bytes(data))

    def readinto(self, data: bytearray) -> None:
        data[:] = bytes(range(1, len(data) + 1))

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            return self.answers.get(name, f"{name}()")

        return call

    def said(self) -> list[Any]:
        found, self.calls = self.calls, []
        return found


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    found = Page()
    monkeypatch.setitem(sys.modules, BRIDGE, found)  # type: ignore[arg-type]
    monkeypatch.setattr(micropython_bindings, "bridge", found, raising=False)
    return found


def test_micropython_outside_a_browser_has_no_engine() -> None:
    with pytest.raises(BackendError, match="only its build for browsers does"):
        micropython.available()


def test_micropython_runs_a_module(page: Page) -> None:
    made = micropython.compiled(b"module")
    assert page.said() == [
        ("aimAtModule",),
        probes.SIMD,
        ("validModule",),
        ("aimAtModule",),
        b"module",
        ("makeModule",),
    ]
    instance = made.instance()
    assert page.said() == [("makeInstance", "makeModule()")]
    instance.write(64, b"data")
    assert page.said() == [("aimAtMemory", "makeInstance()", 64), b"data"]
    assert instance.read(128, 3) == b"\1\2\3" and page.said() == [("readMemory", "makeInstance()", 128, 3)]
    assert instance.read(128, 0) == b"" and page.said() == []
    instance.run()
    assert instance.nbytes() == "memorySize()" and instance.release() is None
    assert page.said() == [("runInstance", "makeInstance()"), ("memorySize", "makeInstance()")]
    page.answers["runInstance"] = False
    with pytest.raises(BackendError, match="the module stopped: why"):
        instance.run()


def test_micropython_tells_what_the_browser_refuses(page: Page) -> None:
    page.answers["makeInstance"] = None
    with pytest.raises(BackendError, match="do not fit there: why"):
        micropython.compiled(b"module").instance()
    page.answers["makeModule"] = None
    with pytest.raises(ValueError, match="the browser refuses it: why"):
        micropython.compiled(b"module")
    assert micropython.relaxed() is True
    page.answers["validModule"] = False
    page.said()
    assert micropython.relaxed() is False
    assert page.said() == [("aimAtModule",), probes.RELAXED, ("validModule",)]
    with pytest.raises(BackendError, match="has no SIMD"):
        micropython.compiled(b"module")


def test_micropython_runs_a_module_on_threads(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    assert micropython.threaded(b"module", 3, 2) is None  # the page has no threads
    threads = types.ModuleType("emberlet_threads")
    monkeypatch.setitem(sys.modules, "emberlet_threads", threads)
    found: Any = micropython.threaded(b"module", 3, 2)
    assert page.said() == [("aimAtModule",), b"module", ("makeThreaded", threads, 3, 2)]
    assert found.threads() == "threadsOf()"
    found.release()
    assert page.said() == [("threadsOf", "makeThreaded()"), ("releaseThreads", "makeThreaded()")]
    page.answers["makeThreaded"] = None
    assert micropython.threaded(b"module", 3, 2) is None and page.said()[-1] == ("take", None)


# -- Pyodide ----------------------------------------------------------------------------------------------------------


class JsError(Exception):
    message = "no room"


class View(bytearray):
    """Stands for a Uint8Array."""

    length = property(len)

    def subarray(self, begin: int, end: int) -> Any:
        def assign(data: bytes) -> None:
            self[begin:end] = data

        return SimpleNamespace(assign=assign, to_bytes=lambda: bytes(self[begin:end]))


class Threads(types.ModuleType):
    """Stands for threads.mjs."""

    number = 4

    def __init__(self) -> None:
        super().__init__("emberlet_threads")
        self.asked: list[Any] = []
        self.fails = False
        self.Threaded = SimpleNamespace(new=lambda *given: self.made("module", *given))

    def threadsHere(self, *wanted: int) -> int:
        self.asked.append(("here", *wanted))
        return self.number

    def ofFile(self, *given: Any) -> Any:
        return self.made("file", *given)

    def made(self, *given: Any) -> Any:
        if self.fails:
            raise JsError
        self.asked.append(given)
        run = SimpleNamespace(bind=lambda made: lambda: self.asked.append("run"))
        return SimpleNamespace(run=run, memory=SimpleNamespace(buffer=bytes(8)), threads=3,
                               release=lambda: self.asked.append("released"))  # fmt: skip


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module pyodide.py over a WebAssembly that accepts everything but what `refused` names."""
    refused: set[Any] = set()

    def checked(name: str, found: Any) -> Any:
        if name in refused:
            raise JsError
        return found

    exports = SimpleNamespace(run=lambda: checked("run", None), memory=SimpleNamespace(buffer=bytes(16)))
    assembly = SimpleNamespace(
        validate=lambda source: source not in refused,
        Module=SimpleNamespace(new=lambda source: checked("module", ("module", source))),
        Instance=SimpleNamespace(new=lambda module: checked("instance", SimpleNamespace(exports=exports))),
    )
    js, ffi = types.ModuleType("js"), types.ModuleType("pyodide.ffi")
    js.__dict__.update(WebAssembly=assembly, Uint8Array=SimpleNamespace(new=View))
    ffi.__dict__.update(JsException=JsError, to_js=lambda data: data)
    for name, module in {"js": js, "pyodide": types.ModuleType("pyodide"), "pyodide.ffi": ffi}.items():
        monkeypatch.setitem(sys.modules, name, module)
    name = engine.__name__ + ".pyodide"
    found = importlib.import_module(name)
    del sys.modules[name], engine.pyodide  # others must not meet it
    return SimpleNamespace(engine=found, refused=refused)


def test_pyodide_runs_a_module(web: Any) -> None:
    instance = web.engine.compiled(b"module").instance()
    instance.write(3, b"abc")
    assert instance.read(2, 5) == b"\0abc\0" and instance.nbytes() == 16 and instance.release() is None
    instance.run()
    assert web.engine.relaxed() is True
    web.refused.update([probes.RELAXED, "run"])
    assert web.engine.relaxed() is False
    with pytest.raises(BackendError, match="the module stopped: no room"):
        instance.run()
    web.refused.add("instance")
    with pytest.raises(BackendError, match="do not fit there: no room"):
        web.engine.compiled(b"module").instance()
    web.refused.add("module")
    with pytest.raises(ValueError, match="the browser refuses it: no room"):
        web.engine.compiled(b"module")
    web.refused.add(probes.SIMD)
    with pytest.raises(BackendError, match="has no SIMD"):
        web.engine.compiled(b"module")


def test_pyodide_runs_a_module_on_threads(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert web.engine.threaded(b"module", 3, None) is None  # the page has no threads
    threads = Threads()
    monkeypatch.setitem(sys.modules, "emberlet_threads", threads)
    found = web.engine.threaded(b"module", 3, None)
    assert found.threads() == 3 and found.nbytes() == 8
    found.run()
    found.release()
    assert threads.asked == [("here",), ("module", ("module", b"module"), 3), "run", "released"]
    del threads.asked[:]
    assert web.engine.threaded(b"module", 3, 2) and web.engine.threaded(b"file", None, 2)
    assert web.engine.threaded(b"file", None, None)
    assert threads.asked == [("here", 2), ("module", ("module", b"module"), 3, 2), ("here", 2), ("file", b"file", 2),
                             ("here",), ("file", b"file")]  # fmt: skip
    threads.number = 2
    assert web.engine.threaded(b"module", 3, None)
    threads.number = 1
    assert web.engine.threaded(b"module", 3, None) is None
    threads.number, threads.fails = 2, True
    assert web.engine.threaded(b"module", 3, None) is None and web.engine.threaded(b"file", None, None) is None


# -- which engine, and how many threads -------------------------------------------------------------------------------


@pytest.fixture
def threaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What an engine with threads was asked for."""
    asked: list[Any] = []
    here = SimpleNamespace(threaded=lambda *given: asked.append(given) or "threads")
    monkeypatch.setattr(engine, "_here", lambda: here)
    monkeypatch.setattr(engine, "_most", [])
    return asked


def test_modules_that_several_threads_share_get_them(threaded: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    image: Any = SimpleNamespace(threads=2, pages=5, shared_module=lambda: b"shared")
    assert engine.shared(image) == engine.shared_file(b"file", 2) == "threads"
    set_threads(3)
    engine.shared(image)
    engine.shared_file(b"file", 8)
    assert threaded == [(b"shared", 5, None), (b"file", None, None), (b"shared", 5, 3), (b"file", None, 3)]
    image.threads = 1
    assert engine.shared(image) is None and engine.shared_file(b"file", 1) is None
    image.threads = 2
    monkeypatch.setattr(engine, "_here", SimpleNamespace)  # an engine without threads
    assert engine.shared(image) is None and engine.shared_file(b"file", 2) is None
    assert len(threaded) == 4


def test_the_number_of_threads(threaded: list[Any]) -> None:
    import numpy as np

    before = [set_threads(n) for n in (1, 8, np.int64(2), None, True, None)]
    assert before == [None, 1, 8, 2, None, 1]
    for bad in (0, 9, -1, 2.0, "2", 1.5):
        with pytest.raises(BackendError, match="1 to 8 threads"):
            set_threads(bad)
    assert set_threads(None) is None


@pytest.mark.parametrize("name, platform, module", [
    ("cpython", "linux", "desktop"), ("micropython", "webassembly", "micropython"),
    ("micropython", "emscripten", "micropython"),
])  # fmt: skip
def test_each_python_has_its_engine(name: str, platform: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "sys", SimpleNamespace(implementation=SimpleNamespace(name=name), platform=platform))
    assert engine._here().__name__ == f"{engine.__name__}.{module}"


def test_pyodide_has_the_engine_of_its_tab(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(implementation=SimpleNamespace(name="cpython"), platform="emscripten")
    monkeypatch.setattr(engine, "sys", fake)
    monkeypatch.setitem(sys.modules, web.engine.__name__, web.engine)
    monkeypatch.setattr(engine, "pyodide", web.engine, raising=False)
    assert engine._here() is web.engine
