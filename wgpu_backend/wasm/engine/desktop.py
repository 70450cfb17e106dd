"""Runs modules on a desktop, with wasmtime."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any

from emberlet.errors import BackendError

from ...device import lock
from .watch import forget, watched


class WasmtimeModule:
    """A compiled module. Each instance has its own memory. limited: its runs end after a time and at Ctrl-C (watch.py),
    and its memory cannot grow."""

    def __init__(self, source: bytes, limited: bool = False) -> None:
        import wasmtime

        self.wasmtime = wasmtime
        self.limited = limited
        self.engine = _new_engine(True) if limited else _engine()
        _open.add(self)
        try:
            self.module = wasmtime.Module(self.engine, source)
        except wasmtime.WasmtimeError as error:
            raise ValueError("wasmtime refuses it: {}".format(error))

    def instance(self) -> WasmtimeInstance:
        return WasmtimeInstance(self)


class WasmtimeInstance:
    """A memory and the function that runs the plan on it."""

    def __init__(self, module: WasmtimeModule) -> None:
        _open.add(self)
        self.wasmtime = module.wasmtime
        self.failures = (module.wasmtime.Trap, module.wasmtime.WasmtimeError)
        self.store = module.wasmtime.Store(module.engine)
        self.watched = module.engine if module.limited else None
        if module.limited:
            self.store.set_limits(memory_size=_declared(module), table_elements=0, instances=1, tables=0, memories=1)
            self.store.set_epoch_deadline(1)
        try:
            exports = module.wasmtime.Instance(self.store, module.module, []).exports(self.store)
        except self.failures as error:
            raise BackendError("the module has no memory or its data do not fit there: {}".format(error))
        self.memory = exports.get("memory")
        if not isinstance(self.memory, module.wasmtime.Memory):
            raise ValueError("it exports no memory named 'memory'")
        self.function = self._exported(exports, "run")
        if exports.get("expand") is not None:
            self._call(self._exported(exports, "expand"))

    def _exported(self, exports: Any, name: str) -> Any:
        """A function without arguments and results. Raises ValueError."""
        function = exports.get(name)
        described = function.type(self.store) if isinstance(function, self.wasmtime.Func) else None
        if described is None or described.params or described.results:
            raise ValueError("it exports no function {!r} that takes and returns nothing".format(name))
        return function

    def write(self, at: int, data: bytes) -> None:
        self.memory.write(self.store, data, at)

    def read(self, at: int, nbytes: int) -> bytes:
        return bytes(self.memory.read(self.store, at, at + nbytes))

    def run(self) -> None:
        self._call(self.function)

    def _call(self, function: Any) -> None:
        try:
            if self.watched is None:
                function(self.store)
                return
            self.store.set_epoch_deadline(1)
            with watched(self.watched):
                function(self.store)
        except self.failures as error:
            text = str(error).strip().split("\n")[-1].strip()
            if text.endswith("interrupt"):
                text = "it was interrupted, or took more seconds than emberlet.wgpu_backend.wasm.set_seconds allows"
            raise BackendError("the module stopped: {}".format(text))

    def nbytes(self) -> int:
        """The size of the memory in bytes."""
        found: int = self.memory.data_len(self.store)
        return found

    def release(self) -> None:
        """Does nothing: the memory is freed with the instance."""


_engines: list[Any] = []
_forked: list[bool] = []  # not empty in a process made by fork
_open: weakref.WeakSet[Any] = weakref.WeakSet()
_opening = lock()


@atexit.register
def _close() -> None:
    # wasmtime's finalizers call modules that the interpreter has already torn down at exit.
    for made in list(_open):
        made.__dict__.clear()
    _engines.clear()


def _engine() -> Any:
    with _opening:
        if not _engines:
            _engines.append(_new_engine(False))
        return _engines[0]


def _new_engine(limited: bool) -> Any:
    import wasmtime

    config = wasmtime.Config()
    config.cranelift_opt_level = "speed"
    config.parallel_compilation = not _forked
    config.epoch_interruption = limited
    return wasmtime.Engine(config)


def _declared(module: WasmtimeModule) -> int:
    """The bytes of memory that a module has from the start."""
    for export in module.module.exports:
        if isinstance(export.type, module.wasmtime.MemoryType):
            return int(export.type.limits.min) << 16
    return 0


def _after_fork() -> None:
    # A fork does not copy the compiling threads: an engine that waited for them would hang.
    _forked.append(True)
    _engines.clear()
    forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def compiled(source: bytes, limited: bool = False) -> WasmtimeModule:
    """The module with these bytes. limited: of a file that anybody may have written."""
    try:
        return WasmtimeModule(source, limited)
    except ImportError as error:
        raise _missing(error)


def relaxed() -> bool:
    """Always true: wasmtime has relaxed SIMD."""
    return True


def available() -> None:
    """Raise BackendError without the package wasmtime."""
    try:
        import wasmtime  # noqa: F401
    except ImportError as error:
        raise _missing(error)


def _missing(error: ImportError) -> BackendError:
    from emberlet.host.extras import not_loaded

    return BackendError(not_loaded("backend 'wasm'", "wasmtime", error))
