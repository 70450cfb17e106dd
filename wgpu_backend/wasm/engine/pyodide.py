"""The browser's own engine, called from Pyodide."""

from __future__ import annotations

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
            return _Instance(WebAssembly.Instance.new(self.module))
        except JsException as error:
            raise BackendError(f"the module has no memory or its data do not fit there: {error.message}") from error


class _Instance:
    """A memory and the function that runs the plan on it."""

    def __init__(self, instance: Any) -> None:
        self._run = instance.exports.run
        self._bytes = Uint8Array.new(instance.exports.memory.buffer)

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
