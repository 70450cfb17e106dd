"""The processor as a device: the kernels of each recorded graph become machine code, through LLVM."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "NativeBackend":
        from .backend import NativeBackend

        return NativeBackend
    if name == "set_processor":
        from .engine import set_processor

        return set_processor
    if name == "set_threads":
        from .threads import set_threads

        return set_threads
    try:
        return __import__("emberlet.wgpu_backend.llvm." + name, None, None, ("*",))
    except ImportError:
        raise AttributeError("module 'emberlet.wgpu_backend.llvm' has no attribute " + repr(name)) from None
