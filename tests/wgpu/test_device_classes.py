"""Kernels chosen for another class of device give the same results."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend, plan_file, saved_plan
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.lower.tiles import Tile
from emberlet.wgpu_backend.plan.make import make_plan


@pytest.fixture
def on_class(gpu, twin):
    def of(device_class):
        twin.gpu = WgpuBackend(device=gpu.device)
        twin.gpu._options = Options(device_class)
        return twin

    return of


@pytest.mark.parametrize("device_class", ["cpu", "swiftshader", "gpu"])
@pytest.mark.parametrize(
    "a, b",
    [((64, 64), (64, 64)), ((130, 70), (70, 131)), ((2, 3, 40, 36), (3, 36, 44)), ((33, 32), (32, 32)),
     ((65, 50), (50, 200)), ((1100, 40), (40, 1030))],
    ids=str,
)  # fmt: skip
def test_matmul(on_class, make, device_class, a, b):
    twin = on_class(device_class)
    twin.check(lambda k, a, b: k.matmul(a, b), make(a), make(b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device_class", ["cpu", "swiftshader", "gpu"])
def test_matmul_of_views_with_an_epilogue(on_class, make, device_class):
    def product(k, a, b, c):
        y = k.matmul(k.permute(a, (1, 0)), k.permute(b, (1, 0)))
        y = F.gelu(k.binary("add", y, c))
        return k.permute(k.reshape(y, (6, 11, 68)), (1, 0, 2))

    twin = on_class(device_class)
    twin.check(product, make((40, 66)), make((68, 40)), make((68,)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device_class", ["cpu", "swiftshader", "gpu"])
def test_pointwise_convolution_and_attention(on_class, make, device_class):
    twin = on_class(device_class)
    shape = ((1, 1), ((0, 0), (0, 0)), (1, 1), 2)
    x, w, b = make((2, 80, 9, 7)), make((70, 40, 1, 1)), make((70,))
    twin.check(lambda k, x, w, b: k.conv(x, w, b, *shape), x, w, b, rtol=1e-4, atol=1e-4)
    q = make((1, 2, 70, 16))
    twin.check(lambda k, q: F.attention(q, q, q), q, rtol=1e-4, atol=1e-5)


def test_kernels_for_swiftshader_know_the_lengths_of_their_arrays(make):
    backend = WgpuBackend(planning=True)
    x = backend.from_bytes(make.cpu.to_bytes(make((4, 6))), make((1,)).dtype, (4, 6))

    def text(options):
        return make_plan([F.exp(x).data], options)[0].kernels[0][1]

    assert "in0: array<f32, 24>;" in text(Options("swiftshader"))
    assert "out: array<f32, 24>;" in text(Options("swiftshader"))
    assert "in0: array<f32>;" in text(Options("cpu"))
    assert "array<f32>;" in text(Options("swiftshader", page_bytes=64))  # bound in pages


@pytest.mark.parametrize("shape", [(3, 5), (2, 9000)], ids=str)
def test_kernels_of_known_lengths(on_class, make, shape):
    twin = on_class("swiftshader")
    twin.check(lambda k, x: F.softmax(x, 1), make(shape), rtol=1e-5, atol=1e-6)
    twin.check(lambda k, x: k.cast(x > 0.5, dtypes.uint8), make(shape))
    twin.check(lambda k, x, y: k.matmul(x, y), make((1, shape[1])), make((shape[1], 4)), rtol=1e-4, atol=1e-4)


def test_large_products_go_through_workgroup_memory_on_a_gpu(gpu, make):
    backend = WgpuBackend(planning=True)
    x = backend.full((2048, 2048), 1.0, dtypes.float32)
    plan, _ = make_plan([backend.matmul(x, x).data], Options("gpu"))
    assert "var<workgroup> left_tile" in plan.kernels[0][1]
    plan, _ = make_plan([backend.matmul(x, x).data], Options("gpu", workgroup_bytes=4096))
    assert "var<workgroup> left_tile" not in plan.kernels[0][1]


def tiled(twin, rows, columns, unroll, workgroup, split):
    """A tile for every product of the twin's GPU."""
    twin.gpu._options.tile = Tile(rows, columns, unroll, workgroup, 0, split)


@pytest.mark.parametrize("split", [2, 4, 16])
@pytest.mark.parametrize("rows, columns, workgroup", [(1, 1, 64), (4, 4, 64), (2, 7, 128), (8, 4, 16)])
def test_lanes_share_the_inner_steps_of_a_tile(on_class, make, rows, columns, workgroup, split):
    twin = on_class("gpu")
    for unroll in (1, 4):
        tiled(twin, rows, columns, unroll, workgroup, split)
        a, b, c = make((3, 9, 68)), make((68, 44)), make((44,))
        twin.check(lambda k, a, b, c: F.gelu(k.matmul(a, b) + c), a, b, c, rtol=1e-4, atol=1e-4)
        twin.check(
            lambda k, a, b: k.matmul(k.permute(a, (0, 2, 1)), b), make((2, 5, 13)), make((5, 6)), rtol=1e-4, atol=1e-4
        )
    for stride, groups in ((1, 1), (2, 2)):
        x, w, b = make((2, 6, 9, 7)), make((10, 6 // groups, 3, 3)), make((10,))
        shape = ((stride, stride), ((1, 1), (1, 1)), (1, 1), groups)
        twin.check(lambda k, x, w, b, s=shape: k.conv(x, w, b, *s), x, w, b, rtol=1e-4, atol=1e-4)
    for x, w, stride in (((2, 1, 70), (10, 1, 33), 5), ((1, 2, 7, 50), (6, 2, 3, 9), 3)):  # rows of few channels
        rank = len(x) - 2
        line = ((1,) * (rank - 1) + (stride,), ((0, 0),) * rank, (1,) * rank, 1)
        twin.check(lambda k, x, w, s=line: k.conv(x, w, None, *s), make(x), make(w), rtol=1e-4, atol=1e-4)


def test_few_results_of_many_steps_are_split_on_a_gpu(gpu, make):
    backend = WgpuBackend(planning=True)
    x, w = backend.full((1, 512, 7, 7), 1.0, dtypes.float32), backend.full((512, 512, 3, 3), 1.0, dtypes.float32)
    conv = backend.conv(x, w, None, (1, 1), ((1, 1), (1, 1)), (1, 1), 1).data
    assert "each with a part of the inner steps" in make_plan([conv], Options("gpu"))[0].kernels[0][1]
    assert "each with a part of the inner steps" not in make_plan([conv], Options("cpu"))[0].kernels[0][1]
    # The waves of a Fourier transform lie along the second inner axis: of the first one there is a single step.
    x, w = backend.full((1, 1, 640), 1.0, dtypes.float32), backend.full((258, 1, 256), 1.0, dtypes.float32)
    waves = backend.conv(x, w, None, (128,), ((0, 0),), (1,), 1).data
    assert "each with a part of the inner steps" in make_plan([waves], Options("gpu"))[0].kernels[0][1]


@pytest.mark.parametrize(
    "a, b",
    [((256, 256), (256, 256)), ((2, 160, 272), (2, 272, 256)), ((416, 176), (176, 256))],
    ids=str,
)  # fmt: skip
def test_large_products_pass_by_panels_on_swiftshader(on_class, make, a, b):
    twin = on_class("swiftshader")
    twin.check(lambda k, a, b: k.matmul(a, b), make(a), make(b), rtol=1e-4, atol=1e-4)


def test_panels_take_views_and_an_epilogue(on_class, make):
    def product(k, a, b, c):
        y = k.matmul(k.permute(a, (1, 0)), k.permute(b, (1, 0)))
        y = F.gelu(k.binary("add", y, c))
        return k.permute(k.reshape(y, (32, 8, 256)), (1, 0, 2))

    twin = on_class("swiftshader")
    twin.check(product, make((256, 256)), make((256, 256)), make((256,)), rtol=1e-4, atol=1e-4)


def test_panels_whose_result_is_turned(on_class, make):
    twin = on_class("swiftshader")
    product = lambda k, a, b: k.permute(k.matmul(a, b), (1, 0))  # noqa: E731
    twin.check(product, make((256, 256)), make((256, 256)), rtol=1e-4, atol=1e-4)


def test_pointwise_convolution_by_panels(on_class, make):
    twin = on_class("swiftshader")
    shape = ((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    x, w, b = make((1, 128, 32, 32)), make((128, 128, 1, 1)), make((128,))
    twin.check(lambda k, x, w, b: F.relu(k.conv(x, w, b, *shape)), x, w, b, rtol=1e-4, atol=1e-4)


def without_subgroups(text):
    """The shader with broadcasts through workgroup memory, for a device without subgroups."""
    return (
        text.replace("enable subgroups;", "var<workgroup> sent: array<vec4<f32>, 4>;\nvar<private> mine: u32;\n"
                     "fn broadcast(v: vec4<f32>, from_lane: u32) -> vec4<f32> {\n"
                     "    workgroupBarrier();\n    sent[mine] = v;\n    workgroupBarrier();\n"
                     "    return sent[from_lane];\n}\n")
        .replace("subgroupBroadcast(", "broadcast(")
        .replace("@builtin(subgroup_invocation_id)", "@builtin(local_invocation_index)")
        .replace("    let t = ", "    mine = lane;\n    let t = ", 1)
    )  # fmt: skip


@pytest.mark.parametrize("turned", [False, True], ids=["straight", "turned"])
@pytest.mark.parametrize("a, b", [((256, 256), (256, 256)), ((2, 160, 352), (2, 352, 256))], ids=str)
def test_panels_whose_lanes_share_what_they_load(on_class, make, monkeypatch, a, b, turned):
    """Broadcasts of four lanes, emulated by workgroup memory if the device has no subgroups."""
    twin = on_class("swiftshader")
    twin.gpu._options.subgroups = True
    module, played = twin.gpu.device.raw.create_shader_module, []

    def create(*, label, code):
        played.append("subgroupBroadcast(" in code)
        return module(label=label, code=without_subgroups(code) if played[-1] else code)

    monkeypatch.setattr(twin.gpu.device.raw, "create_shader_module", create)

    axes = (*range(len(a) - 2), len(a) - 1, len(a) - 2) if turned else tuple(range(len(a)))

    def product(k, x, y, bias):
        return F.relu(k.binary("add", k.matmul(k.permute(x, axes), k.permute(y, axes)), bias))

    x, y = (make([shape[axis] for axis in axes]) for shape in (a, b))
    twin.check(product, x, y, make((b[-1],)), rtol=1e-4, atol=1e-4)
    assert any(played)


@pytest.mark.parametrize("device_class", ["cpu", "swiftshader", "gpu"])
@pytest.mark.parametrize("turned", [False, True], ids=["straight", "turned"])
@pytest.mark.parametrize("inner", [65, 66, 67, 70, 33])
def test_what_lies_behind_the_last_inner_step_is_not_taken_into_a_sum(on_class, make, device_class, turned, inner):
    """A block extends beyond the end of a row into other rows and matrices, whose elements are infinite here."""
    twin = on_class(device_class)
    x, y = np.ones((2, 68, inner), np.float32), np.ones((2, inner, 68), np.float32)
    x[0, 1::2] = x[1] = y[1] = np.inf
    axes = (0, 2, 1) if turned else (0, 1, 2)
    x, y = [make.of(t.transpose(axes), dtypes.float32) for t in (x, y)]
    twin.check(lambda k, x, y: k.matmul(k.permute(x, axes), k.permute(y, axes)), x, y)


@pytest.mark.parametrize("subgroups", [False, True])
def test_which_products_are_computed_by_panels(gpu, make, subgroups):
    backend = WgpuBackend(planning=True)
    options = Options("swiftshader", subgroups=subgroups)
    for size, panels in ((256, True), (252, False), (128, False)):
        x = backend.from_bytes(bytes(4 * size * size), make((1,)).dtype, (size, size))
        plan, _ = make_plan([backend.matmul(x, x).data], options)
        text = plan.kernels[0][1]
        assert ("for (var panel" in text) == panels
        assert text.startswith("enable subgroups;") == (panels and subgroups)


@pytest.mark.parametrize(
    "device_class, subgroups, steps",
    [("gpu", True, "gpu"), ("swiftshader", True, "subgroups"), ("swiftshader", False, "software"),
     ("cpu", True, "software")],
)  # fmt: skip
def test_which_steps_of_a_saved_plan_serve_a_device(device_class, subgroups, steps):
    device = Options(device_class, subgroups=subgroups)
    assert saved_plan._steps({"steps": {"gpu": [], "software": [], "subgroups": []}}, device) == steps
    assert saved_plan._steps({"steps": {"gpu": [], "software": []}}, device) != "subgroups"


@pytest.mark.parametrize("classes", [("gpu",), ("software",), ("software", "subgroups"), None])
@pytest.mark.parametrize("device_class", ["gpu", "cpu", "swiftshader"])
def test_a_plan_for_some_classes_runs_on_devices_of_all(gpu, make, tmp_path, monkeypatch, classes, device_class):
    a, b = (np.array(make(shape).tolist(), np.float32) for shape in ((40, 36), (36, 44)))
    path = str(tmp_path / "product.plan")
    plan_file.save(path, lambda a, b: F.tanh(a @ b), a, b, classes=classes)
    monkeypatch.setattr(gpu.device, "device_class", device_class)
    found = plan_file.load(path, gpu.device).run(a, b)[0]
    np.testing.assert_allclose(found.to_list(), np.tanh(a @ b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("classes", [(), ("metal", "gpu"), ("subgroups",)])
def test_a_plan_that_not_every_device_runs_is_refused(tmp_path, classes):
    with pytest.raises(ValueError, match="classes are gpu, software, subgroups, with one of the first two; found"):
        plan_file.save(str(tmp_path / "no.plan"), F.tanh, np.zeros((3,), np.float32), classes=classes)
