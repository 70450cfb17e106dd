"""The number of kernels after fusion, and the values of random graphs."""

from __future__ import annotations

import random

import pytest
from emberlet import dtypes
from emberlet.wgpu_backend.plan.make import make_plan
from support.rows import every


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


def _grow(k, choose, pool):
    """One random step: a new tensor from those in the pool."""
    x = choose.choice(pool)
    kind = choose.randrange(13)
    if kind == 9:
        constant = k.full((1,) * choose.randrange(len(x.shape) + 1), choose.choice([0.0, -1.0, 2.5]), x.dtype)
        sides = [constant, x] if choose.random() < 0.5 else [x, constant]
        return k.binary(choose.choice(["add", "mul", "maximum", "sub"]), *sides)
    if kind == 10 and len(x.shape) < 5:
        at = choose.randint(0, len(x.shape))
        return k.reshape(x, (*x.shape[:at], 1, *x.shape[at:]))
    if kind == 11:
        starts = tuple(d - 1 if choose.random() < 0.5 else 0 for d in x.shape)
        return k.slice(x, starts, x.shape, tuple(-1 if s else 1 for s in starts))
    if kind == 12:
        return k.cumulative(choose.choice(["max", "min"]), x, choose.randrange(len(x.shape)))
    if kind == 0:
        return k.unary(choose.choice(["neg", "abs", "tanh", "floor"]), x)
    if kind == 1:
        same = [y for y in pool if y.shape == x.shape]
        return k.binary(choose.choice(["add", "mul", "maximum", "sub"]), x, choose.choice(same))
    if kind == 2:
        return k.reduce(choose.choice(["max", "min"]), x, (choose.randrange(len(x.shape)),), True)
    if kind == 3 and len(x.shape) == 2:
        return k.unary("tanh", k.matmul(x, k.permute(x, (1, 0))))
    if kind == 4:
        return k.reshape(x, tuple(reversed(x.shape)))
    if kind == 5:
        order = list(range(len(x.shape)))
        choose.shuffle(order)
        return k.permute(x, tuple(order))
    if kind == 6:
        return k.pad(x, tuple((choose.randrange(2), choose.randrange(2)) for _ in x.shape), 0.5)
    if kind == 7:
        return k.slice(x, (0,) * len(x.shape), tuple(max(1, d - 1) for d in x.shape), (1,) * len(x.shape))
    same = [y for y in pool if y.shape == x.shape]
    return k.concat([x, choose.choice(same)], choose.randrange(len(x.shape)))


@every("seed", range(40))
def test_random_graphs_keep_their_values(twin, make, seed):
    def graph(k, *inputs):
        choose = random.Random(seed)
        pool = list(inputs)
        for _ in range(choose.randint(4, 30)):
            y = _grow(k, choose, pool)
            if y.size < 4000:
                pool.append(y)
        return tuple(choose.sample(pool[len(inputs) :], 2)) if len(pool) > len(inputs) + 2 else (pool[-1],)

    twin.check(graph, make((3, 4)), make((3, 4)), make((2, 3, 4)), rtol=1e-3, atol=1e-4)


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


@pytest.mark.parametrize("seed", range(60))
def test_maps_of_four_elements_at_a_time_keep_the_values(gpu, twin, make, monkeypatch, seed):
    from emberlet.wgpu_backend import WgpuBackend
    from emberlet.wgpu_backend.record import node

    monkeypatch.setattr(node, "WIDE", 4)
    twin.gpu = WgpuBackend(device=gpu.device)

    def graph(k, *inputs):
        choose = random.Random(seed)
        pool = list(inputs)
        for _ in range(choose.randint(3, 12)):
            y = _grow(k, choose, pool)
            if y.size < 4000:
                pool.append(y)
        return pool[-1], pool[-2]

    twin.check(graph, make((3, 4)), make((8, 4)), make((2, 3, 8)), rtol=1e-3, atol=1e-4)


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
