"""A training step in a tab, from its file: MicroPython and Pyodide train on WebGPU as the compiled step does here."""

import base64
import json
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.burnpack import Burnpack
from emberlet.module import Module
from emberlet.wgpu_backend import plan_file

from tools.chromium import Page

ROWS, STEPS, RATE = 8, 6, 0.02

PREPARE = """
import binascii
import json
from array import array

import emberlet
from emberlet.wgpu_backend import device, plan_file

content = binascii.a2b_base64({content!r})
batches = json.loads({batches!r})
wanted = {losses!r}


def given(n, rows={rows}):
    x, y = batches[n]
    return (
        emberlet.asarray(x[:rows], dtype="float32", backend="python"),
        emberlet.asarray(y[:rows], dtype="int64", backend="python"),
    )


def near(found):
    assert max([abs(found[i] - wanted[i]) for i in range(len(wanted))]) < 1e-5, (found, wanted)
    print(json.dumps(found))
"""

IN_MICROPYTHON = (
    PREPARE
    + """
await device.open_device_async()
step = plan_file.load(content)
emberlet.manual_seed(5)
found = []
for n in range({steps}):
    loss = await step.run_async({rate} / (n + 1), *given(n, {rows} - n % 3))
    found.append(loss.to_list())
near(found)
weights = await step.to_record_async()
print(weights.save("/trained.bpk"), len(await step.optimizer_record_async()))
print(binascii.b2a_base64(open("/trained.bpk", "rb").read()).decode().strip())
other = plan_file.load(content)
other.load_record(weights)
first = await step.to_record_async()
second = await other.to_record_async()
for name in first:
    assert first[name].tolist() == second[name].tolist(), name
try:
    await step.run_async({rate}, *given(0)[:1])
except Exception as error:
    assert "takes the learning rate and x: float32" in str(error), error
else:
    assert False
step.release()
other.release()
"""
)

IN_PYODIDE = (
    PREPARE
    + """
def test():
    step = plan_file.load(content)
    emberlet.manual_seed(5)
    near([step.run({rate} / (n + 1), *given(n, {rows} - n % 3)).to_list() for n in range({steps})])
"""
)


class Net(Module):
    """Convolution, batch norm, dropout and a dense layer: parameters, running statistics, random words."""

    def __init__(self, backend: Any) -> None:
        self.conv = nn.Conv2d(1, 4, 3, padding=1, backend=backend)
        self.norm = nn.BatchNorm(4, backend=backend)
        self.drop = nn.Dropout(0.25)
        self.last = nn.Linear(64, 3, backend=backend)

    def forward(self, x: Any) -> Any:
        x = F.max_pool(F.relu(self.norm(self.conv(x))), 2)
        return self.last(self.drop(x.reshape((x.shape[0], 64))))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A step as a file, and what the compiled step does on this machine's GPU, or software in its place."""
    emberlet.manual_seed(2)
    model = Net("wgpu")
    random = np.random.default_rng(0)
    batches = [
        (random.standard_normal((ROWS, 1, 8, 8)).astype(np.float32), random.integers(0, 3, ROWS)) for _ in range(STEPS)
    ]
    optimizer = optim.AdamConfig(weight_decay=1e-3).init()
    step = model.compile_step(lambda model, x, y: F.cross_entropy(model(x), y), optimizer)
    file: Path = tmp_path_factory.mktemp("step") / "step.plan"
    step(RATE, *batches[0])
    plan_file.save(str(file), step, *batches[0], dims={"batch": (2, ROWS)})
    emberlet.manual_seed(5)
    losses = []
    for n, (x, y) in enumerate(batches):
        rows = ROWS - n % 3
        losses.append(float(step(RATE / (n + 1), x[:rows], y[:rows])))
    assert losses[-1] != losses[0]
    return {
        "content": base64.b64encode(file.read_bytes()),
        "batches": json.dumps([(x.tolist(), y.tolist()) for x, y in batches]),
        "losses": losses,
        "rows": ROWS,
        "steps": STEPS,
        "rate": RATE,
        "model": model,
    }


@pytest.mark.needs("gpu-driver")
def test_a_step_trains_under_micropython(micropython_page: Page, saved: dict[str, Any]) -> None:
    printed = micropython_page.evaluate("(source) => runMicroPython(source)", IN_MICROPYTHON.format(**saved))
    losses, sizes, trained = printed.splitlines()
    assert len(json.loads(losses)) == STEPS and sizes.split()[1] == str(6 * 3)
    found = Burnpack.from_bytes(base64.b64decode(trained))
    model = saved["model"].valid().to_record()
    assert found.tensors.keys() == set(model)
    for name in model:
        np.testing.assert_allclose(np.asarray(found.tensor(name)), np.asarray(model[name]), atol=1e-5, err_msg=name)
        assert found.tensors[name].param_id == model.param_ids[name].value
    other = Net("numpy")
    other.load_record(found)


@pytest.mark.needs("gpu-driver")
def test_a_step_trains_under_pyodide(pyodide_page: Page, saved: dict[str, Any]) -> None:
    code = "([source, file, line, name]) => runPython(source, file, line, name)"
    assert not pyodide_page.evaluate(code, [IN_PYODIDE.format(**saved), "<step>", 1, "test"])
