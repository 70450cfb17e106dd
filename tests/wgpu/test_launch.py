"""Custom kernels: rendering templates, launching, recording, compiling."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import extend, operation
from emberlet.errors import BackendError
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile

SCALE = """
{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = {{ flat }};
    if (i < {{ count }}u) {
        out[i] = in0[i] * {{ factor }} + erf_f32(in1[i]);
    }
}
"""

BAD = "{{ bindings }}\n@compute @workgroup_size(1) fn main() { out[0] = in0[0] + oops; }\n"


def _scaled(x, y, factor):
    return x.backend.launch("scale", SCALE, [x, y], x.dtype, x.shape, (x.size, 64), {"factor": factor})


def test_a_kernel_of_ones_own_takes_recorded_tensors_and_is_read_by_others(gpu, make):
    from math import erf

    x, y = make((5, 7)), make((5, 7))
    a, b = (np.array(t.backend.to_list(t)).reshape(5, 7) for t in (x, y))
    on_gpu = [gpu.from_bytes(make.cpu.to_bytes(t), t.dtype, t.shape) for t in (x, y)]
    result = F.exp(_scaled(F.negative(on_gpu[0]), F.permute_dims(F.permute_dims(on_gpu[1], (1, 0)), (1, 0)), "2.5"))
    want = np.exp(-a * 2.5 + np.vectorize(erf)(b))
    np.testing.assert_allclose(np.array(gpu.to_list(result)).reshape(5, 7), want, rtol=1e-5)


def test_it_is_part_of_a_compiled_plan(gpu, make):
    x = make((8,))
    compiled = compile(lambda x: F.sum(_scaled(x, x, "1.0")), x, backend=gpu)
    assert len(compiled.plan().steps) == 2


def test_from_a_file_under_its_name(gpu, make, tmp_path):
    path = tmp_path / "double.wgsl"
    path.write_text(
        "{{ bindings }}\n@compute @workgroup_size(1) fn main() { out[0] = in0[0] * 2.0; }\n", encoding="utf-8"
    )
    x = gpu.from_list([3.0], dtypes.float32, (1,))
    y = gpu.launch("double", str(path), [x], dtypes.float32, (1,), (1, 1, 1))
    assert gpu.to_list(y) == [6.0]


def test_a_missing_value_and_bad_wgsl_are_named(gpu):
    x = gpu.from_list([3.0], dtypes.float32, (1,))
    with pytest.raises(BackendError, match=r"wants \{\{ factor \}\}"):
        gpu.launch("scale", SCALE, [x, x], dtypes.float32, (1,), (1, 64))
    bad = gpu.launch("bad", BAD, [x], dtypes.float32, (1,), (1, 1, 1))
    with pytest.raises(BackendError, match="compiling kernel bad failed"):
        gpu.to_list(bad)


def test_an_operation_is_added_to_the_backend_from_outside(gpu):
    @extend(WgpuBackend, "tripled")
    def tripled(backend, x):
        text = "{{ bindings }}\n@compute @workgroup_size(1) fn main() { out[0] = in0[0] * 3.0; }\n"
        return backend.launch("tripled", text, [x], x.dtype, (1,), (1, 1, 1))

    x = gpu.from_list([3.0], dtypes.float32, (1,))
    assert gpu.to_list(operation(gpu, "tripled")(x)) == [9.0]
    del WgpuBackend.tripled
