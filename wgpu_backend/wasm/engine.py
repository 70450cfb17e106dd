"""What runs modules: wasmtime on a desktop, the browser's own engine in a tab."""

import atexit
import os
import sys
import weakref

from emberlet.errors import BackendError

from ..device import lock


class WasmtimeModule:
    """A compiled module. Instances have memories of their own."""

    def __init__(self, source):
        import wasmtime

        self.wasmtime = wasmtime
        self.engine = _engine()
        _open.add(self)
        try:
            self.module = wasmtime.Module(self.engine, source)
        except wasmtime.WasmtimeError as error:
            raise ValueError("wasmtime refuses it: {}".format(error))

    def instance(self):
        return WasmtimeInstance(self)


class WasmtimeInstance:
    """A memory, and the function that runs the plan over it."""

    def __init__(self, module):
        _open.add(self)
        self.failures = (module.wasmtime.Trap, module.wasmtime.WasmtimeError)
        self.store = module.wasmtime.Store(module.engine)
        try:
            exports = module.wasmtime.Instance(self.store, module.module, []).exports(self.store)
        except self.failures as error:
            raise BackendError("the module has no memory or its data do not fit there: {}".format(error))
        self.memory = exports["memory"]
        self.function = exports["run"]

    def write(self, at, data):
        self.memory.write(self.store, data, at)

    def read(self, at, nbytes):
        return bytes(self.memory.read(self.store, at, at + nbytes))

    def run(self):
        try:
            self.function(self.store)
        except self.failures as error:
            text = str(error).strip().split("\n")[-1].strip()
            raise BackendError("the module stopped: {}".format(text))

    def nbytes(self):
        """Bytes of the memory."""
        return self.memory.data_len(self.store)


_engines = []
_forked = []  # not empty in a process made by fork
_open = weakref.WeakSet()
_opening = lock()


@atexit.register
def _close():
    # wasmtime's finalizers call what is gone once the interpreter takes modules apart.
    for made in list(_open):
        made.__dict__.clear()
    _engines.clear()


def _engine():
    with _opening:
        if not _engines:
            import wasmtime

            config = wasmtime.Config()
            config.cranelift_opt_level = "speed"
            config.parallel_compilation = not _forked
            _engines.append(wasmtime.Engine(config))
        return _engines[0]


def _after_fork():
    # The threads that compile are gone: an engine that waits for them would wait for ever.
    _forked.append(True)
    _engines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def compiled(source):
    """A module from its bytes. Raises BackendError where nothing here runs WebAssembly."""
    if sys.platform == "emscripten" or sys.implementation.name == "micropython":
        from .page import BrowserModule

        return BrowserModule(source)
    try:
        return WasmtimeModule(source)
    except ImportError as error:
        raise _missing(error)


def relaxed():
    """Whether the engine has relaxed SIMD."""
    if sys.platform == "emscripten":
        from .page import has_relaxed_simd

        return has_relaxed_simd()
    return True


def available():
    """Raise BackendError where nothing here runs WebAssembly."""
    if sys.platform == "emscripten" or sys.implementation.name == "micropython":
        return
    try:
        import wasmtime  # noqa: F401
    except ImportError as error:
        raise _missing(error)


def _missing(error):
    from emberlet.host.extras import sentence

    return BackendError("{} ({})".format(sentence("backend 'wasm'", ["wasmtime"]), error))
