"""Behavior of wgpu-py only in a browser: late errors, device loss, no waiting without JSPI."""

from serve import Server
from support.browser.in_page import raised
from support.browser.in_pyodide import in_pyodide

from tools.chromium import Browser, Page


@in_pyodide
def test_the_adapter_is_the_browser_s():
    import sys

    import emberlet.wgpu_backend.browser as browser
    import js
    import wgpu

    assert sys.platform == "emscripten"
    assert wgpu.gpu is browser.gpu and browser.install() is browser.gpu
    adapter = wgpu.gpu.request_adapter_sync()
    assert isinstance(adapter, browser.GPUAdapter)
    assert adapter.info.vendor == "google" and adapter.info.architecture == "swiftshader"
    assert adapter.info.is_fallback_adapter
    assert adapter.summary == "google swiftshader (CPU) via WebGPU", adapter.summary
    assert js.navigator.gpu.wgslLanguageFeatures.size == len(wgpu.gpu.wgsl_language_features)


@in_pyodide
def test_an_uncaught_error_is_raised_by_the_next_wait_and_the_device_goes_on():
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    buffer = device.create_buffer(size=16, usage="STORAGE|COPY_SRC")
    module = device.create_shader_module(label="softmax", code="@compute @workgroup_size(1) fn main() { let x = y; }")
    device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    waits = (
        lambda: device.queue.read_buffer(buffer),
        lambda: device.queue.on_submitted_work_done_sync(),
        lambda: device.create_buffer(size=8, usage="MAP_READ").map_sync("READ"),
    )
    for wait in waits:
        device.create_shader_module(label="softmax", code="@compute @workgroup_size(1) fn main() { let x = y; }")
        error = raised(wgpu.GPUValidationError, wait)
        assert "softmax" in error.message and "unresolved value 'y'" in error.message, error.message
        wait()
    assert bytes(device.queue.read_buffer(buffer)) == bytes(16)


@in_pyodide
def test_several_errors_are_counted():
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    for _ in range(20):
        device.create_shader_module(code="nonsense")
    error = raised(wgpu.GPUValidationError, device.queue.on_submitted_work_done_sync)
    assert "and 19 more errors" in error.message, error.message


@in_pyodide
def test_error_scopes():
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    device.push_error_scope("validation")
    assert device.pop_error_scope_sync() is None
    device.push_error_scope("out-of-memory")
    device.push_error_scope("validation")
    device.create_shader_module(label="bad", code="nonsense")
    error = device.pop_error_scope_sync()
    assert isinstance(error, wgpu.GPUValidationError) and "bad" in error.message
    assert device.pop_error_scope_sync() is None
    device.queue.on_submitted_work_done_sync()  # the scope caught it: nothing is raised here
    error = raised(wgpu.GPUInternalError, device.pop_error_scope_sync)
    assert "scope" in str(error), error


@in_pyodide
async def test_error_scopes_awaited():
    import wgpu

    device = await (await wgpu.gpu.request_adapter_async()).request_device_async()
    device.push_error_scope("validation")
    device.create_buffer(size=1 << 50, usage="STORAGE")
    assert isinstance(await device.pop_error_scope_async(), wgpu.GPUValidationError)


@in_pyodide
def test_uncaught_errors_can_be_handed_to_a_function():
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    seen = []
    device.onuncapturederror = seen.append
    device.create_shader_module(label="bad", code="nonsense")
    device.queue.on_submitted_work_done_sync()
    assert len(seen) == 1 and isinstance(seen[0], wgpu.GPUValidationError) and "bad" in seen[0].message
    device.onuncapturederror = None
    device.create_shader_module(label="bad", code="nonsense")
    raised(wgpu.GPUValidationError, device.queue.on_submitted_work_done_sync)
    assert len(seen) == 1


@in_pyodide
def test_compilation_messages():
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    good = device.create_shader_module(code="@compute @workgroup_size(1) fn main() {}")
    assert good.get_compilation_info_sync().messages == []
    device.push_error_scope("validation")
    bad = device.create_shader_module(code="@compute @workgroup_size(1)\nfn main() {\n  let x = y;\n}")
    device.pop_error_scope_sync()
    info = bad.get_compilation_info_sync()
    assert isinstance(info, wgpu.GPUCompilationInfo)
    (message,) = info.messages
    assert isinstance(message, wgpu.GPUCompilationMessage)
    assert (message.type, message.line_num, message.line_pos, message.length) == ("error", 3, 11, 1), message
    assert message.offset == len("@compute @workgroup_size(1)\nfn main() {\n  let x = ")
    assert "unresolved value 'y'" in message.message


@in_pyodide
async def test_a_pipeline_that_cannot_be_made():
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    module = device.create_shader_module(code="@compute @workgroup_size(1) fn main() {}")
    promise = device.create_compute_pipeline_async(layout="auto", compute={"module": module, "entry_point": "other"})
    try:
        await promise
    except wgpu.GPUPipelineError as error:
        assert error.reason == "validation" and "other" in str(error), error
    else:
        raise AssertionError("nothing was raised")


@in_pyodide
def test_a_lost_device_says_so_and_another_works():
    import wgpu
    from emberlet.wgpu_backend.browser import DeviceLostError

    adapter = wgpu.gpu.request_adapter_sync()
    device, other = adapter.request_device_sync(), adapter.request_device_sync()
    buffer = device.create_buffer(size=16, usage="STORAGE|COPY_SRC")
    device.destroy()
    for wait in (lambda: device.queue.read_buffer(buffer), lambda: device.queue.on_submitted_work_done_sync()):
        error = raised(DeviceLostError, wait)
        assert isinstance(error, wgpu.GPUError) and error.reason == "destroyed", error
    info = device.lost_sync
    assert isinstance(info, wgpu.classes.GPUDeviceLostInfo) and info.reason == "destroyed" and info.message
    buffer = other.create_buffer(size=16, usage="STORAGE|COPY_SRC")
    assert bytes(other.queue.read_buffer(buffer)) == bytes(16)


@in_pyodide
async def test_the_loss_can_be_awaited():
    import wgpu

    device = await (await wgpu.gpu.request_adapter_async()).request_device_async()
    lost = device.lost_async
    device.destroy()
    assert (await lost).reason == "destroyed"


@in_pyodide
def test_out_of_memory():
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    error = raised(
        wgpu.GPUOutOfMemoryError,
        lambda: device.create_buffer(size=1 << 46, usage="MAP_WRITE|COPY_SRC", mapped_at_creation=True),
    )
    assert isinstance(error, MemoryError)


@in_pyodide
def test_a_buffer_s_memory_goes_with_its_last_reference():
    import js
    import wgpu
    from pyodide.code import run_js

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    run_js("""
        globalThis.destroyed = 0;
        globalThis.realDestroy = GPUBuffer.prototype.destroy;
        GPUBuffer.prototype.destroy = function () { globalThis.destroyed += 1; realDestroy.call(this); };
    """)
    try:
        module = device.create_shader_module(
            code="@group(0) @binding(0) var<storage, read_write> x: array<u32>;"
            "@compute @workgroup_size(1) fn main() { x[0] = 9; }"
        )
        pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module})
        buffer = device.create_buffer(size=16, usage="STORAGE|COPY_SRC")
        target = device.create_buffer(size=16, usage="COPY_DST|COPY_SRC")
        group = device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": buffer}]
        )
        encoder = device.create_command_encoder()
        compute_pass = encoder.begin_compute_pass()
        compute_pass.set_pipeline(pipeline)
        compute_pass.set_bind_group(0, group)
        compute_pass.dispatch_workgroups(1)
        compute_pass.end()
        encoder.copy_buffer_to_buffer(buffer, 0, target, 0, 16)
        del buffer, group, compute_pass
        assert js.destroyed == 0  # the commands still need it
        device.queue.submit([encoder.finish()])
        assert js.destroyed == 1
        assert device.queue.read_buffer(target).cast("I")[0] == 9
        assert js.destroyed == 2  # the buffer it was read through
        for _ in range(50):
            device.create_buffer(size=1 << 20, usage="STORAGE")
        assert js.destroyed == 52
    finally:
        run_js("GPUBuffer.prototype.destroy = realDestroy")


@in_pyodide
def test_promises_are_kept_while_somebody_is_to_be_called_back_and_no_longer():
    import gc
    import weakref

    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    kept = wgpu.GPUPromise._UNRESOLVED
    before = len(kept)
    for _ in range(20):
        device.queue.on_submitted_work_done_async()  # nobody waits
    gc.collect()
    assert len(kept) == before, len(kept)
    called = []
    weak = weakref.ref(device.queue.on_submitted_work_done_async().then(called.append))
    gc.collect()
    assert weak() is not None and len(kept) > before  # else nothing would be called
    weak().sync_wait()
    assert called == [None]
    buffer = device.create_buffer(size=8, usage="MAP_READ")
    buffer.map_async("READ").sync_wait()
    gc.collect()
    assert len(kept) == before, len(kept)


@in_pyodide
def test_rendering_says_that_it_is_not_here():
    import wgpu.utils
    from emberlet.errors import UnsupportedError

    device = wgpu.utils.get_default_device()
    encoder = device.create_command_encoder()
    for call in (
        lambda: device.create_texture(size=(4, 4, 1), format="r8unorm", usage="COPY_DST"),
        lambda: encoder.begin_render_pass(color_attachments=[]),
        lambda: wgpu.gpu.get_canvas_context({}),
        lambda: device.create_bind_group_layout(entries=[{"binding": 0, "visibility": 4, "sampler": {}}]),
    ):
        error = raised(UnsupportedError, call)
        assert "buffers" in str(error)


@in_pyodide
def test_wrong_arguments_are_named():
    import wgpu.utils

    device = wgpu.utils.get_default_device()
    buffer = device.create_buffer(size=16, usage="COPY_DST|COPY_SRC|STORAGE")
    encoder = device.create_command_encoder()
    for error, call in (
        (TypeError, lambda: device.create_shader_module(code=b"\x03\x02#\x07")),
        (TypeError, lambda: device.create_compute_pipeline(layout=None, compute={"module": None})),
        (ValueError, lambda: device.create_buffer_with_data(data=b"", usage="STORAGE")),
        (ValueError, lambda: device.create_bind_group_layout(entries=[{"binding": 0, "vis": 4}])),
        (ValueError, lambda: device.queue.write_buffer(buffer, 0, b"abc")),
        (ValueError, lambda: device.queue.write_buffer(buffer, 16, b"abcd")),
        (ValueError, lambda: device.queue.write_buffer(buffer, 0, b"abcd", 4, 4)),
        (ValueError, lambda: device.queue.read_buffer(buffer, 8, 12)),
        (ValueError, lambda: encoder.copy_buffer_to_buffer(buffer, 2, buffer, 8, 4)),
        (ValueError, lambda: encoder.clear_buffer(buffer, 2)),
    ):
        raised(error, call)


@in_pyodide
def test_immediates():
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    if "immediate_address_space" not in wgpu.gpu.wgsl_language_features:
        return
    module = device.create_shader_module(
        code="requires immediate_address_space; var<immediate> k: u32;"
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;"
        "@compute @workgroup_size(1) fn main() { x[0] += k; }"
    )
    layout = device.create_bind_group_layout(
        entries=[{"binding": 0, "visibility": "COMPUTE", "buffer": {"type": "storage"}}]
    )
    pipeline = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout], immediate_size=4), compute={"module": module}
    )
    buffer = device.create_buffer(size=4, usage="STORAGE|COPY_SRC")
    group = device.create_bind_group(layout=layout, entries=[{"binding": 0, "resource": buffer}])
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    for value in (3, 4):
        compute_pass.set_immediates(0, bytes([value, 0, 0, 0]))
        compute_pass.dispatch_workgroups(1)
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    assert device.queue.read_buffer(buffer).cast("I")[0] == 7


@in_pyodide
def test_a_pipeline_layout_asks_for_immediates_only_where_a_size_is_given():
    import wgpu
    from pyodide.code import run_js

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    asked = run_js(
        "globalThis.createsLayouts = GPUDevice.prototype.createPipelineLayout; const asked = [];"
        "GPUDevice.prototype.createPipelineLayout = ({ immediateSize }) => (asked.push(immediateSize ?? -1), {});"
        "asked"
    )
    try:
        device.create_pipeline_layout(bind_group_layouts=[])
        device.create_pipeline_layout(bind_group_layouts=[], immediate_size=0)
        device.create_pipeline_layout(bind_group_layouts=[], immediate_size=8)
    finally:
        run_js("GPUDevice.prototype.createPipelineLayout = globalThis.createsLayouts; delete globalThis.createsLayouts")
    assert list(asked) == [-1, -1, 8], list(asked)


@in_pyodide
async def test_reading_without_suspending():
    import wgpu
    from emberlet.wgpu_backend.browser import get_default_device_async

    device = await get_default_device_async()
    assert device is wgpu.utils.get_default_device()
    buffer = device.create_buffer_with_data(data=bytes(range(16)), usage="COPY_SRC")
    assert bytes(await device.queue.read_buffer_async(buffer, 4, 8)) == bytes(range(4, 12))
    both = [device.queue.read_buffer_async(buffer), device.queue.read_buffer_async(buffer, 0, 4)]
    assert [len(await promise) for promise in both] == [16, 4]


def test_waiting_where_python_cannot_be_suspended_points_to_the_async_twin(pyodide_page: Page) -> None:
    code = """() => {
      try { pyodide.runPython("import wgpu; wgpu.gpu.request_adapter_sync()") } catch (error) { return error.message }
    }"""
    message = pyodide_page.evaluate(code)
    assert "RuntimeError" in message and "_async twin" in message


def test_synchronous_code_runs_in_a_worker(browser: Browser, runtimes: Server) -> None:
    page = browser.open(runtimes.url + "support/worker.html")
    answer = page.evaluate(
        "(code) => runInWorker(code)",
        """
import emberlet.wgpu_backend.browser
from wgpu.utils.compute import compute_with_buffers
shader = "@group(0) @binding(0) var<storage, read_write> x: array<u32>; \
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) i: vec3<u32>) { x[i.x] = i.x * i.x; }"
compute_with_buffers({}, {0: (5, "I")}, shader)[0].tolist()
""",
    )
    page.close()
    assert answer == [0, 1, 4, 9, 16]


def test_a_page_without_webgpu_says_why(pyodide_page: Page) -> None:
    code = """async () => {
      const real = Object.getOwnPropertyDescriptor(Navigator.prototype, "gpu");
      Object.defineProperty(Navigator.prototype, "gpu", { value: undefined, configurable: true });
      try {
        await pyodide.runPythonAsync("import wgpu; wgpu.gpu.request_adapter_sync()");
      } catch (error) {
        return error.message;
      } finally {
        Object.defineProperty(Navigator.prototype, "gpu", real);
      }
    }"""
    assert "this browser has no WebGPU" in pyodide_page.evaluate(code)


def test_the_backend_refuses_to_load_elsewhere() -> None:
    import importlib

    import pytest

    with pytest.raises(ImportError, match="under Pyodide only"):
        importlib.import_module("emberlet.wgpu_backend.browser")


@in_pyodide
def test_kernels_for_gpus_are_compiled_and_computed_in_a_browser():
    """Chromium's compiler checks what Naga does not, such as barriers that some invocations might not reach."""
    import emberlet
    from emberlet import functional as F
    from emberlet.backend import get_backend
    from emberlet.wgpu_backend import WgpuBackend
    from emberlet.wgpu_backend.kernels.table import Options

    gpu = WgpuBackend(device=get_backend("wgpu").device)
    gpu._options = Options("gpu")

    def numbers(backend, function, *shapes):
        count = [1] * len(shapes)
        for i, shape in enumerate(shapes):
            for d in shape:
                count[i] *= d
        flat = [emberlet.asarray([(k * 37 % 19 - 9) / 8 for k in range(n)], backend=backend) for n in count]
        out = function(*[F.reshape(x, shape) for x, shape in zip(flat, shapes, strict=True)])
        return F.reshape(out, (-1,)).tolist()

    cases = (
        (F.matmul, (4, 96), (96, 8)),  # lanes that share the steps of a tile
        (lambda x, w: F.conv2d(x, w, padding=1), (1, 16, 5, 5), (4, 16, 3, 3)),
        (F.attention, (1, 2, 3, 8), (1, 2, 40, 8), (1, 2, 40, 8)),  # lanes that share keys
    )
    for function, *shapes in cases:
        found, expected = (numbers(b, function, *shapes) for b in (gpu, get_backend("python")))
        assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) < 1e-4, (function, found, expected)
