"""WebAssembly as a device: each recorded graph becomes a Wasm module with its own linear memory."""


def __getattr__(name):
    if name == "WasmBackend":
        from .backend import WasmBackend

        return WasmBackend
    if name == "set_threads":
        from .engine import set_threads

        return set_threads
    if name == "set_seconds":
        from .engine.watch import set_seconds

        return set_seconds
    try:
        return __import__("emberlet.wgpu_backend.wasm." + name, None, None, ("*",))
    except ImportError:
        raise AttributeError("module 'emberlet.wgpu_backend.wasm' has no attribute " + repr(name))
