"""wgpu-py's promise over a JavaScript one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from pyodide.ffi import JsException
from wgpu import classes

from .bridge import run_sync
from .errors import translate

T = TypeVar("T")


class GPUPromise(classes.GPUPromise[T]):
    """wgpu-py's `GPUPromise` (its docstring holds), resolved straight from the JavaScript promise.

    `await` and `sync_wait` wait for that promise directly instead of for a callback through the event loop, which saves
    two turns of the loop.
    """

    def __init__(self, title: str, handler: Callable[[Any], T] | None, *, js: Any = None, **details: Any) -> None:
        super().__init__(title, handler, **details)
        self._js = js
        self._listening = False
        if js is not None:
            # The base class keeps promises alive for their callbacks; these may be dropped without being awaited.
            self._UNRESOLVED.discard(self)

    def _settle(self, value: Any, error: JsException | None = None) -> None:
        if self._state == "pending":  # else another waiter was first
            if error is None:
                self._set_input(value)
            else:
                self._set_error(translate(error))

    def _sync_wait(self) -> None:
        if self._js is None:  # chained to another promise by `then`
            run_sync(self._quietly())
            return
        try:
            value, error = run_sync(self._js), None
        except JsException as raised:
            value, error = None, raised
        self._settle(value, error)

    async def _quietly(self) -> None:
        try:
            await self
        except Exception:
            pass  # sync_wait raises it again, from the promise's state

    def __await__(self) -> Generator[Any, Any, T]:
        if self._js is None or self._state != "pending":
            return (yield from super().__await__())
        try:
            value, error = (yield from self._js.__await__()), None
        except JsException as raised:
            value, error = None, raised
        self._settle(value, error)
        result: T = self._resolve()
        return result

    def _listen(self) -> None:
        """Have JavaScript call back, for callers that do not wait."""
        if self._js is not None and not self._listening and self._state == "pending":
            self._listening = True
            self._UNRESOLVED.add(self)
            self._js.then(self._settle, lambda error: self._settle(None, error))

    def _chain(self, to_promise: classes.GPUPromise[Any]) -> None:
        super()._chain(to_promise)
        self._listen()

    def catch(self, callback: Callable[[Exception], None] | None) -> classes.GPUPromise[None]:
        promise = super().catch(callback)
        self._listen()
        return promise


def resolved(title: str, value: T) -> GPUPromise[T]:
    """A promise that is already resolved."""
    promise: GPUPromise[T] = GPUPromise(title, None)
    promise._set_input(value)
    return promise


def rejected(title: str, error: Exception) -> GPUPromise[Any]:
    """A promise that has already failed."""
    promise: GPUPromise[Any] = GPUPromise(title, None)
    promise._set_error(error)
    return promise
