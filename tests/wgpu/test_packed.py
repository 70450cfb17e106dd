"""int8, uint8 and bool inputs stay packed four to a word on the GPU, and kernels unpack them."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.plan.make import make_plan

NARROW = pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.bool], ids=str)


def _moved(gpu, make, x):
    return gpu.from_bytes(make.cpu.to_bytes(x), x.dtype, x.shape)


@NARROW
@pytest.mark.parametrize("count", [1, 3, 4, 1001])
def test_elements_take_a_byte_and_travel_unchanged(gpu, make, dtype, count):
    x = make((count,), dtype, -128, 128)
    moved = _moved(gpu, make, x)
    gpu.realize(moved)
    assert moved.data.nbytes == (count + 3) // 4 * 4
    assert gpu.to_list(moved) == x.tolist()
    assert gpu.to_bytes(moved) == make.cpu.to_bytes(x)
    assert gpu.to_list(gpu.from_list(x.tolist(), dtype, (count,))) == x.tolist()


@NARROW
@pytest.mark.parametrize("shape", [(5, 7), (128, 132), (130, 129)], ids=str)
def test_maps_of_views(twin, make, dtype, shape):
    x = make(shape, dtype, -128, 128)
    twin.check(lambda k, x: k.cast(x, dtypes.float32), x)
    twin.check(lambda k, x: k.binary("mul", k.cast(x, dtypes.int32), k.full((), 3, dtypes.int32)), x)
    twin.check(lambda k, x: k.permute(x, (1, 0)), x)
    twin.check(lambda k, x: k.reshape(x, (shape[0] * shape[1],)), x)
    twin.check(lambda k, x: k.slice(x, (1, 2), (3, 2), (1, 2)), x)
    twin.check(lambda k, x: k.concat([x, k.binary("logical_and" if dtype.is_bool else "add", x, x), x], 0), x)


@NARROW
def test_every_kind_of_kernel_reads_them(twin, make, dtype):
    x = make((33, 40), dtype, -128, 128)
    picks = make((9, 40), dtypes.int64, 0, 33)
    twin.check(lambda k, x, i: k.gather(x, i, 0), x, picks)
    twin.check(lambda k, x, i, u: k.scatter(x, i, u, 0, "none"), x, picks, make((9, 40), dtype, -128, 128))
    twin.check(lambda k, x: k.sort(x, 1, False), x)
    if not dtype.is_bool:
        twin.check(lambda k, x: k.reduce("max", x, (1,), False), x)
        twin.check(lambda k, x: k.reduce("sum", x, (0, 1), False), x)
        twin.check(lambda k, x: k.cumulative("sum", x, 1), x)
        twin.check(lambda k, x, y: k.matmul(x, y), x, make((40, 36), dtype, -128, 128))
        twin.check(
            lambda k, x, y: k.matmul(k.cast(x, dtypes.float32), k.cast(y, dtypes.float32)),
            x,
            make((40, 36), dtype, -128, 128),
        )
    y = make((40, 40))
    twin.check(lambda k, c, y: k.where(k.cast(c, dtypes.bool), y, k.unary("neg", y)), make((40, 40), dtype, -2, 2), y)


@NARROW
def test_pages_are_read_by_elements(gpu, make, dtype, monkeypatch):
    x = _moved(gpu, make, make((1000,), dtype, -128, 128))
    monkeypatch.setattr(gpu.device, "page_bytes", 256)
    monkeypatch.setattr(gpu.options, "page_bytes", 256)
    assert len(gpu.upload(x.data).pages) == 4
    y = F.sum(F.astype(x, dtypes.float32))
    plan, _ = make_plan([y.data], gpu.options)
    assert "load_in0" in plan.kernels[0][1]
    assert gpu.to_list(y) == [np.sum(np.array(x.tolist(), np.float64))]


@NARROW
def test_compiled_and_saved_plans_take_them_packed(gpu, make, dtype, tmp_path):
    x = make((5, 5), dtype, -128, 128)

    def model(x):
        return F.sum(F.astype(x, dtypes.float32), axis=0), x

    want = np.array(x.tolist(), np.float32)
    compiled = compile(model, x, backend=gpu)
    assert [b for _, b in compiled.planned().program.inputs] == [28]
    path = str(tmp_path / "x.plan")
    plan_file.save(path, model, x)
    for total, same in (compiled(x), plan_file.load(path, gpu.device).run(x)):
        np.testing.assert_array_equal(
            np.array(total.tolist() if hasattr(total, "tolist") else total.to_list()), want.sum(0)
        )
        assert (same.tolist() if hasattr(same, "tolist") else same.to_list()) == x.tolist()


def test_weights_stay_packed_in_a_plan(gpu, make, tmp_path):
    table = make((64, 16), dtypes.int8, -128, 128)
    picks = make((5,), dtypes.int32, 0, 64)

    def model(i):
        return F.take(table if i.backend is make.cpu else table.to_device(i.backend), i, axis=0) * 2

    path = str(tmp_path / "x.plan")
    plan = plan_file.save(path, model, picks)
    assert 64 * 16 in [b.nbytes for b in plan.buffers]
    (out,) = plan_file.load(path, gpu.device).run(picks)
    np.testing.assert_array_equal(out.to_list(), np.array(model(picks).tolist()))


def test_kernels_of_ones_own_are_given_words(gpu, make):
    x = make((9,), dtypes.int8, -128, 128)
    source = """{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = {{ flat }};
    if (i < {{ count }}u) {
        out[i] = in0[i] + 1000;
    }
}
"""
    moved = _moved(gpu, make, x)
    out = gpu.launch("thousand", source, [moved], dtypes.int32, (9,), (9, 64))
    assert gpu.to_list(out) == [v + 1000 for v in x.tolist()]


@NARROW
def test_large_maps_store_four_to_a_word_and_whatever_reads_them_agrees(gpu, twin, make, dtype):
    shape = (130, 128)
    x, y = make(shape, dtype, -128, 128), make(shape, dtype, -128, 128)
    op = "logical_xor" if dtype.is_bool else "mul"
    held = []

    def mapped(k, x, y):
        z = k.permute(k.binary(op, x, y), (1, 0))
        k.realize(z)
        held.append(z)
        return z

    twin.check(mapped, x, y)
    assert held[-1].data.nbytes == 130 * 128
    readers = [
        lambda k, x, y: k.binary(op, mapped(k, x, y), k.permute(x, (1, 0))),
        lambda k, x, y: k.cast(k.slice(mapped(k, x, y), (3, 1), (50, 61), (2, 2)), dtypes.float32),
        lambda k, x, y: k.reshape(mapped(k, x, y), (65, 256)),
        lambda k, x, y: k.sort(mapped(k, x, y), 1, True),
        lambda k, x, y: k.matmul(k.cast(mapped(k, x, y), dtypes.float32), k.cast(y, dtypes.float32)),
        lambda k, x, y: k.concat([mapped(k, x, y), k.permute(x, (1, 0))], 0),
        lambda k, x, y: k.reduce("sum", k.cast(mapped(k, x, y), dtypes.int32), (0, 1), False),
    ]
    for reader in readers:
        twin.check(reader, x, y)


@NARROW
def test_temporaries_results_and_reshapes_of_plans_are_packed(gpu, make, dtype, tmp_path):
    shape = (128, 132)
    x, y = make(shape, dtype, -128, 128), make(shape, dtype, -128, 128)

    def model(x, y):
        z = F.logical_xor(x, y) if dtype.is_bool else x * y
        z = F.permute_dims(z, (1, 0))
        wide = F.reshape(z, (66, 256))
        return F.sum(F.astype(z, dtypes.int32), axis=0), F.max(F.astype(z, dtypes.float32)), wide, z

    want = [r.tolist() for r in model(x, y)]
    compiled = compile(model, x, y, backend=gpu)
    assert [r.tolist() for r in compiled(x, y)] == want
    plan = compiled.plan()
    assert [plan.buffers[plan.outputs[i]].nbytes for i in (2, 3)] == [128 * 132] * 2
    path = str(tmp_path / "x.plan")
    plan_file.save(path, model, x, y)
    flat = [np.array(w).reshape(-1).tolist() for w in want]
    assert [np.array(r.to_list()).reshape(-1).tolist() for r in plan_file.load(path, gpu.device).run(x, y)] == flat


@NARROW
def test_large_results_are_paged_and_given_to_kernels_of_ones_own_in_words(gpu, make, dtype, monkeypatch):
    x = make((1 << 15,), dtype, -128, 128)
    source = """{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = {{ flat }};
    if (i < {{ count }}u) {
        out[i] = i32(in0[i]) + 1000;
    }
}
"""
    moved = _moved(gpu, make, x)
    z = gpu.binary("logical_or" if dtype.is_bool else "maximum", moved, moved)
    for given in (gpu.reshape(z, (128, 256)), z):
        out = gpu.launch("thousand_more", source, [given], dtypes.int32, (1 << 15,), (1 << 15, 64))
        assert gpu.to_list(out) == [v + 1000 for v in x.tolist()]
    z = gpu.binary("logical_or" if dtype.is_bool else "maximum", moved, moved)
    gpu.realize(z)
    assert z.data.nbytes == 1 << 15
    out = gpu.launch("thousand_more", source, [gpu.reshape(z, (128, 256))], dtypes.int32, (1 << 15,), (1 << 15, 64))
    assert gpu.to_list(out) == [v + 1000 for v in x.tolist()]
    for limits in (gpu.device, gpu.options):
        monkeypatch.setattr(limits, "page_bytes", 1 << 14)
    gpu._plans.clear()
    moved = _moved(gpu, make, x)
    z = gpu.unary("logical_not" if dtype.is_bool else "bitwise_not", moved)
    assert gpu.to_list(z) == [not v if dtype.is_bool else ~v % 256 if dtype is dtypes.uint8 else ~v for v in x.tolist()]
    assert len(z.data.buffer.pages) == 2
    gpu._plans.clear()
