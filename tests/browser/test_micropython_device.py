"""WebGPU from MicroPython's Wasm build in a browser tab."""

from support.browser.in_micropython import in_micropython


@in_micropython
async def test_a_kernel_runs():
    from array import array

    from emberlet.wgpu_backend.micropython.device import BufferUsage, gpu

    adapter = await gpu.request_adapter_async()
    assert adapter.info["vendor"] == "google" and adapter.info["adapter_type"] == "CPU"
    assert adapter.summary == "google swiftshader (CPU) via WebGPU", adapter.summary
    device = await adapter.request_device_async()
    assert device.limits["max-compute-workgroups-per-dimension"] == 65535
    assert device.limits["max-texture-dimension-1d"] == 8192
    module = device.create_shader_module(
        label="scale",
        code="@group(0) @binding(0) var<storage, read> a: array<f32>;"
        "@group(0) @binding(1) var<storage, read_write> b: array<f32>;"
        "@compute @workgroup_size(4)"
        "fn main(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = 2.0 * a[id.x]; }",
    )
    pipeline = device.create_compute_pipeline(
        label="scale", layout="auto", compute={"module": module, "entry_point": "main"}
    )
    values = array("f", [0.5 * i for i in range(16)])
    source = device.create_buffer_with_data(data=values, usage=BufferUsage.STORAGE | BufferUsage.COPY_DST)
    target = device.create_buffer(size=64, usage=BufferUsage.STORAGE | BufferUsage.COPY_SRC)
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[
            {"binding": 0, "resource": source},
            {"binding": 1, "resource": {"buffer": target, "offset": 0, "size": 64}},
        ],
    )
    for step in range(3):
        device.queue.write_buffer(source, 0, array("f", [float(step)] * 4))
        encoder = device.create_command_encoder()
        run = encoder.begin_compute_pass()
        run.set_pipeline(pipeline)
        run.set_bind_group(0, group)
        run.dispatch_workgroups(4)
        run.end()
        device.queue.submit([encoder.finish()])
        data = await device.queue.read_buffer_async(target)
        assert list(array("f", bytes(data))) == [2.0 * step] * 4 + [float(i) for i in range(4, 16)], step


@in_micropython
async def test_bytes_go_up_and_come_back_unharmed():
    from emberlet.wgpu_backend.micropython.device import BufferUsage, gpu

    device = await (await gpu.request_adapter_async()).request_device_async()
    usage = BufferUsage.COPY_SRC | BufferUsage.COPY_DST
    for data in (b"hello", bytes(range(256)) * 4096, bytearray(8), memoryview(b"01234567")[2:6]):
        buffer = device.create_buffer_with_data(data=data, usage=usage)
        back = await device.queue.read_buffer_async(buffer)
        assert bytes(back[: len(data)]) == bytes(data)
    buffer = device.create_buffer(size=32, usage=usage)
    other = device.create_buffer(size=32, usage=usage)
    device.queue.write_buffer(buffer, 8, b"abcdefgh")
    device.queue.write_buffer(buffer, 4, b"0123456789", 4, 4)
    encoder = device.create_command_encoder()
    encoder.copy_buffer_to_buffer(buffer, 0, other, 0, 32)
    encoder.clear_buffer(buffer, 0, 8)
    device.queue.submit([encoder.finish()])
    assert bytes(await device.queue.read_buffer_async(other)) == b"\0\0\0\0" + b"4567abcdefgh" + bytes(16)
    assert bytes(await device.queue.read_buffer_async(buffer, 4, 8)) == b"\0\0\0\0abcd"
    await device.queue.on_submitted_work_done_async()
    buffer.destroy()


@in_micropython
async def test_large_transfers_survive_a_growing_heap():
    import gc

    from emberlet.wgpu_backend.micropython.device import BufferUsage, gpu

    device = await (await gpu.request_adapter_async()).request_device_async()
    usage = BufferUsage.COPY_SRC | BufferUsage.COPY_DST
    for megabytes in (1, 8, 32):  # the interpreter starts with 4
        data = bytearray(megabytes << 20)
        data[-1] = megabytes
        buffer = device.create_buffer(size=len(data), usage=usage)
        device.queue.write_buffer(buffer, 0, data)
        back = await device.queue.read_buffer_async(buffer)
        assert back[-1] == megabytes and back[0] == 0 and len(back) == len(data)
        buffer.destroy()
        del data, back
        gc.collect()


@in_micropython
async def test_pipelines_compile_in_parallel():
    from emberlet.wgpu_backend.micropython.device import gpu

    device = await (await gpu.request_adapter_async()).request_device_async()
    code = (
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;"
        "@compute @workgroup_size(1) fn main() { x[0] += STEPu; }"
    )
    promises = []
    for i in range(4):
        module = device.create_shader_module(label="step", code=code.replace("STEP", str(i)))
        promises.append(device.create_compute_pipeline_async(layout="auto", compute={"module": module}))
    for promise in promises:
        (await promise).get_bind_group_layout(0)


@in_micropython
async def test_errors_are_raised_by_the_next_wait_and_the_device_goes_on():
    from emberlet.errors import BackendError
    from emberlet.wgpu_backend.micropython.device import BufferUsage, gpu

    device = await (await gpu.request_adapter_async()).request_device_async()
    buffer = device.create_buffer(size=16, usage=BufferUsage.COPY_SRC)
    module = device.create_shader_module(label="softmax", code="@compute @workgroup_size(1)\nfn main() { let x = y; }")
    for promise in (
        device.queue.read_buffer_async(buffer),
        device.create_compute_pipeline_async(layout="auto", compute={"module": module, "entry_point": "main"}),
    ):
        try:
            await promise
        except BackendError as error:
            assert "softmax" in str(error), error
        else:
            raise AssertionError("nothing was raised")
    kind, line, column, message = (await module.get_compilation_messages_async())[0]
    assert (kind, line, column) == ("error", 2, 21) and "'y'" in message, (kind, line, column, message)
    await device.queue.read_buffer_async(buffer)


@in_micropython
async def test_what_javascript_throws_becomes_an_error():
    from emberlet.errors import BackendError
    from emberlet.wgpu_backend.micropython.device import BufferUsage, gpu

    device = await (await gpu.request_adapter_async()).request_device_async()
    buffer = device.create_buffer(size=16, usage=BufferUsage.COPY_SRC | BufferUsage.COPY_DST)
    for call in (
        lambda: device.create_buffer(size=-4, usage=BufferUsage.STORAGE),
        lambda: device.create_bind_group(layout=None, entries=[]),
        lambda: device.create_compute_pipeline(layout=None, compute={"module": None}),
        lambda: device.queue.write_buffer(buffer, 0, b"123"),
        lambda: device.queue.write_buffer(buffer, 12, b"12345678"),
        lambda: device.queue.read_buffer_async(buffer, 8, 12),
    ):
        try:
            call()
        except BackendError:
            continue
        raise AssertionError("nothing was raised")
    await device.queue.read_buffer_async(buffer)


@in_micropython
async def test_a_lost_device_says_so():
    from emberlet.errors import BackendError
    from emberlet.wgpu_backend.micropython.device import BufferUsage, gpu

    device = await (await gpu.request_adapter_async()).request_device_async()
    buffer = device.create_buffer(size=16, usage=BufferUsage.COPY_SRC)
    device.destroy()
    for wait in (lambda: device.queue.read_buffer_async(buffer), lambda: device.queue.on_submitted_work_done_async()):
        try:
            await wait()
        except BackendError as error:
            assert "Device lost (destroyed)" in str(error), error
        else:
            raise AssertionError("nothing was raised")
