"""Compiled models and saved plans: the same results as the model, in one submission, for every shape."""

from __future__ import annotations

import json

import numpy as np
import pytest
from emberlet import dtypes, nn
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.backend.plans import MAX_SHAPES
from emberlet.burnpack import Burnpack
from emberlet.errors import BackendError, FormatError, ModelError
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile


class Net(nn.Module):
    def __init__(self, backend=None):
        self.conv = nn.Conv2d(1, 4, kernel_size=(3, 3), padding=((1, 1), (1, 1)), backend=backend)
        self.dense = nn.Linear(64, 5, backend=backend)

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = F.max_pool2d(x, kernel_size=(2, 2), stride=(2, 2))
        x = F.reshape(x, (x.shape[0], -1))
        return self.dense(x)


@pytest.fixture
def net():
    return Net(get_backend("numpy"))


def _array(x):
    return np.array(x.backend.to_list(x)).reshape(x.shape)


def test_plans_of_many_shapes_are_bounded(gpu, make):
    compiled = compile(lambda x: F.exp(x), make((2,)), backend=gpu)
    for n in range(1, MAX_SHAPES + 5):
        assert compiled(make((n,))).shape == (n,)
    assert len(compiled._plans) == MAX_SHAPES


def test_what_does_not_depend_on_the_inputs_is_computed_once(gpu, make):
    w = make((6, 6))
    fixed = gpu.from_bytes(w.backend.to_bytes(w), w.dtype, w.shape)
    compiled = compile(lambda x: F.add(F.matmul(x, F.exp(F.permute_dims(fixed, (1, 0)))), 1), make((4, 6)), backend=gpu)
    assert len(compiled.plan().steps) == 1


def test_a_way_that_depends_on_values_cuts_the_plan(gpu, make, tmp_path):
    def function(x):
        if F.sum(x).item() > 0:
            return F.exp(x)
        return F.negative(x)

    x = make.of([1.0, 2.0], dtypes.float32)
    compiled = compile(function, x, backend=gpu)
    np.testing.assert_allclose(_array(compiled(x)), np.exp([1.0, 2.0]), rtol=1e-5)
    np.testing.assert_allclose(_array(compiled(make.of([-1.0, 0.5], dtypes.float32))), [1.0, -0.5])
    assert "depends on the value of reduce float32()" in str(compiled.cut)
    with pytest.raises(ModelError, match=r"cannot be saved as a plan.*reduce"):
        plan_file.save(str(tmp_path / "x.plan"), function, x)


def test_a_saved_plan_runs_without_the_model(gpu, make, net, tmp_path):
    x = make((2, 1, 8, 8))
    path = str(tmp_path / "net.plan")
    plan_file.save(path, net, x, outputs=["logits"])
    loaded = plan_file.load(path, gpu.device)
    assert [str(p) for p in loaded.inputs + loaded.outputs] == [
        "x: float32 (2, 1, 8, 8)",
        "logits: float32 (2, 5)",
    ]
    for image in (x, make((2, 1, 8, 8))):
        (out,) = loaded.run(image)
        np.testing.assert_allclose(np.array(out.to_vec()).reshape(2, 5), _array(net(image)), atol=1e-4)
    (again,) = loaded.run(None)  # the input of the call before
    assert bytes(again.bytes) == bytes(out.bytes)


def test_a_saved_plan_holds_kernels_for_both_classes_of_device_over_the_same_buffers(make, net, tmp_path):
    path = str(tmp_path / "net.plan")
    plan_file.save(path, net, make((1, 1, 8, 8)))
    pack = Burnpack.from_file(path)
    steps = json.loads(pack.metadata["emberlet.plan"])["steps"]
    cpu, gpu = steps["software"], steps["gpu"]
    assert [sorted(s[2]) for s in cpu] == [sorted(s[2]) for s in gpu]
    assert [s[2][-1] for s in cpu] == [s[2][-1] for s in gpu]


def test_a_saved_plan_takes_inputs_its_results_do_not_depend_on_and_narrow_dtypes(gpu, make, tmp_path):
    path = str(tmp_path / "f.plan")
    x, unused = make((3, 4), dtypes.uint8), make((2,))
    plan_file.save(path, lambda x, unused: (F.add(x, x), F.greater(x, 3)), x, unused)
    total, flags = plan_file.load(path, gpu.device).run(x, unused)
    np.testing.assert_array_equal(np.frombuffer(total.bytes, np.uint8).reshape(3, 4), _array(x) * 2)
    np.testing.assert_array_equal(np.frombuffer(flags.bytes, np.bool_).reshape(3, 4), _array(x) > 3)


def test_a_saved_plan_refuses_an_array_of_another_dtype_with_as_many_bytes(gpu, make, tmp_path):
    path = str(tmp_path / "f.plan")
    plan_file.save(path, lambda x: F.add(x, x), make((2,)))
    plan = plan_file.load(path, gpu.device)
    with pytest.raises(FormatError, match=r"float32 \(2,\), but got int32 \(2,\)"):
        plan.run(np.ones(2, np.int32))
    (bits,) = plan.run(np.frombuffer(np.ones(2, np.float32).tobytes(), np.uint8))
    assert bits.to_list() == [2.0, 2.0]


def test_a_saved_plan_refuses_an_array_of_another_shape_with_as_many_elements(gpu, make, tmp_path):
    path = str(tmp_path / "f.plan")
    plan_file.save(path, lambda x: F.add(x, x), make((2, 3)))
    plan = plan_file.load(path, gpu.device)
    with pytest.raises(FormatError, match=r"float32 \(2, 3\), but got float32 \(3, 2\)"):
        plan.run(np.ones((3, 2), np.float32))
    (rows,) = plan.run(np.arange(6, dtype=np.float32))
    assert rows.to_list() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


def test_the_host_evaluates_every_operation_that_is_recorded():
    from emberlet.wgpu_backend.kernels.table import _SPECIAL
    from emberlet.wgpu_backend.lower.operations import LOWER
    from emberlet.wgpu_backend.lower.reductions import SPECIFICATIONS
    from emberlet.wgpu_backend.record.host_evaluation import _EVALUATE

    # "rows" is made of reductions when they are fused; a custom kernel runs only on a GPU; a "recurrence" has an open
    # number of steps, so it is no constant.
    assert {*_SPECIAL, *LOWER, *SPECIFICATIONS} - {"rows", "kernel", "recurrence"} <= set(_EVALUATE)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_a_constant_beyond_32_bits_is_refused_when_the_host_computes_it(dtype):
    from emberlet import dtypes
    from emberlet.backend import get_backend
    from emberlet.wgpu_backend.record.host_evaluation import evaluate
    from emberlet.wgpu_backend.record.node import Node

    kind = getattr(dtypes, dtype)
    word, code, (_, highest) = (
        ("i32", "i4", dtypes.int32.range) if dtype == "int64" else ("u32", "u4", dtypes.uint32.range)
    )
    for beyond in (0, 1):
        parts = [[3, highest // 2], [0, highest - highest // 2 + beyond]]
        data = [Node("data", (), np.array(part, code).tobytes(), kind, (2,), word) for part in parts]
        node = Node("binary", data, "add", kind, (2,), word)
        if beyond:
            with pytest.raises(BackendError, match=f"a constant of the plan, {dtype} .* beyond 32 bits"):
                evaluate([node], get_backend("numpy"))
        else:
            evaluate([node], get_backend("numpy"))
            assert np.frombuffer(node.arg, code).tolist() == [3, highest]


def test_a_saved_plan_takes_an_input_without_elements(gpu, make, tmp_path):
    x = make((1, 3, 0))
    plan_file.save(str(tmp_path / "x.plan"), lambda x: F.prod(x, -1), x)
    (found,) = plan_file.load(str(tmp_path / "x.plan"), gpu.device).run(x)
    assert found.to_list() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7])
def test_a_saved_plan_reads_the_end_of_an_array_that_is_no_whole_vector(gpu, count, monkeypatch, tmp_path):
    from emberlet.wgpu_backend.record import node

    monkeypatch.setattr(node, "WIDE", 4)
    whole, part = np.arange(8, dtype=np.int32), np.arange(count, dtype=np.int32) + 50
    rest = np.arange(8 - count % 4, dtype=np.int32) + 90
    arrays = [F.asarray(a, backend="numpy") for a in (whole, part, rest)]
    path = str(tmp_path / "plan.bpk")
    plan_file.save(path, lambda a, b, c: F.concat([a, b, c]), *arrays)
    (found,) = plan_file.load(path, gpu.device).run(*arrays)
    assert found.to_list() == np.concatenate([whole, part, rest]).tolist()
