"""The GPU backend: tensors record operations; realizing fuses them into WGSL kernels and runs those in one
submission."""


def __dir__():
    return ["WgpuBackend", "browser", "compiled", "device", "llvm", "plan_file", "tuning", "wasm"]


def __getattr__(name):
    if name == "WgpuBackend":
        from .backend import WgpuBackend

        return WgpuBackend
    try:  # `from . import name`: MicroPython calls this function before it looks for a submodule
        return __import__("emberlet.wgpu_backend." + name, None, None, ("*",))
    except ImportError:
        raise AttributeError("module 'emberlet.wgpu_backend' has no attribute " + repr(name))
