"""The wgpu backend in a tab: a saved plan under both Pythons, and errors that name the kernel."""

import base64
from pathlib import Path

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.wgpu_backend import plan_file
from support.browser.in_page import raised
from support.browser.in_pyodide import in_pyodide

from tools.chromium import Page

PREPARE = """
import binascii
from array import array
from emberlet.wgpu_backend import device, plan_file

image = bytes(array("f", [((7 * i) % 13) / 13 for i in range(256)]))
content = binascii.a2b_base64({content!r})
"""

IN_PYODIDE = (
    PREPARE
    + """
def test():
    plan = plan_file.load(content)
    for _ in range(2):
        (out,) = plan.run(image)
        assert max(abs(a - b) for a, b in zip(out.to_list()[0], {expected!r})) < 1e-4, out
"""
)

IN_MICROPYTHON = (
    PREPARE
    + """
await device.open_device_async()
plan = plan_file.load(content)
for _ in range(2):
    (out,) = await plan.run_async(image)
    assert max([abs(a - b) for a, b in zip(out.to_list()[0], {expected!r})]) < 1e-4, out
print("done")
"""
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """A small network as a plan, made without a GPU, and its results on NumPy."""
    k = get_backend("numpy")
    random = np.random.default_rng(0)

    def tensor(array):
        return k.from_bytes(array.astype(np.float32).tobytes(), dtypes.float32, array.shape)

    first = tensor(random.standard_normal((8, 1, 3, 3)) / 3)
    last = tensor(random.standard_normal((8 * 8 * 8, 10)) / 20)

    def network(image):
        weight, last_weight = (w if image.backend is k else w.to_device(image.backend) for w in (first, last))
        x = F.relu(F.conv2d(image, weight, padding=1))
        x = F.max_pool2d(x, 2)
        return F.softmax(F.matmul(F.reshape(x, (1, 512)), last_weight), axis=-1)

    image = tensor(np.array([((7 * i) % 13) / 13 for i in range(256)]).reshape(1, 1, 16, 16))
    file: Path = tmp_path_factory.mktemp("plan") / "network.plan"
    plan_file.save(str(file), network, image)
    return {
        "content": base64.b64encode(file.read_bytes()),
        "expected": [float(v) for v in network(image).tolist()[0]],
    }


def test_a_saved_plan_runs_under_pyodide(pyodide_page: Page, saved: dict[str, object]) -> None:
    code = "([source, file, line, name]) => runPython(source, file, line, name)"
    assert not pyodide_page.evaluate(code, [IN_PYODIDE.format(**saved), "<plan>", 1, "test"])


def test_a_saved_plan_runs_under_micropython(micropython_page: Page, saved: dict[str, object]) -> None:
    printed = micropython_page.evaluate("(source) => runMicroPython(source)", IN_MICROPYTHON.format(**saved))
    assert printed.splitlines()[-1] == "done", printed


@in_pyodide
def test_lanes_share_what_they_load_for_a_large_product():
    import emberlet
    from emberlet.backend import get_backend

    n = 256
    a = [[float((7 * i + 3 * j) % 11 - 5) for j in range(n)] for i in range(n)]
    b = [[float((5 * i + 2 * j) % 7 - 3) for j in range(n)] for i in range(n)]
    product = (emberlet.asarray(a, backend="wgpu") @ emberlet.asarray(b, backend="wgpu")).tolist()
    columns = list(zip(*b, strict=True))
    for i in range(0, n, 17):  # sums of small integers are exact
        assert product[i] == [sum(x * y for x, y in zip(a[i], column, strict=True)) for column in columns], i
    assert get_backend("wgpu").options.subgroups  # Chromium's SwiftShader has them


@in_pyodide
def test_a_faulty_kernel_is_named_with_its_lines_and_the_next_model_works():
    import emberlet
    from emberlet import functional as F
    from emberlet.errors import BackendError
    from emberlet.wgpu_backend.compiled import compile

    gpu = emberlet.get_backend("wgpu")
    x = gpu.from_list([1.0, 2.0, 3.0, 4.0], emberlet.float32, (4,))
    source = "{{ bindings }}\n@compute @workgroup_size(4)\nfn main() {\n    out[0] = in0[0] + 1u;\n}"

    def faulty(x):
        return gpu.launch("faulty_kernel", source, [x], x.dtype, x.shape, (1, 1, 1))

    for attempt in (lambda: compile(faulty, x, backend=gpu)(x), lambda: gpu.to_list(faulty(x))):
        error = raised(BackendError, attempt)
        assert "faulty_kernel" in str(error) and "out[0] = in0[0] + 1u;" in str(error), str(error)
        assert compile(lambda x: F.sum(x * 2.0), x, backend=gpu)(x).tolist() == 20.0


@in_pyodide
def test_running_out_of_memory_is_told_and_the_next_operation_works():
    import emberlet
    from emberlet.errors import BackendError
    from emberlet.wgpu_backend import WgpuBackend
    from emberlet.wgpu_backend.device import Device

    gpu = WgpuBackend(device=Device(emberlet.get_backend("wgpu").device.raw.adapter.request_device_sync()))
    limit, gpu.device.page_bytes = gpu.device.page_bytes, 1 << 50
    # Only requested: up to a point, a browser may promise memory that it does not have.
    error = raised(BackendError, lambda: gpu.device.read(gpu.device.allocate(1 << 46), 4))
    assert "failed" in str(error), str(error)
    gpu.device.page_bytes = limit
    assert not gpu.device.lost and not gpu.device.free_bytes
    y = gpu.from_list([1.0, 2.0], emberlet.float32, (2,))
    assert gpu.to_list(gpu.binary("add", y, y)) == [2.0, 4.0]


@in_pyodide
def test_a_lost_device_is_told_and_the_next_operation_opens_another():
    import emberlet
    from emberlet.errors import BackendError
    from emberlet.wgpu_backend import WgpuBackend

    gpu = WgpuBackend()
    old = gpu.device
    x = gpu.from_list([1.0, 2.0], emberlet.float32, (2,))
    gpu.realize(x)
    old.raw.destroy()
    error = raised(BackendError, lambda: gpu.to_list(gpu.unary("exp", x)))
    assert "the GPU device was lost" in str(error), str(error)
    y = gpu.from_list([1.0, 2.0], emberlet.float32, (2,))
    assert gpu.to_list(gpu.binary("add", y, y)) == [2.0, 4.0]
    assert gpu.device is not old


@in_pyodide
def test_inferences_leave_no_gpu_memory_behind():
    import gc

    import emberlet
    from emberlet import functional as F
    from emberlet.wgpu_backend.compiled import compile

    gpu = emberlet.get_backend("wgpu")
    weight = gpu.from_list([0.1 * i for i in range(64)], emberlet.float32, (8, 8))

    def model(x):
        return F.softmax(F.matmul(x, weight), axis=-1)

    x = gpu.from_list([0.5] * 32, emberlet.float32, (4, 8))
    compiled = compile(model, x, backend=gpu)
    for turn in range(60):
        if turn == 10:
            gc.collect()
            before = gpu.device.live_bytes, gpu.device.created_buffers
        compiled(x)
        gpu.to_list(model(x))
    gc.collect()
    assert (gpu.device.live_bytes, gpu.device.created_buffers) == before


@in_pyodide
def test_calls_of_one_model_overlap_and_a_cancelled_one_disturbs_no_other():
    import asyncio

    import emberlet
    from emberlet import functional as F
    from emberlet.wgpu_backend.compiled import compile
    from pyodide.ffi import run_sync

    gpu = emberlet.get_backend("wgpu")
    xs = [emberlet.asarray([float(i), 2.0, 3.0, 4.0], backend="python") for i in range(6)]
    compiled = compile(lambda x: F.exp(x) * 0.5, xs[0], backend=gpu)
    want = [compiled(x).tolist() for x in xs]

    async def several():
        tasks = [asyncio.ensure_future(compiled.call_async(x)) for x in xs]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    for _ in range(5):
        got = run_sync(several())
        for i in range(len(xs)):
            if not isinstance(got[i], asyncio.CancelledError):
                assert got[i].tolist() == want[i], (i, got[i])
    assert compiled(xs[1]).tolist() == want[1]
