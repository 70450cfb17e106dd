"""compiler.bin: Python's memory without what its Wasm has anyway, the same bytes from the same sources."""

from __future__ import annotations

from pathlib import Path

import packages
import pytest
from compiler_image import PAGE, difference, segments
from emberlet.wgpu_backend.wasm.assembler import module

from tools.paths import WEB


@pytest.fixture(scope="module")
def wasm() -> bytes:
    """A module whose memory begins with some bytes."""
    made: bytes = module([], [], 1, data=[(16, b"static"), (70, b"bytes")])
    return made


def test_changed_static_data_comes_back(wasm: bytes) -> None:
    memory = bytes(range(256)) * (PAGE // 256)
    assert difference(difference(memory, wasm), wasm) == memory


@pytest.mark.needs("pyodide")
def test_the_same_sources_give_the_same_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of emberlet_compile.py with a stand-in for the compiler, which draws, takes the time and frees memory."""
    script = b"""
import json, os, random, time
TIMES = [time.time(), time.perf_counter()]
DRAWN = [os.urandom(8), random.random(), hash("text")]
def compile(path, out, options):
    left = [bytes([n]) * 3000 for n in os.urandom(200)]
    return json.dumps({"error": path} if "none" in path else {"chosen": [len(left), random.random()]})
def late():
    pass
"""
    made = []
    for n in range(2):
        monkeypatch.setattr(packages, "ROOT", folder := tmp_path / str(n))
        (folder / "web").mkdir(parents=True)
        (folder / "web" / "image.mjs").write_bytes((WEB / "image.mjs").read_bytes())
        (folder / "web" / "node_modules").symlink_to(WEB / "node_modules")
        made.append(packages.memory({"emberlet_compile.py": script, "emberlet/nn/none.py": b""}, b"model"))
    assert made[0] == made[1] and len(made[0]) > 10 * PAGE


@pytest.mark.parametrize("kept", [0, 8, 20, -1])
def test_an_incomplete_module_is_refused(wasm: bytes, kept: int) -> None:
    with pytest.raises(ValueError, match="no complete WebAssembly module"):
        segments(wasm[:kept])
