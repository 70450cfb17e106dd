"""LLVM makes the code here; without llvmlite these tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("llvmlite")

from emberlet.wgpu_backend.llvm import engine, processor
from emberlet.wgpu_backend.llvm.backend import NativeBackend

PROCESSORS = {16: "x86-64-v4", 8: "x86-64-v3", 4: "x86-64-v2"}
NAME, _, LONGEST, *_ = processor.current()
LENGTHS = [n for n in PROCESSORS if n <= LONGEST] if NAME != "generic" else [LONGEST]


@pytest.fixture(params=LENGTHS)
def backend(request: pytest.FixtureRequest) -> Iterator[NativeBackend]:
    """A backend with vectors of so many lanes."""
    length = request.param
    engine.set_processor(None if length == LONGEST else PROCESSORS[length])
    try:
        assert processor.current().lanes == length
        yield NativeBackend()
    finally:
        engine.set_processor(None)
