"""wgpu-py compute code that runs unchanged on the desktop and in a browser tab."""

from support.browser.in_page import raised
from support.browser.in_pyodide import in_pyodide, on_both_sides


@on_both_sides
def test_compute_with_buffers():
    import array

    from wgpu.utils.compute import compute_with_buffers

    shader = """
    override scale: f32 = 2.0;
    @group(0) @binding(0) var<storage, read> a: array<f32>;
    @group(0) @binding(1) var<storage, read_write> b: array<f32>;
    @compute @workgroup_size(1)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = scale * a[id.x]; }
    """
    values = array.array("f", range(20))
    out = compute_with_buffers({0: values}, {1: (20, "f")}, shader)
    assert out[1].tolist() == [2.0 * i for i in range(20)], out[1].tolist()
    out = compute_with_buffers({0: values}, {1: (4, 5, "f")}, shader, constants={"scale": 0.5}, n=20)
    assert out[1].shape == (4, 5)
    assert out[1].tolist()[3] == [7.5, 8.0, 8.5, 9.0, 9.5]


@on_both_sides
def test_data_of_any_length_goes_up_and_comes_back():
    import array

    import wgpu.utils

    device = wgpu.utils.get_default_device()
    for data in (b"hello", bytearray(range(8)), memoryview(array.array("f", [1.5, 2.5])), bytes(100_001)):
        buffer = device.create_buffer_with_data(data=data, usage="STORAGE|COPY_SRC")
        size = memoryview(data).nbytes
        assert buffer.size == (size + 3) // 4 * 4
        back = device.queue.read_buffer(buffer)
        assert isinstance(back, memoryview) and back.format == "B"
        assert bytes(back)[:size] == memoryview(data).cast("B"), data


@on_both_sides
def test_parts_of_a_buffer():
    import wgpu.utils

    device = wgpu.utils.get_default_device()
    buffer = device.create_buffer(size=32, usage=wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.COPY_SRC)
    device.queue.write_buffer(buffer, 8, bytes(range(16)))
    device.queue.write_buffer(buffer, 0, bytes(range(100, 120)), 4, 4)
    assert bytes(device.queue.read_buffer(buffer, 4, 12)) == bytes([0, 0, 0, 0, *range(8)])
    assert bytes(device.queue.read_buffer(buffer, 0, 4)) == bytes([104, 105, 106, 107])
    other = device.create_buffer(size=16, usage="COPY_DST|COPY_SRC")
    encoder = device.create_command_encoder()
    encoder.copy_buffer_to_buffer(buffer, 8, other, 0, 16)
    encoder.clear_buffer(other, 4, 8)
    device.queue.submit([encoder.finish()])
    assert bytes(device.queue.read_buffer(other)) == bytes([0, 1, 2, 3, *bytes(8), 12, 13, 14, 15])


@on_both_sides
def test_writes_to_many_sizes_do_not_mix():
    import wgpu.utils

    device = wgpu.utils.get_default_device()
    buffers = []
    for size in range(4, 4 * 40, 4):
        buffer = device.create_buffer(size=size, usage="COPY_DST|COPY_SRC")
        device.queue.write_buffer(buffer, 0, bytes([size % 251]) * size)
        buffers.append(buffer)
    for buffer in buffers:
        assert bytes(device.queue.read_buffer(buffer)) == bytes([buffer.size % 251]) * buffer.size


@on_both_sides
def test_mapping_to_write_and_to_read():
    import wgpu.utils

    device = wgpu.utils.get_default_device()
    source = device.create_buffer(size=32, usage="MAP_WRITE|COPY_SRC", mapped_at_creation=True)
    assert source.map_state == "mapped"
    source.write_mapped(bytes(range(32)))
    source.write_mapped(bytes([255] * 4), 8)
    source.unmap()
    assert source.map_state == "unmapped"
    target = device.create_buffer(size=32, usage="MAP_READ|COPY_DST")
    encoder = device.create_command_encoder()
    encoder.copy_buffer_to_buffer(source, 0, target, 0, 32)
    device.queue.submit([encoder.finish()])
    target.map_sync("READ", 8, 16)
    assert bytes(target.read_mapped()) == bytes([255] * 4 + list(range(12, 24)))
    assert bytes(target.read_mapped(16, 8)) == bytes(range(16, 24))
    assert bytes(target.read_mapped(8, 4, copy=False)) == bytes([255] * 4)
    target.unmap()
    source.map_sync(wgpu.MapMode.WRITE)
    source.write_mapped(bytes(8), 24)
    source.unmap()
    assert bytes(device.queue.read_buffer(source))[20:] == bytes([20, 21, 22, 23] + [0] * 8)


@on_both_sides
def test_mapping_is_refused_where_it_makes_no_sense():
    import wgpu.utils

    device = wgpu.utils.get_default_device()
    buffer = device.create_buffer(size=32, usage="MAP_READ|COPY_DST")
    refused = [
        (RuntimeError, lambda: buffer.unmap()),
        (RuntimeError, lambda: buffer.read_mapped()),
        (ValueError, lambda: buffer.map_sync("READ", 4)),
        (ValueError, lambda: buffer.map_sync("READ", 0, 6)),
        (ValueError, lambda: buffer.map_sync("READ", 0, 64)),
    ]
    for error, call in refused:
        raised(error, call)
    buffer.map_sync("READ", 8, 8)
    for error, call in [
        (RuntimeError, lambda: buffer.write_mapped(bytes(4))),
        (RuntimeError, lambda: buffer.map_sync("READ")),
        (ValueError, lambda: buffer.read_mapped(0, 8)),
        (ValueError, lambda: buffer.read_mapped(8, 16)),
    ]:
        raised(error, call)
    buffer.unmap()


@on_both_sides
def test_a_pipeline_with_its_own_layout_and_several_dispatches():
    import array

    import wgpu.utils

    device = wgpu.utils.get_default_device()
    module = device.create_shader_module(
        label="add one",
        code="""
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(4)
        fn add(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] += 1.0; }
        """,
    )
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "add"})
    buffer = device.create_buffer_with_data(data=array.array("f", range(8)), usage="STORAGE|COPY_SRC")
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": buffer}]
    )
    counts = device.create_buffer_with_data(data=array.array("I", [9, 1, 1, 1]), usage="INDIRECT")
    encoder = device.create_command_encoder(label="three times")
    compute_pass = encoder.begin_compute_pass(label="one pass")
    compute_pass.push_debug_group("group")
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    for _ in range(3):
        compute_pass.dispatch_workgroups(2)
    compute_pass.dispatch_workgroups_indirect(counts, 4)
    compute_pass.insert_debug_marker("done")
    compute_pass.pop_debug_group()
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    assert device.queue.read_buffer(buffer).cast("f").tolist() == [4.0, 5.0, 6.0, 7.0, 7.0, 8.0, 9.0, 10.0]


@in_pyodide  # on the desktop lavapipe (Mesa 22) ignores what is written through them
def test_dynamic_offsets():
    import wgpu.utils

    device = wgpu.utils.get_default_device()
    module = device.create_shader_module(
        code="""
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(1)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] = id.x + 7; }
        """
    )
    layout = device.create_bind_group_layout(
        entries=[
            wgpu.BindGroupLayoutEntry(
                binding=0,
                visibility="COMPUTE",
                buffer=wgpu.BufferBindingLayout(type="storage", has_dynamic_offset=True),
            )
        ]
    )
    pipeline = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
        compute=wgpu.ProgrammableStage(module=module, entry_point="main"),
    )
    buffer = device.create_buffer(size=512, usage="STORAGE|COPY_SRC")
    binding = wgpu.BufferBinding(buffer=buffer, offset=0, size=256)
    group = device.create_bind_group(layout=layout, entries=[wgpu.BindGroupEntry(binding=0, resource=binding)])
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group, [256])
    compute_pass.dispatch_workgroups(3)
    compute_pass.set_bind_group(0, group, [99, 0, 99], 1, 1)
    compute_pass.dispatch_workgroups(1)
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    out = device.queue.read_buffer(buffer).cast("I").tolist()
    assert out[:2] == [7, 0] and out[64:68] == [7, 8, 9, 0], (out[:2], out[64:68])


@on_both_sides
def test_timestamps():
    import wgpu

    adapter = wgpu.gpu.request_adapter_sync()
    assert "timestamp-query" in adapter.features
    device = adapter.request_device_sync(required_features=["timestamp-query"])
    assert "timestamp-query" in device.features
    queries = device.create_query_set(type="timestamp", count=2)
    assert (queries.type, queries.count) == ("timestamp", 2)
    times = device.create_buffer(size=16, usage="QUERY_RESOLVE|COPY_SRC")
    encoder = device.create_command_encoder()
    encoder.begin_compute_pass(
        timestamp_writes={
            "query_set": queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }
    ).end()
    encoder.resolve_query_set(queries, 0, 2, times, 0)
    device.queue.submit([encoder.finish()])
    begin, end = device.queue.read_buffer(times).cast("Q")
    assert 0 < begin <= end


@on_both_sides
def test_adapters_tell_limits_features_and_names():
    import wgpu

    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    assert adapter.limits["max-storage-buffer-binding-size"] >= 128 << 20
    assert adapter.limits["max-compute-workgroups-per-dimension"] == 65535
    assert adapter.limits["max-texture-dimension-1d"] >= 8192
    assert {"vendor", "architecture", "device", "description", "adapter_type", "backend_type"} <= set(adapter.info)
    assert adapter.summary
    assert adapter.info.is_fallback_adapter in (True, False)
    assert len(wgpu.gpu.enumerate_adapters_sync()) >= 1
    device = adapter.request_device_sync()
    for name in ("max-storage-buffer-binding-size", "max-buffer-size", "max-compute-workgroup-storage-size"):
        assert device.limits[name] == adapter.limits[name], name
    lower = adapter.request_device_sync(required_limits={"max_storage_buffer_binding_size": 128 << 20})
    assert lower.limits["max-storage-buffer-binding-size"] == 128 << 20
    assert device.adapter is adapter and device.adapter_info is adapter.info


@on_both_sides
def test_unknown_features_and_limits_are_refused():
    import wgpu

    adapter = wgpu.gpu.request_adapter_sync()
    for details in ({"required_features": ["teleportation"]}, {"required_limits": {"max-fun": 1}}):
        error = raised(KeyError, lambda details=details: adapter.request_device_sync(**details))
        assert "teleportation" in str(error) or "max-fun" in str(error)


@on_both_sides
async def test_the_async_twins():
    import wgpu

    adapter = await wgpu.gpu.request_adapter_async()
    device = await adapter.request_device_async()
    module = device.create_shader_module(
        code="""
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(1)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] = 5 * id.x; }
        """
    )
    pipeline = await device.create_compute_pipeline_async(
        layout="auto", compute={"module": module, "entry_point": "main"}
    )
    buffer = device.create_buffer(size=16, usage="STORAGE|COPY_SRC")
    result = device.create_buffer(size=16, usage="MAP_READ|COPY_DST")
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": buffer}}]
    )
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    compute_pass.dispatch_workgroups(4)
    compute_pass.end()
    encoder.copy_buffer_to_buffer(buffer, 0, result, 0, 16)
    device.queue.submit([encoder.finish()])
    await result.map_async("READ")
    assert result.read_mapped().cast("I").tolist() == [0, 5, 10, 15]
    result.unmap()


@on_both_sides
async def test_promises_call_back_and_chain():
    import asyncio

    import wgpu

    seen = []
    promise = wgpu.gpu.request_adapter_async()
    summary = promise.then(lambda adapter: adapter.summary)
    summary.then(seen.append)
    assert await summary == (await promise).summary
    assert (await promise) is (await promise)
    for _ in range(20):
        if seen:
            break
        await asyncio.sleep(0.01)
    assert seen == [await summary]


@on_both_sides
def test_objects_are_of_wgpu_py_s_classes():
    import wgpu.utils

    device = wgpu.utils.get_default_device()
    assert isinstance(device, wgpu.GPUDevice) and isinstance(device.queue, wgpu.GPUQueue)
    assert isinstance(device.adapter, wgpu.GPUAdapter) and isinstance(device.adapter.info, wgpu.GPUAdapterInfo)
    buffer = device.create_buffer(label="x", size=4, usage="STORAGE")
    assert isinstance(buffer, wgpu.GPUBuffer) and buffer.label == "x"
    assert getattr(buffer, "uid", 1) > 0  # wgpu-py 0.29 lacks it
    assert isinstance(device.create_command_encoder(), wgpu.GPUCommandEncoder)
    before = wgpu.diagnostics.object_counts.get_dict()["Buffer"]["count"]
    del buffer
    assert wgpu.diagnostics.object_counts.get_dict()["Buffer"]["count"] == before - 1
