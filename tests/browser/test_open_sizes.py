"""A saved plan that leaves a length open, in a tab: 200 lengths need one plan, and no further memory after the
first."""

import base64
from pathlib import Path

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.wgpu_backend import plan_file

from tools.chromium import Page

LONGEST = 200
WIDTH = 4

PREPARE = '''
import binascii
from array import array
from emberlet.wgpu_backend import device, plan_file

# Counts what WebGPU is asked to make, staging buffers included.
COUNT = """globalThis.counted = 0;
for (const name of ["createBuffer", "createComputePipeline", "createComputePipelineAsync"]) {{
  const make = GPUDevice.prototype[name];
  GPUDevice.prototype[name] = function (...given) {{ globalThis.counted++; return make.apply(this, given); }};
}}"""
content = binascii.a2b_base64({content!r})
expected = {expected!r}

def given(n):
    return bytes(array("f", [((7 * i) % 13) / 13 for i in range({width} * n)]))

def check(n, outputs):
    states, last = outputs
    assert states.shape == (n, {width}) and last.shape == ({width},), (states.shape, last.shape)
    flat = [v for row in states.to_list() for v in row]
    found = [sum(flat) / len(flat), flat[0], flat[-1]] + last.to_list()
    assert max([abs(a - b) for a, b in zip(found, expected[n - 1])]) < 1e-4, (n, found, expected[n - 1])

def made(plan):
    gpu = plan.program.device
    return gpu.created_buffers, len(gpu.pipelines), len(plan.program._out.staging)
'''

IN_PYODIDE = (
    PREPARE
    + """
def test():
    import js

    js.eval(COUNT)
    plan = plan_file.load(content)
    check(3, plan.run(given(3)))
    before = made(plan)
    counted = js.counted
    for n in range(1, {longest} + 1):
        check(n, plan.run(given(n)))
    assert made(plan) == before, (made(plan), before)
    assert js.counted == counted, (js.counted, counted)
"""
)

IN_MICROPYTHON = (
    PREPARE
    + """
import js

js.eval(COUNT)
await device.open_device_async()
plan = plan_file.load(content)
check(3, await plan.run_async(given(3)))
before = made(plan)
counted = js.globalThis.counted
for n in range(1, {longest} + 1):
    check(n, await plan.run_async(given(n)))
assert made(plan) == before, (made(plan), before)
assert js.globalThis.counted == counted, (js.globalThis.counted, counted)
try:
    await plan.run_async(given({longest} + 1))
except Exception as error:
    assert "with length between 1 and {longest}" in str(error), error
else:
    assert False
print("done")
"""
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Self-attention with positions as a plan of any length, and its results on NumPy."""
    k = get_backend("numpy")
    values = (np.random.default_rng(0).standard_normal((WIDTH, WIDTH)) / 2).astype(np.float32)
    weight = k.from_bytes(values.tobytes(), dtypes.float32, values.shape)

    def network(x):
        w = weight if x.backend is k else weight.to_device(x.backend)
        n = x.shape[0]
        at = F.arange(n, dtype=dtypes.int64, backend=x.backend)
        x = x + F.expand_dims(F.sin(at.astype(dtypes.float32) * 0.1), 1)
        scores = (x @ w) @ F.permute_dims(x, (1, 0))
        seen = F.expand_dims(at, 0) <= F.expand_dims(at, 1)
        states = F.concat((F.softmax(F.where(seen, scores, -1e9)) @ x, x), axis=1).reshape((n, 2, WIDTH))
        states = F.sum(states, axis=1)
        return states, F.mean(states, axis=0) + states[n - 1]

    def given(n):
        flat = np.array([((7 * i) % 13) / 13 for i in range(WIDTH * n)], np.float32)
        return k.from_bytes(flat.tobytes(), dtypes.float32, (n, WIDTH))

    file: Path = tmp_path_factory.mktemp("plan") / "network.plan"
    plan_file.save(str(file), network, given(8), dims={"x": {0: ("length", LONGEST)}})
    expected = []
    for n in range(1, LONGEST + 1):
        states, last = (np.asarray(out, np.float64) for out in network(given(n)))
        expected.append([round(float(v), 6) for v in (states.mean(), states[0, 0], states[-1, -1], *last)])
    return {
        "content": base64.b64encode(file.read_bytes()),
        "expected": expected,
        "width": WIDTH,
        "longest": LONGEST,
    }


def test_every_length_runs_on_one_plan_under_pyodide(pyodide_page: Page, saved: dict[str, object]) -> None:
    code = "([source, file, line, name]) => runPython(source, file, line, name)"
    assert not pyodide_page.evaluate(code, [IN_PYODIDE.format(**saved), "<lengths>", 1, "test"])


def test_every_length_runs_on_one_plan_under_micropython(micropython_page: Page, saved: dict[str, object]) -> None:
    printed = micropython_page.evaluate("(source) => runMicroPython(source)", IN_MICROPYTHON.format(**saved))
    assert printed.splitlines()[-1] == "done", printed
