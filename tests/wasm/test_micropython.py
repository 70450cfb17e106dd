"""The assembler under MicroPython: it writes the same modules, byte by byte, as under CPython."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from emberlet import codegen

from tools.components import require
from tools.paths import ROOT, WEB

MODELS = {
    "Digits": ROOT / "examples" / "digits" / "digits.onnx",
    "Accelerometer": ROOT / "examples" / "micro_accelerometer" / "accelerometer.onnx",
    "Sine": ROOT / "examples" / "sine" / "sine.onnx",
}

# Runs under both: the modules of each model, and of operations of every kind of kernel.
SCRIPT = """
import json, sys
folder, names = sys.argv[1], json.loads(sys.argv[2])
sys.path.append(folder)
if sys.argv[3]:
    sys.path.append(sys.argv[3])
import emberlet
import emberlet.functional as F
import emberlet.wgpu_backend.wasm.engine as engine

class Module:
    def __init__(self, source):
        made.append(source)
    def instance(self):
        return self
    def write(self, at, data):
        pass
    def read(self, at, nbytes):
        return bytes(nbytes)
    def run(self):
        pass

made = []
engine.compiled = Module
engine.relaxed = lambda: True
engine.available = lambda: None
wasm = emberlet.get_backend("wasm")

def zeros(*shape):
    return emberlet.zeros(shape, dtype="float32", backend=wasm)

for name in names:
    kind = getattr(__import__(name.lower()), name)
    model = kind.from_file(folder + "/" + name.lower() + ".bpk", backend=wasm)
    shape = [1 if isinstance(d, str) or d is None else d for d in kind.INPUTS[0][2]]
    model.compile(zeros(*shape), backend=wasm)
for f, shapes in (
    (lambda x: F.softmax(x, axis=-1) + F.exp(x), ((3, 7),)),
    (lambda x, y: F.relu(x @ y - 1.5), ((5, 9), (9, 11))),
    (lambda x: F.cumsum(x, 1), ((4, 6),)),
    (lambda x: F.sum(F.tanh(x), 0), ((70, 5),)),
    (lambda x: F.sort(x, 1), ((2, 9),)),
    (lambda x: F.argmax(x, 1), ((3, 8),)),
    (lambda x: F.gelu(F.transpose(x, (1, 0))), ((6, 4),)),
):
    tensors = [zeros(*shape) for shape in shapes]
    import emberlet.wgpu_backend.compiled as compiled
    compiled.compile(f, *tensors, backend=wasm)
print(json.dumps(["".join(["{:02x}".format(b) for b in m]) for m in made]))
"""


@pytest.mark.needs("micropython-unix")
def test_modules_are_the_same_as_under_cpython(tmp_path: Path) -> None:
    sys.path.append(str(WEB))
    from packages import emberlet_files

    for name, data in emberlet_files(device=True).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "models").mkdir()
    for model in MODELS.values():
        codegen.generate(model, tmp_path / "models")
    names = json.dumps(list(MODELS))

    def made(*command: str) -> list[str]:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=300)
        assert done.returncode == 0, done.stderr + done.stdout
        found: list[str] = json.loads(done.stdout)
        return found

    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    here = made(sys.executable, str(script), str(tmp_path / "models"), names, "")
    there = made(
        require("micropython-unix"), "-X", "heapsize=256m", str(script), str(tmp_path / "models"), names, str(tmp_path)
    )
    assert len(here) == len(there) >= 10
    assert [i for i, (a, b) in enumerate(zip(here, there, strict=True)) if a != b] == []
