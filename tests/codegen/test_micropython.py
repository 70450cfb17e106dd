"""Generated modules on MicroPython, in the heap of a small machine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from emberlet.codegen import generate
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
    if embed:  # 38 KB of weights, used where they lie
        assert grown < 16_000
