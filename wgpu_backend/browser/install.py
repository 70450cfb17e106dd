"""Puts this backend where wgpu-py looks for its own."""

from __future__ import annotations

import sys
import types

import wgpu
import wgpu.backends

from .adapter import GPU

_STUB = "wgpu.backends.js_webgpu"


def install() -> GPU:
    """Replace wgpu-py's stub by this backend as `wgpu.gpu`, and return it. A second call changes nothing.

    Adapters and devices that were made before keep working.
    """
    if isinstance(wgpu.gpu, GPU):
        return wgpu.gpu
    gpu = GPU()
    # wgpu-py imports its backend on first use by this module name, which must lead to this one.
    module = types.ModuleType(_STUB, __doc__)
    module.gpu = gpu  # type: ignore[attr-defined]
    sys.modules[_STUB] = module
    wgpu.backends.js_webgpu = module
    if "wgpu.backends.auto" in sys.modules:
        sys.modules["wgpu.backends.auto"].gpu = gpu  # type: ignore[attr-defined]
    wgpu.gpu = gpu
    return gpu
