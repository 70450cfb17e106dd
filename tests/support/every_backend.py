"""The names of all backends as parameters of a test; that of the GPU is skipped where there is no driver."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest
from emberlet.backend import Backend

from .backends import NAMES

WGPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))
EVERY = [*NAMES, WGPU]
WASM = pytest.param("wasm", marks=pytest.mark.skipif(not find_spec("wasmtime"), reason="wasmtime is not installed"))
NATIVE = pytest.param("native", marks=pytest.mark.skipif(not find_spec("llvmlite"), reason="llvmlite is not installed"))
ALL = ["python", "numpy", WGPU, WASM]  # those whose results tables of documents show


def watch(backend: Backend) -> Callable[[], str]:
    """A function that returns a table's entry for everything that ran since this call: "✓", or "host" if the GPU's
    backend computed a part on the host."""
    before = dict(getattr(backend, "fallbacks", {}))
    return lambda: "✓" if getattr(backend, "fallbacks", {}) == before else "host"
