"""A kernel of your own changes no tensor but its result, and its result never holds what was in memory before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.errors import BackendError
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.kernels.launch_text import covers

# The kernel of the Burn Book's chapter on custom WGPU kernels, as it stands there.
BOOK = """@group(0)
@binding(0)
var<storage, read_write> lhs: array<{{ elem }}>;

@group(0)
@binding(1)
var<storage, read_write> rhs: array<{{ elem }}>;

@group(0)
@binding(2)
var<storage, read_write> bias: array<{{ elem }}>;

@group(0)
@binding(3)
var<storage, read_write> output: array<{{ elem }}>;

@group(0)
@binding(4)
var<storage, read_write> info: array<u32>;

const BLOCK_SIZE = {{ workgroup_size_x }}u;

@compute
@workgroup_size({{ workgroup_size_x }}, {{ workgroup_size_y }}, 1)
fn main(
    @builtin(global_invocation_id) global_id: vec3<u32>,
    @builtin(local_invocation_index) local_idx: u32,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    // Indices
    let row = workgroup_id.x * BLOCK_SIZE + (local_idx / BLOCK_SIZE);
    let col = workgroup_id.y * BLOCK_SIZE + (local_idx % BLOCK_SIZE);
    let batch = global_id.z;

    // Basic information
    let dim = info[0];
    let n_rows = info[6u * dim - 1u];
    let n_cols = info[6u * dim];
    let K = info[5u * dim - 1u];

    // Returns if outside the output dimension
    if row >= n_rows || col >= n_cols {
        return;
    }

    // Calculate the corresponding offsets with support for broadcasting.
    let offset_output = batch * n_rows * n_cols;
    var offset_lhs: u32 = 0u;
    var offset_rhs: u32 = 0u;

    let batch_dims = dim - 2u;
    for (var b: u32 = 1u; b <= batch_dims; b++) {
        let stride_lhs = info[b];
        let stride_rhs = info[b + dim];
        let stride_output = info[b + 2u * dim];
        let shape_lhs = info[b + 3u * dim];
        let shape_rhs = info[b + 4u * dim];

        offset_lhs += offset_output / stride_output % shape_lhs * stride_lhs;
        offset_rhs += offset_output / stride_output % shape_rhs * stride_rhs;
    }

    // Basic matmul implementation
    var sum = 0.0;
    for (var k: u32 = 0u; k < K; k++) {
        let lhs_index = row * K + k;
        let rhs_index = k * n_cols + col;

        sum += lhs[offset_lhs + lhs_index] * rhs[offset_rhs + rhs_index];
    }

    let output_index = row * n_cols + col;
    let index = offset_output + output_index;

    // Add and ReLU
    output[index] = max(sum + bias[index], 0.0);
}
"""

OWN = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    BODY
}
"""


def launched(gpu: Any, body: str, count: int = 8, source: str = OWN) -> Any:
    x = gpu.from_list([float(i) for i in range(count)], dtypes.float32, (count,))
    return x, gpu.launch("own", source.replace("BODY", body), [x], dtypes.float32, (count,), (1, 1, 1))


def test_the_kernel_of_the_burn_book_works_as_it_stands(gpu: Any, tmp_path: Any) -> None:
    path = tmp_path / "kernel.wgsl"
    path.write_text(BOOK, encoding="utf-8")
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(s).astype(np.float32) for s in ((2, 5, 7), (2, 7, 19), (2, 5, 19))]
    shapes = [a.shape for a in (*arrays[:2], arrays[2])]
    strides = [(a * b, b, 1) for _, a, b in shapes]
    info = [3, *strides[0], *strides[1], *strides[2], *shapes[0], *shapes[1], *shapes[2]]
    inputs = [gpu.from_bytes(a.tobytes(), dtypes.float32, a.shape) for a in arrays]
    inputs.append(gpu.from_list(info, dtypes.uint32, (len(info),)))
    values = {"workgroup_size_x": 16, "workgroup_size_y": 16, "elem": "f32", "int": "i32"}

    def fused(*inputs: Any) -> Any:
        return gpu.launch("fused_matmul_add_relu", str(path), inputs, dtypes.float32, (2, 5, 19), (1, 2, 2), values)

    want = np.maximum(arrays[0] @ arrays[1] + arrays[2], 0)
    for run in (fused, compile(fused, *inputs, backend=gpu)):
        np.testing.assert_allclose(np.asarray(run(*inputs)), want, rtol=1e-5, atol=1e-5)
    for x, a in zip(inputs, arrays, strict=False):
        np.testing.assert_array_equal(np.asarray(x), a)


@pytest.mark.parametrize("body", [
    "if (i < 8u) { y[i] = x[i]; x[i] = 0.0; }",
    "if (i < 8u) { y[i] = x[i]; x[i + 0u] += 1.0; }",
    "if (i < 8u) { y[i] = x[i]; let p = &x[i]; *p = 1.0; }",
    "if (i < 8u) { y[i] = x[i]; let p = &(x); (*p)[i] = 1.0; }",
    "if (i < 8u) { y[i] = x[i]; x[i]++; }",
])  # fmt: skip
def test_a_kernel_that_writes_to_an_input_is_refused(gpu: Any, body: str) -> None:
    with pytest.raises(BackendError, match=r"kernel own writes to (y and x|x and y)"):
        launched(gpu, body)


def test_an_input_that_is_named_beside_an_assignment_is_not_written(gpu: Any) -> None:
    body = (
        "if (i < arrayLength(&x)) { /* x[i] = 1.0; */ y[i] = x[i]; if (x[i] == 3.0 && x[0] <= x[1]) { y[i] = 5.0; } }"
    )
    x, y = launched(gpu, body)  # x[0] = 2.0 in a comment
    assert gpu.to_list(y) == [0.0, 1.0, 2.0, 5.0, 4.0, 5.0, 6.0, 7.0]
    assert gpu.to_list(x) == [float(i) for i in range(8)]


def test_a_kernel_that_assigns_to_none_of_its_bindings_is_refused(gpu: Any) -> None:
    with pytest.raises(BackendError, match="kernel own writes no result: it assigns to none of x, y"):
        launched(gpu, "var s = x[i] + y[i]; s += 1.0;")


def test_other_resources_and_another_number_of_bindings_are_refused(gpu: Any) -> None:
    with pytest.raises(BackendError, match=r"declares 3.*1"):
        launched(gpu, "y[i] = x[i] + z[0];", source="@group(0) @binding(2) var<storage> z: array<f32>;" + OWN)
    for declared in ("@group(1) @binding(0) var<storage> z: array<f32>;", "@group(0) @binding(2) var<uniform> z: f32;"):
        with pytest.raises(BackendError, match="group 0"):
            launched(gpu, "y[i] = x[i] + z;", source=declared + OWN)


def test_the_result_may_be_any_of_the_bindings(gpu: Any) -> None:
    _, y = launched(gpu, "if (i < 8u) { x[i] = y[i] * 2.0; }")
    assert gpu.to_list(y) == [2.0 * i for i in range(8)]


def leave_old_memory(gpu: Any, count: int) -> None:
    """Fill buffers of this size, and give them back to the pool."""
    for _ in range(3):
        gpu.to_list(
            gpu.binary("add", gpu.full((count,), 7.0, dtypes.float32), gpu.from_list([1.0], dtypes.float32, (1,)))
        )


@pytest.mark.parametrize("count", [8, 1000, 70_000])
def test_what_a_kernel_does_not_write_is_zero(gpu: Any, count: int) -> None:
    leave_old_memory(gpu, count)
    body = "if (i < 2u) { y[i] = x[i] + 1.0; }"
    x, y = launched(gpu, body, count)
    want = [1.0, 2.0, *[0.0] * (count - 2)]
    assert gpu.to_list(y) == want
    compiled = compile(
        lambda x: gpu.binary("add", gpu.launch("own", OWN.replace("BODY", body), [x], x.dtype, x.shape, (1, 1, 1)), x),
        x, backend=gpu,
    )  # fmt: skip
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(compiled(x)), np.array(want) + np.arange(count))


def test_a_kernel_that_is_certain_to_write_every_element_is_not_preceded_by_zeros(gpu: Any) -> None:
    x = gpu.from_list([1.0, 2.0], dtypes.float32, (2,))
    main = "{{ bindings }}\n@compute @workgroup_size({{ workgroup }})\nfn main(@builtin(workgroup_id) group: vec3<u32>,"
    main += " @builtin(local_invocation_index) lane: u32) {\n    let i = {{ flat }};\n    BODY\n}\n"

    def steps(body: str) -> int:
        text = main.replace("BODY", body)
        made = compile(lambda x: gpu.launch("own", text, [x], x.dtype, x.shape, (2, 64)), x, backend=gpu)
        assert np.asarray(made(x)).tolist() == [2.0, 3.0]
        return len(made.plan().steps)

    assert steps("if (i < {{ count }}u) { out[i] = in0[i] + 1.0; }") == 1
    assert steps("if (i >= {{ count }}u) { return; }\n let v = in0[i];\n out[i] = v + 1.0;") == 1
    assert steps("if (i < {{ count }}u && i < 9u) { out[i] = in0[i] + 1.0; }") == 2


FLAT = "group.x * 64u + lane"


@pytest.mark.parametrize(("body", "whole"), [
    ("let i = FLAT; if (i < 8u) { out[i] = 1.0; }", True),
    ("let i = FLAT; if (i < 8u) { let v = f(i); if (v > 1.0) { g(); } out[i] = v; }", True),
    ("let i = FLAT; if (i >= 8u) { return; } for (var k = 0u; k < 3u; k++) { g(); } out[i] = 1.0;", True),
    ("let i = FLAT; if (i < 7u) { out[i] = 1.0; }", False),  # one element less
    ("let i = FLAT; if (i < n) { out[i] = 1.0; }", False),
    ("let i = FLAT; if (i < 8u) { if (in0[i] > 0.0) { out[i] = 1.0; } }", False),
    ("let i = FLAT; if (i < 8u) { if (in0[i] > 0.0) { return; } out[i] = 1.0; }", False),
    ("let i = FLAT; if (i < 8u) { out[i + 1u] = 1.0; }", False),
    ("let i = FLAT; if (i < 8u) { out[i] += 1.0; }", False),
    ("let i = FLAT; if (i < 8u) { if (b) { } else { } } out[i] = 1.0;", False),
    ("let i = FLAT + 1u; if (i < 8u) { out[i] = 1.0; }", False),
    ("let i = FLAT; if (i < 8u) { } // out[i] = 1.0;", False),
    ("if (lane > 3u) { return; } let i = FLAT; if (i < 8u) { out[i] = 1.0; }", False),
])  # fmt: skip
def test_only_texts_that_show_it_are_certain_to_write_every_element(body: str, whole: bool) -> None:
    text = "@compute @workgroup_size(64)\nfn main(@builtin(local_invocation_index) lane: u32) { " + body + "\n}\n"
    assert covers(text.replace("FLAT", FLAT), "out", FLAT, 8) == whole
