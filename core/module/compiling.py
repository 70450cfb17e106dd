"""Which compiler `Module.compile` calls."""


def compile(module, examples, backend, tune, dims):
    """See methods.py."""
    if backend is None:
        backend = "wgpu" if tune else _own_backend(module)
        if getattr(backend, "name", backend) == "numpy":
            from ..host.extras import missing

            if not missing(("numpy", "llvmlite")):
                from ..wgpu_backend.llvm.or_numpy import NativeOrNumpy

                return NativeOrNumpy(module, examples, dims, backend)
    if getattr(backend, "name", backend) == "numpy":
        from ..host.extras import require

        require("a plan for NumPy", "numpy")
        from ..host.numpy_backend.compile import compile as compile_on_numpy

        return compile_on_numpy(module, *examples, backend=backend, dims=dims)
    if backend == "auto":
        from ..wgpu_backend.fastest import Fastest

        return Fastest(module, examples, tune=tune, dims=dims)
    from ..wgpu_backend.compiled import compile

    return compile(module, *examples, backend=backend, tune=tune, dims=dims)


def _own_backend(module):
    """The backend that a plan of this module is made for unless one is named."""
    from ..backend import get_backend

    found = module.backends()
    own = found[0] if found else getattr(module, "backend", None) or get_backend()
    return "numpy" if own.name == "python" else own
