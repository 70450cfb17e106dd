"""Limits of devices, lowered artificially: the results stay the same."""

from __future__ import annotations

import pytest
from emberlet import dtypes
from emberlet.errors import UnsupportedError
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.device import Device
from emberlet.wgpu_backend.kernels import loop as loop_kernel

from .conftest import Twin


class SmallPages(Twin):
    """A twin whose device binds no more than 1 KiB at a time."""

    def __init__(self, gpu, page_bytes=1024, max_bindings=16):
        device = Device(gpu.device.raw)
        device.page_bytes = page_bytes
        device.max_bindings = max_bindings
        super().__init__(WgpuBackend(device=device))


@pytest.fixture
def small(gpu):
    return SmallPages(gpu)


def test_tensors_beyond_one_binding_are_paged(small, make):
    x, y = make((30, 40)), make((30, 40))
    small.check(lambda k, x, y: k.binary("add", k.unary("exp", x), y), x, y)
    small.check(lambda k, x: k.permute(k.pad(x, ((1, 2), (3, 4)), 9), (1, 0)), x)
    small.check(lambda k, x: k.reduce("sum", x, (0,), False), x)
    small.check(lambda k, x, y: k.matmul(x, k.permute(y, (1, 0))), x, y, rtol=1e-4, atol=1e-4)
    small.check(lambda k, x, y: k.concat([x, y], 1), make((10, 40)), make((10, 30)))


def test_matmul_and_convolution_over_pages(small, make):
    small.check(lambda k, a, b: k.matmul(a, b), make((20, 32)), make((32, 24)), rtol=1e-4, atol=1e-4)
    small.check(
        lambda k, x, w, b: k.conv(x, w, b, (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
        make((1, 3, 16, 16)), make((4, 3, 3, 3)), make((4,)), rtol=1e-4, atol=1e-4,
    )  # fmt: skip


def test_sort_scan_and_scatter_over_pages(small, make):
    x = make((2, 300), dtypes.int32)
    small.check(lambda k, x: k.sort(x, 1, False), x)
    small.check(lambda k, x: k.cumulative("sum", x, 1), x)
    picks = make((3, 300), dtypes.int64, 0, 2)
    small.check(lambda k, x, i, u: k.scatter(x, i, u, 0, "add"), x, picks, make((3, 300), dtypes.int32))


OWN = """
{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = {{ flat }};
    if (i < {{ count }}u) {
        out[i] = in0[in0_at(i)] * 2.0;
        out[i] += in1[0];
        out[i] *= out[i];
    }
}

fn in0_at(i: u32) -> u32 {
    return {{ count }}u - 1u - i;
}
"""
DECLARED = OWN.replace(
    "{{ bindings }}",
    "@group(0) @binding(0) var<storage, read> in0: array<f32>;\n"
    "@group(0) @binding(1) var<storage, read> in1: array<f32>;\n"
    "@group(0) @binding(2) var<storage, read_write> out: array<f32>;",
)


@pytest.mark.parametrize("source", [OWN, DECLARED])
@pytest.mark.parametrize("count", [200, 256, 257, 700])
def test_a_kernel_of_ones_own_over_pages(small, source, count):
    backend = small.gpu
    x = backend.from_list([float(i) for i in range(count)], dtypes.float32, (count,))
    y = backend.from_list([0.5], dtypes.float32, (1,))
    result = backend.launch("own", source, [x, y], x.dtype, x.shape, (count, 64))
    assert backend.to_list(result) == [(i * 2.0 + 0.5) ** 2 for i in reversed(range(count))]


def test_a_kernel_of_ones_own_over_pages_may_declare_its_bindings_in_any_layout(small):
    backend = small.gpu
    x = backend.from_list([float(i) for i in range(300)], dtypes.float32, (300,))
    y = backend.from_list([0.5], dtypes.float32, (1,))
    source = DECLARED.replace("@group(0) @binding(0) ", "@binding(0)\n  @group(0)\n").replace(
        "<storage, read>", "<storage>"
    )
    result = backend.launch("own", source, [x, y], x.dtype, x.shape, (300, 64))
    assert backend.to_list(result) == [(i * 2.0 + 0.5) ** 2 for i in reversed(range(300))]


def test_more_pages_than_bindings_is_an_error_that_names_the_kernel(gpu, make):
    twin = SmallPages(gpu, 256, 8)
    with pytest.raises(UnsupportedError, match=r"needs 10.*1200"):
        twin.check(lambda k, x: k.unary("exp", x), make((300,)))


@pytest.mark.parametrize("limit", [2, 7])
def test_more_workgroups_than_one_dimension_allows_are_spread(gpu, twin, make, monkeypatch, limit):
    monkeypatch.setattr(loop_kernel, "MAX_GROUPS", limit)
    twin.gpu = WgpuBackend(device=gpu.device)
    twin.check(lambda k, x: k.unary("exp", x), make((11, 211)) if limit == 7 else make((3, 101)))
    if limit == 7:
        twin.check(lambda k, x: k.reduce("sum", x, (1,), False), make((40, 300)), atol=1e-4)
        twin.check(lambda k, a, b: k.matmul(a, b), make((70, 20)), make((20, 60)), atol=1e-4)


@pytest.mark.parametrize("bindings", [4, 5, 8])
def test_kernels_keep_to_the_number_of_bindings(gpu, twin, make, bindings):
    device = Device(gpu.device.raw)
    device.max_bindings = bindings
    twin.gpu = WgpuBackend(device=device)
    tensors = [make((3, 4)) for _ in range(12)]

    def total(k, *xs):
        out = xs[0]
        for x in xs[1:]:
            out = k.binary("mul", k.binary("add", out, x), x)
        return out

    twin.check(total, *tensors, rtol=1e-4)
    twin.check(lambda k, *xs: k.concat(list(xs), 0), *tensors)
