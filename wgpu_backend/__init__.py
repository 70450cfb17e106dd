"""The GPU backend: tensors record, realising fuses them into WGSL kernels and runs them in one submission."""


def __getattr__(name):
    if name == "WgpuBackend":
        from .backend import WgpuBackend

        return WgpuBackend
    raise AttributeError("module 'emberlet.wgpu_backend' has no attribute " + repr(name))
