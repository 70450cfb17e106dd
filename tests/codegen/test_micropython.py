"""Generated modules on MicroPython, in the heap of a small machine."""

from __future__ import annotations

import json
from pathlib import Path

import emberlet
import numpy as np
import onnx
import pytest
from emberlet.codegen import generate, load
from support.onnx_models import expected

from tools.layout import device_tree
from tools.micropython import Port
from tools.paths import ROOT

SCRIPT = """
import gc, json
from digits import Digits
from emberlet import functional as F
first = Digits.default()  # imports what it needs
gc.collect()
used = gc.mem_alloc()
model = Digits.default()
gc.collect()
grown = gc.mem_alloc() - used
x = F.asarray(IMAGE).reshape((1, 1, 8, 8))
print(json.dumps([grown, model(x).tolist()]))
"""


@pytest.mark.parametrize("embed", [False, True], ids=["file", "embedded"])
def test_digits_runs_within_a_megabyte(unix_port: Port, embed: bool, tmp_path: Path) -> None:
    generate(ROOT / "examples" / "digits" / "digits.onnx", tmp_path, embed=embed)
    image = np.random.default_rng(3).random((1, 1, 8, 8), dtype=np.float32)
    folders = [device_tree(), tmp_path]

    script = f"IMAGE = {image.ravel().tolist()}\n{SCRIPT}"
    result = unix_port.run(script, heap="1M", micropypath=folders).check()

    grown, logits = json.loads(result.stdout)
    want = expected(ROOT / "examples" / "digits" / "digits.onnx", {"image": image})[0]
    np.testing.assert_allclose(np.float32(logits), want, atol=1e-4)
    if embed:  # 38 KB of weights, used in place
        assert grown < 16_000


REPEATED = """
<ir_version: 10, opset_import: ["" : 18]>
repeated (int64 n, bool go, float scale, float[2] x) => (float[2] y) {
    y = Loop (n, go, x) <body = step (int64 i, bool on, float[2] v) => (bool next, float[2] w) {
        next = Identity(on)
        f = Cast <to = 1> (i)
        s = Mul (f, scale)
        w = Add (v, s)
    }>
}
"""


RANGED = """
<ir_version: 10, opset_import: ["" : 18]>
ranged (float[n] x) => (float[m] y) {
    zero = Constant <value = float {0.0}> ()
    one = Constant <value = float {1.0}> ()
    sizes = Shape (x)
    size = Squeeze (sizes)
    f = Cast <to = 1> (size)
    y = Range (zero, f, one)
}
"""


def test_a_computed_tensor_becomes_a_number(unix_port: Port, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(RANGED)
    onnx.save(model, tmp_path / "ranged.onnx")
    generate(tmp_path / "ranged.onnx", tmp_path)
    script = "import emberlet\nfrom ranged import Ranged\nprint(Ranged()(emberlet.asarray([5.0, 5.0, 5.0])).tolist())"
    found = unix_port.run(script, heap="1M", micropypath=[device_tree(), tmp_path]).check()
    assert found.stdout.strip() == "[0.0, 1.0, 2.0]"


@pytest.mark.parametrize(
    "numbers", ["3, True, 0.5", "emberlet.asarray(3), emberlet.asarray(True), emberlet.asarray(0.5)"]
)
def test_forward_takes_plain_numbers_for_inputs_without_axes(unix_port: Port, numbers: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(REPEATED)
    onnx.save(model, tmp_path / "repeated.onnx")
    generate(tmp_path / "repeated.onnx", tmp_path)
    script = "import emberlet\nfrom repeated import Repeated\nx = emberlet.asarray([1.0, 2.0])\nm = Repeated()\n"
    script += f"print(m({numbers}, x).tolist(), m.forward({numbers}, x).tolist())"
    found = unix_port.run(script, heap="1M", micropypath=[device_tree(), tmp_path]).check()
    assert found.stdout.split("] ")[0] == "[2.5, 3.5"
    for name in ("numpy", "python"):
        x = emberlet.asarray([1.0, 2.0], backend=name)
        assert load(model, name).forward(3, True, 0.5, x).tolist() == [2.5, 3.5]
