"""The names of all backends as parameters of a test; that of the GPU is skipped where there is no driver."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from emberlet.backend import Backend

from .backends import NAMES

WGPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))
EVERY = [*NAMES, WGPU]


def watch(backend: Backend) -> Callable[[], str]:
    """A function that says what a table shows for what ran since: "✓", or "host" where the GPU's backend computed some
    of it on the host."""
    before = dict(getattr(backend, "fallbacks", {}))
    return lambda: "✓" if getattr(backend, "fallbacks", {}) == before else "host"
