"""The number of kernels after fusion."""

from __future__ import annotations

import pytest
from emberlet import dtypes
from emberlet.wgpu_backend.plan.make import make_plan


def _dispatches(gpu, *tensors):
    plan, _ = make_plan([t.data for t in tensors], gpu.options)
    return len(plan.steps)


@pytest.fixture
def on_gpu(gpu, make):
    return lambda *shape: gpu.from_bytes(make.cpu.to_bytes(make(shape)), dtypes.float32, shape)


def test_operations_on_constants_are_computed_once_on_the_host(gpu):
    x, y = gpu.full((4,), 2.5, dtypes.float32), gpu.full((4,), -3.0, dtypes.float32)
    for result in (gpu.unary("exp", x), gpu.binary("mul", x, y), gpu.cast(x, dtypes.int32)):
        assert result.data.op == "full"


def test_a_chain_of_elementwise_operations_and_views_is_one_kernel(gpu, on_gpu):
    x, y = on_gpu(4, 6), on_gpu(6)
    z = gpu.binary("add", gpu.unary("exp", x), y)
    z = gpu.reshape(gpu.permute(z, (1, 0)), (3, 8))
    assert _dispatches(gpu, gpu.unary("tanh", z)) == 1


def test_convolution_takes_bias_and_activation_and_residual_along(gpu, on_gpu):
    x, w, b, r = on_gpu(1, 3, 8, 8), on_gpu(4, 3, 3, 3), on_gpu(4), on_gpu(1, 4, 8, 8)
    y = gpu.conv(x, w, b, (1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    y = gpu.binary("maximum", gpu.binary("add", y, r), gpu.full((), 0.0, dtypes.float32))
    assert _dispatches(gpu, y) == 1


def test_convolutions_write_straight_into_their_concatenation(gpu, on_gpu):
    x = on_gpu(1, 3, 8, 8)
    parts = []
    for _ in range(2):
        y = gpu.conv(x, on_gpu(4, 3, 3, 3), on_gpu(4), (1, 1), ((1, 1), (1, 1)), (1, 1), 1)
        parts.append(gpu.binary("maximum", y, gpu.full((), 0.0, dtypes.float32)))
    assert _dispatches(gpu, gpu.concat(parts, 1)) == 2


def test_a_reduction_takes_its_prologue_and_epilogue_along(gpu, on_gpu):
    x = on_gpu(5, 7)
    y = gpu.reduce("sum", gpu.binary("mul", x, x), (1,), False)
    assert _dispatches(gpu, gpu.unary("sqrt", y)) == 1


def test_a_reshape_of_a_result_shares_its_buffer(gpu, on_gpu):
    y = gpu.matmul(on_gpu(4, 5), on_gpu(5, 6))
    gpu.realize(y)
    assert _dispatches(gpu, gpu.reshape(y, (2, 12))) == 0


def test_temporaries_whose_lifetimes_do_not_overlap_share_a_buffer(gpu, on_gpu):
    x = on_gpu(8, 8)
    for _ in range(6):
        x = gpu.matmul(x, on_gpu(8, 8))
    plan, _ = make_plan([x.data], gpu.options)
    assert len([b for b in plan.buffers if b.kind == "temporary"]) == 2


def _softmax(k, x, axis):
    e = k.unary("exp", k.binary("sub", x, k.reduce("max", x, (axis,), True)))
    return k.binary("div", e, k.reduce("sum", e, (axis,), True))


def _standardized(k, x, axes):
    n = 1
    for a in axes:
        n *= x.shape[a]
    count = k.full((), n, x.dtype)
    centered = k.binary("sub", x, k.binary("div", k.reduce("sum", x, axes, True), count))
    var = k.binary("div", k.reduce("sum", k.binary("mul", centered, centered), axes, True), count)
    root = k.unary("sqrt", k.binary("add", var, k.full((), 1e-5, x.dtype)))
    return k.binary("div", centered, root)


@pytest.mark.parametrize("shape", [(4, 5), (3, 700), (500, 40), (2, 3, 4)], ids=str)
def test_softmax_and_normalization_are_one_kernel_each(gpu, twin, make, on_gpu, shape):
    last = len(shape) - 1
    for axis in (0, last):
        twin.check(lambda k, x, axis=axis: _softmax(k, x, axis), make(shape))
        assert _dispatches(gpu, _softmax(gpu, on_gpu(*shape), axis)) == 1
    twin.check(lambda k, x: _standardized(k, x, (last,)), make(shape), atol=1e-4)
    twin.check(lambda k, x: _standardized(k, x, (0, last)), make(shape), atol=1e-4)
    assert _dispatches(gpu, _standardized(gpu, on_gpu(*shape), (last,))) == 1


def test_a_normalization_takes_its_weights_along_and_a_product_before_it_does_not_join(gpu, twin, make, on_gpu):
    def layer(k, x, w, g, b):
        y = _standardized(k, k.matmul(x, w), (1,))
        return k.reshape(k.binary("add", k.binary("mul", y, g), b), (2, 2, 6))

    twin.check(layer, make((4, 5)), make((5, 6)), make((6,)), make((6,)), atol=1e-4)
    assert _dispatches(gpu, layer(gpu, on_gpu(4, 5), on_gpu(5, 6), on_gpu(6), on_gpu(6))) == 2


def test_large_maps_read_and_write_vectors(gpu, on_gpu):
    x, y = on_gpu(128, 130), on_gpu(130)
    plan, _ = make_plan([gpu.binary("add", gpu.unary("exp", x), x).data], gpu.options)
    assert "array<vec4<f32>" in plan.kernels[0][1].split("out:")[0]
    plan, _ = make_plan([gpu.binary("add", x, y).data], gpu.options)
    assert "out: array<vec4<f32>" in plan.kernels[0][1]


@pytest.mark.parametrize("shape", [(4, 2, 1, 1), (2, 4), (8, 2), (4, 3)], ids=str)
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_rolled_axes_of_maps_of_four_elements(gpu, twin, make, monkeypatch, shape, shift):
    from emberlet import functional as F
    from emberlet.wgpu_backend.compiled import compile
    from emberlet.wgpu_backend.record import node

    monkeypatch.setattr(node, "WIDE", 4)
    x = make(shape)
    for axis in range(len(shape)):
        found = compile(lambda x, axis=axis: F.roll(x, shift, axis), x, backend=gpu)(x)
        assert found.tolist() == F.roll(x, shift, axis).tolist()
