"""Profiles measure every dispatch, list it with its work, and write a trace."""

from __future__ import annotations

import json

import pytest
from emberlet import functional as F
from emberlet.errors import ModelError
from emberlet.wgpu_backend import profile
from emberlet.wgpu_backend.compiled import compile
from onnx import TensorProto, helper, save


def _profiled(gpu, make, measure=profile.measure):
    x = make((16, 32))
    compiled = compile(lambda x: F.softmax(F.matmul(x, F.permute_dims(x, (1, 0)))), x, backend=gpu)
    planned = compiled.planned(x)
    return measure(planned.program, planned.words([x]), 3)


def test_every_dispatch_has_a_time_and_its_work(gpu, make):
    samples, clock = _profiled(gpu, make)
    assert [s.name for s in samples] == ["matmul", "rows_max_sum"]
    assert samples[0].flops == 2 * 16 * 16 * 32
    assert samples[0].nbytes == 4 * (16 * 32 + 16 * 16)
    assert all(s.duration > 0 for s in samples)
    assert clock in ("GPU timestamps", "host clock")


@pytest.mark.parametrize("op", ["attention", "matmul", "conv"])
def test_the_work_of_a_kernel_is_counted(gpu, make, op):
    """Multiply-adds count as two; all sizes differ, so that none can be mistaken for another."""
    if op == "attention":
        given = [make((2, 3, 5, 8)), make((2, 3, 7, 8)), make((2, 3, 7, 4))]
        function, wanted = F.attention, 2 * 2 * 3 * 5 * 7 * (8 + 4)
    elif op == "matmul":
        given = [make((2, 3, 5)), make((5, 7))]
        function, wanted = F.matmul, 2 * 2 * 3 * 5 * 7
    else:
        given = [make((2, 3, 6, 7)), make((4, 3, 2, 3))]
        function, wanted = F.conv2d, 2 * (2 * 4 * 5 * 5) * (3 * 2 * 3)
    planned = compile(function, *given, backend=gpu).planned(*given)
    samples, _ = profile.measure(planned.program, planned.words(given), 1)
    assert sum(s.flops for s in samples) == wanted


def test_without_timestamps_the_host_clock_serves(gpu, make):
    def by_host(program, data, runs):
        program.prepare()
        return profile._by_host_clock(program), "host clock"

    samples, _ = _profiled(gpu, make, by_host)
    assert all(s.duration > 0 for s in samples)


def test_the_table_lists_kernels_by_time_and_the_trace_is_json(gpu, make):
    samples, _ = _profiled(gpu, make)
    lines = profile.table(samples, 1e10, 1e10).splitlines()
    assert lines[0].startswith("kernel")
    assert {lines[1].split()[0], lines[2].split()[0]} == {"matmul", "rows_max_sum"}
    assert lines[-1].startswith("all")
    events = json.loads(profile.trace(samples, "model"))["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["matmul", "rows_max_sum"]


def test_the_command_prints_the_table_and_writes_the_trace(gpu, tmp_path, capsys):
    from tools.paths import ROOT

    trace = tmp_path / "trace.json"
    model = ROOT / "examples" / "digits" / "digits.onnx"
    assert profile.main([str(model), "--runs", "2", "--trace", str(trace)]) == 0
    printed = capsys.readouterr().out
    assert "GFLOP/s" in printed
    assert "conv_add_maximum" in printed
    assert json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]


def test_a_model_without_a_single_plan_says_why_it_has_no_profile(gpu, tmp_path):
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [1, "n"])],
    )
    path = tmp_path / "nonzero.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    with pytest.raises(ModelError, match="no single plan to profile: nonzero"):
        profile.main([str(path)])
