"""compiler.bin: Python's memory without what its Wasm has anyway, the same bytes from the same sources."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import packages
import pytest
from compiler_image import PAGE, difference, segments, write_image
from emberlet.wgpu_backend.wasm.assembler import module

from tools.paths import WEB


@pytest.fixture(scope="module")
def wasm() -> bytes:
    """A module whose memory begins with some bytes."""
    made: bytes = module([], [], 1, data=[(16, b"static"), (70, b"bytes")])
    return made


def test_what_the_module_brings_is_zero_in_the_difference(wasm: bytes) -> None:
    assert [(at, wasm[start:end]) for at, start, end in segments(wasm)] == [(16, b"static"), (70, b"bytes")]
    memory = bytearray(PAGE)
    memory[16:22], memory[70:75], memory[90:94] = b"static", b"bytes", b"heap"
    left = difference(b"header" + bytes(memory), wasm)
    assert left == b"header" + bytes(90) + b"heap" + bytes(PAGE - 94)


def test_changed_static_data_comes_back(wasm: bytes) -> None:
    memory = bytes(range(256)) * (PAGE // 256)
    assert difference(difference(memory, wasm), wasm) == memory


def test_files_that_python_has_imported_are_left_out(wasm: bytes, tmp_path: Path) -> None:
    files = {"emberlet/nn/conv.py": b"x = 1", "emberlet/mean.pyc": b"code", "emberlet/notes.py": b"y = 2"}
    write_image(tmp_path / "compiler.bin", files, bytes(PAGE), wasm)
    content = gzip.decompress((tmp_path / "compiler.bin").read_bytes())
    assert content[4:].startswith(b'{"emberlet/notes.py": 5}y = 2')
    assert len(content) == 4 + len(b'{"emberlet/notes.py": 5}y = 2') + PAGE


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


@pytest.mark.needs("node")
@pytest.mark.parametrize("kept", [0, 8, 20, -1])
def test_the_worker_refuses_an_incomplete_module_too(wasm: bytes, kept: int) -> None:
    source = (WEB / "package" / "compiler" / "worker.mjs").read_text(encoding="utf-8")
    function = source[source.index("function addInitial") : source.index("async function started")]
    script = f"""const WASM = "pyodide.asm.wasm";
      {function}
      try {{
        addInitial(new Uint8Array(65536), Uint8Array.from({list(wasm[:kept])}));
      }} catch (error) {{
        console.log(error.message);
      }}"""
    done = subprocess.run(["node", "-e", script], capture_output=True, encoding="utf-8", check=True, timeout=20)
    assert "not a complete WebAssembly module" in done.stdout
