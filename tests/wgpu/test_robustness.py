"""Failures on a GPU: shaders that do not compile, lost devices, memory, threads, two devices."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import BackendError, UnsupportedError
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.device import Device


@pytest.fixture
def own_device(gpu):
    """A device that a test may break."""
    adapter = gpu.device.raw.adapter
    return Device(adapter.request_device_sync())


def test_a_shader_that_does_not_compile_is_named_with_its_lines(gpu):
    with pytest.raises(BackendError) as caught:
        gpu.device.pipeline("broken", "@compute @workgroup_size(1)\nfn main() {\n    let x = 1.0 + 1u;\n}")
    message = str(caught.value)
    assert "compiling kernel broken failed" in message
    assert "   3      let x = 1.0 + 1u;" in message


def test_after_a_faulty_shader_the_next_kernel_works(gpu, make, twin):
    with pytest.raises(BackendError):
        gpu.device.pipeline("broken", "fn main( {")
    twin.check(lambda k, x: k.unary("exp", x), make((5,)))


def test_an_allocation_the_device_refuses_is_an_error(gpu):
    with pytest.raises(BackendError, match=r"allocating \d+ bytes on the GPU failed"):
        device = Device(gpu.device.raw)
        device.page_bytes = 1 << 50
        device.allocate(1 << 44)


def test_after_a_refused_allocation_the_next_kernel_works(gpu, make, twin, monkeypatch):
    with monkeypatch.context() as limits, pytest.raises(BackendError):
        limits.setattr(gpu.device, "page_bytes", 1 << 50)
        gpu.device.allocate(1 << 44)
    twin.check(lambda k, x: k.unary("exp", x), make((5,)))


def test_buffers_from_before_a_failure_are_not_used_again(own_device):
    pooled, lent = own_device.allocate(1 << 12), own_device.allocate(1 << 12)
    pooled.free()
    assert own_device.free_bytes == 1 << 12
    own_device.failure("testing", RuntimeError("out of memory"))
    lent.free()
    assert own_device.free_bytes == 0
    assert own_device.live_bytes == 0
    own_device.allocate(1 << 12).free()
    assert own_device.free_bytes == 1 << 12


def test_a_tensor_beyond_all_bindings_is_refused_by_the_kernels_name(gpu):
    with pytest.raises(UnsupportedError, match="needs 1024"):
        limit = gpu.options.page_bytes
        gpu.realize(gpu.full((1024 * limit // 4,), 1.0, dtypes.float32))


def test_a_lost_device_is_reported_and_a_new_one_works(own_device, gpu, make, twin):
    backend = WgpuBackend(device=own_device)
    x = backend.from_list([1.0, 2.0], dtypes.float32, (2,))
    backend.realize(x)
    own_device.raw.destroy()
    with pytest.raises(BackendError, match="the GPU device was lost while"):
        backend.to_list(backend.unary("exp", x))
    assert own_device.lost
    twin.check(lambda k, x: k.unary("exp", x), make((5,)))


def test_a_tensor_of_a_lost_device_is_refused_by_its_successor(own_device, gpu):
    backend = WgpuBackend(device=own_device)
    backend._opened = True
    x = backend.from_list([1.0, 2.0], dtypes.float32, (2,))
    backend.realize(x)
    own_device.raw.destroy()
    own_device.lost = True
    with pytest.raises(BackendError, match=r"is on another GPU device or on one that was lost"):
        backend.to_list(backend.unary("exp", x))


def test_tensors_of_two_backends_do_not_mix(gpu, own_device):
    other = WgpuBackend(1, device=own_device)
    x = gpu.from_list([1.0], dtypes.float32, (1,))
    y = other.from_list([1.0], dtypes.float32, (1,))
    with pytest.raises(BackendError):
        F.add(x, y)
    with pytest.raises(BackendError, match="wgpu:1"):
        gpu.binary("add", x, y)


def test_a_thousand_inferences_leak_no_gpu_memory(gpu, make):
    x = make((4, 16))
    weight = gpu.from_bytes(make.cpu.to_bytes(make((16, 8))), dtypes.float32, (16, 8))

    def model(x):
        return F.softmax(F.relu(F.matmul(x, weight)))

    compiled = compile(model, x, backend=gpu)
    moved = gpu.from_bytes(make.cpu.to_bytes(x), x.dtype, x.shape)
    for _ in range(10):
        compiled(x)
        gpu.to_list(model(moved))
    gc.collect()
    live, created = gpu.device.live_bytes, gpu.device.created_buffers
    for _ in range(500):
        compiled(x)
        gpu.to_list(model(moved))
    gc.collect()
    assert gpu.device.live_bytes == live
    assert gpu.device.created_buffers == created


def test_memory_comes_back_when_tensors_go(gpu):
    gc.collect()
    live = gpu.device.live_bytes
    x = gpu.full((1000, 1000), 1.5, dtypes.float32)
    gpu.realize(x)
    assert gpu.device.live_bytes >= live + 4_000_000
    del x
    gc.collect()
    assert gpu.device.live_bytes == live


def test_several_threads_compile_models_that_share_weights_or_ask_for_values(gpu, make):
    x = make((8, 8))
    failures = []
    for _ in range(5):
        weight = gpu.from_bytes(make.cpu.to_bytes(make((8, 8))), dtypes.float32, (8, 8))
        begin = threading.Barrier(4)

        def work(i, weight=weight, begin=begin):
            def model(x):
                y = F.matmul(x, weight)
                gpu.realize(y)  # during a trace, this does not ask the GPU
                return y if i % 2 else (F.negative(y) if float(F.sum(y)) > 0 else y)

            try:
                begin.wait()
                compiled = compile(model, x, backend=gpu)
                assert (compiled.cut is None) == bool(i % 2)
                gpu.to_list(compiled(x))
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_several_threads_run_several_models(gpu, make):
    inputs = [make((8, 8)) for _ in range(4)]
    arrays = [np.array(x.backend.to_list(x)).reshape(8, 8) for x in inputs]
    failures = []

    def work(i):
        try:
            compiled = compile(lambda x: F.matmul(F.exp(x * (0.1 * (i + 1))), x), inputs[i], backend=gpu)
            want = np.exp(arrays[i] * (0.1 * (i + 1))) @ arrays[i]
            for _ in range(20):
                y = gpu.from_bytes(make.cpu.to_bytes(inputs[i]), dtypes.float32, (8, 8))
                for got in (compiled(inputs[i]), F.matmul(F.exp(y * (0.1 * (i + 1))), y)):
                    np.testing.assert_allclose(np.array(gpu.to_list(got)).reshape(8, 8), want, rtol=1e-3, atol=1e-3)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
