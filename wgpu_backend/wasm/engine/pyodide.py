"""The browser's own engine, called from Pyodide."""

from __future__ import annotations

import importlib
from typing import Any

from emberlet.errors import BackendError
from js import Uint8Array, WebAssembly
from pyodide.ffi import JsException, to_js

from .probes import NO_SIMD, RELAXED, SIMD


def available() -> None:
    """Raise BackendError if this browser's WebAssembly has no SIMD."""
    if not WebAssembly.validate(to_js(SIMD)):
        raise BackendError(NO_SIMD)


def relaxed() -> bool:
    """Whether this browser has relaxed SIMD."""
    return bool(WebAssembly.validate(to_js(RELAXED)))


class compiled:
    """A compiled module. Each instance has its own memory."""

    def __init__(self, source: bytes) -> None:
        available()
        try:
            self.module = WebAssembly.Module.new(to_js(source))
        except JsException as error:
            raise ValueError(f"the browser refuses it: {error.message}") from error

    def instance(self) -> _Instance:
        try:
            exports = WebAssembly.Instance.new(self.module).exports
            if hasattr(exports, "expand"):  # weights in fewer bits
                exports.expand()
            return _Instance(exports.run, exports.memory)
        except JsException as error:
            raise BackendError(f"the module has no memory or its data do not fit there: {error.message}") from error


def threaded(source: bytes, pages: int | None, most: int | None) -> _Threaded | None:
    """An instance on several threads of a module or, without `pages`, of a compiled model; None if only one thread is
    available."""
    try:
        threads = importlib.import_module("emberlet_threads")  # the page registers threads.mjs
    except ImportError:
        return None
    wanted = [] if most is None else [most]
    if threads.threadsHere(*wanted) < 2:
        return None
    try:
        if pages is None:
            return _Threaded(threads.ofFile(to_js(source), *wanted))
        return _Threaded(threads.Threaded.new(WebAssembly.Module.new(to_js(source)), pages, *wanted))
    except JsException:
        return None  # one thread needs less memory, and its error says what is wrong with the module


class _Instance:
    """A memory and the function that runs the plan on it."""

    def __init__(self, run: Any, memory: Any) -> None:
        self._run = run
        self._bytes = Uint8Array.new(memory.buffer)

    def write(self, at: int, data: bytes) -> None:
        self._bytes.subarray(at, at + len(data)).assign(data)

    def read(self, at: int, nbytes: int) -> bytes:
        found: bytes = self._bytes.subarray(at, at + nbytes).to_bytes()
        return found

    def run(self) -> None:
        try:
            self._run()
        except JsException as error:
            raise BackendError(f"the module stopped: {error.message}") from error

    def nbytes(self) -> int:
        """The size of the memory in bytes."""
        found: int = self._bytes.length
        return found

    def release(self) -> None:
        """Does nothing: the memory is freed with the instance."""


class _Threaded(_Instance):
    """A memory shared by several threads, and the functions that run the plan on it."""

    def __init__(self, made: Any) -> None:
        super().__init__(made.run.bind(made), made.memory)
        self._made = made

    def threads(self) -> int:
        """The number of threads of the next run."""
        found: int = self._made.threads
        return found

    def release(self) -> None:
        """Free the memory in all threads."""
        self._made.release()
