"""LLVM makes the code here; without llvmlite these tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("llvmlite")

from emberlet.wgpu_backend.llvm import engine
from emberlet.wgpu_backend.llvm.backend import NativeBackend

PROCESSORS = {16: "x86-64-v4", 8: "x86-64-v3", 4: "x86-64-v2"}
LENGTHS = [n for n in PROCESSORS if n <= engine.lanes()] if engine.processor() != "generic" else [engine.lanes()]


@pytest.fixture(params=LENGTHS)
def backend(request: pytest.FixtureRequest) -> Iterator[NativeBackend]:
    """A backend with vectors of so many lanes."""
    length = request.param
    engine.set_processor(None if length == engine.lanes() else PROCESSORS[length])
    try:
        assert engine.lanes() == length
        yield NativeBackend()
    finally:
        engine.set_processor(None)
