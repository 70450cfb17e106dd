"""What gradients cost where nobody asks for them, and training on a device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from emberlet.codegen import generate

from tools.micropython import Port, device_tree
from tools.paths import ROOT

PLAIN = """
import sys
import emberlet
from emberlet import nn
model = nn.Linear(3, 2, backend={backend!r})
x = emberlet.asarray([[1.0, 2.0, 3.0]], backend={backend!r})
model(nn.Dropout(0.5)(x)).sum().tolist()
x.detach().require_grad()
print([name for name in sys.modules if "autodiff" in name or "optim" in name])
"""
REGRESSION = """
import gc
gc.threshold(16384)  # a heap collected only when it is full fragments: 1,280 bytes in a row are chance
import emberlet
from emberlet import nn, optim
from emberlet.optim import GradientsParams
emberlet.manual_seed(1)
model = nn.Linear(2, 1).train()
optimizer = optim.SgdConfig(momentum=optim.MomentumConfig(0.5, 0.0)).init()
x = [[(i * 37 % 11 - 5) / 5, (i * 53 % 13 - 6) / 6] for i in range(16)]
y = emberlet.asarray([[2 * a - 3 * b + 0.5] for a, b in x], backend="autodiff:python")
x = emberlet.asarray(x, backend="autodiff:python")
for _ in range(60):
    d = model(x) - y
    loss = (d * d).mean()
    model = optimizer.step(0.2, model, GradientsParams.from_grads(loss.backward(), model))
print("loss", loss.item())
print("weight", [round(v[0], 3) for v in model.valid().weight.val().tolist()], round(model.bias.val().item(), 3))
"""
LAST_LAYER = """
import gc
import emberlet
from digits import Digits
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.optim import GradientsParams
model = Digits.from_file("{folder}/digits.bpk")
features = []
for image in {images}:
    x = emberlet.asarray(image).reshape((1, 1, 8, 8)) / 16.0
    x = F.max_pool(F.relu(model.conv2(F.relu(model.conv1(x)))), 2).reshape((1, 256))
    features.append(F.relu(model.fc1(x)).reshape(-1).tolist())
    gc.collect()
head = model.fc2.train()
x = emberlet.asarray(features, backend="autodiff:python")
y = emberlet.asarray({labels}, backend="autodiff:python")
optimizer = optim.SgdConfig(momentum=optim.MomentumConfig(0.9, 0.0)).init()
for _ in range(20):
    loss = F.cross_entropy(head(x), y)
    optimizer.step(0.02, head, GradientsParams.from_grads(loss.backward(), head))
    gc.collect()
print(head.valid()(x.inner()).argmax(1).tolist())
"""
GRADIENTS = """
import emberlet
from emberlet import functional as F
x = emberlet.asarray([[0.5, -1.0], [2.0, 0.25]])
for f in (lambda x: F.softmax(x).sum() * x[0, 0], lambda x: F.gelu(x).sum(), lambda x: (x @ x).tanh().max(),
          lambda x: F.layer_norm(x)[0, 1], lambda x: F.max_pool(x.reshape((1, 1, 2, 2)), 2).sum()):
    print(emberlet.grad(f)(x).reshape(-1).tolist())
"""


def test_a_program_without_gradients_loads_nothing_of_them() -> None:
    for backend in ("python", "numpy"):
        code = PLAIN.format(backend=backend)
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
        assert out.strip() == "[]"


def test_a_device_without_gradients_loads_nothing_of_them(unix_port: Port) -> None:
    result = unix_port.run(PLAIN.format(backend="python"), heap="512K").check()
    assert result.stdout.strip() == "[]"


def test_a_linear_regression_trains_on_micropython(unix_port: Port) -> None:
    out = unix_port.run(REGRESSION, heap="512K").check().stdout
    assert float(out.split()[1]) < 1e-6
    assert "[2.0, -3.0] 0.5" in out


def test_the_last_layer_of_the_digits_network_learns_other_labels_on_micropython(
    unix_port: Port, tmp_path: Path
) -> None:
    generate(ROOT / "examples" / "digits" / "digits.onnx", tmp_path)
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as file:
        images, labels = file["images"][:12].reshape(12, 64), (file["labels"][:12].astype(int) + 3) % 10
    code = LAST_LAYER.replace("{folder}", str(tmp_path)).replace("{images}", str(images.astype(float).tolist()))
    code = code.replace("{labels}", str(labels.tolist()))
    out = unix_port.run(code, heap="640K", micropypath=[device_tree(), tmp_path]).check().stdout
    assert json.loads(out) == labels.tolist()


def test_gradients_on_micropython_are_those_of_cpython(unix_port: Port) -> None:
    code = 'from emberlet.backend import set_default_backend\nset_default_backend("python")\n' + GRADIENTS
    here = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
    there = unix_port.run(code, heap="1M").check().stdout
    found = [json.loads(line) for line in there.splitlines()]
    np.testing.assert_allclose(found, [json.loads(line) for line in here.splitlines()], rtol=1e-4, atol=1e-5)
    assert np.isfinite(found).all()
