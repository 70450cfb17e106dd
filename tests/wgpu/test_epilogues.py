"""Operations fused into products and convolutions; scores are never written; a call is one submission."""

from __future__ import annotations

import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.wgpu_backend import device, plan_file
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.plan.make import make_plan

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": lambda y: y * F.sigmoid(y),
    "hard_swish": F.hard_swish,
    "mish": lambda y: y * F.tanh(F.softplus(y)),
}


def _tail(y, bias, residual, target, activation):
    return F.astype(activation(y + bias) * 0.25 + residual, target)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("target", [dtypes.float32, dtypes.float16, dtypes.int32, dtypes.uint8], ids=str)
@pytest.mark.parametrize("kind", ["matmul", "conv"])
def test_bias_activation_scale_residual_and_cast_are_part_of_the_kernel(gpu, twin, make, kind, target, activation):
    if kind == "matmul":
        inputs = make((16, 24)), make((24, 12)), make((12,)), make((16, 12))

        def work(backend, x, w, bias, residual):
            return _tail(F.matmul(x, w), bias, residual, target, ACTIVATIONS[activation])
    else:
        inputs = make((1, 4, 9, 9)), make((8, 4, 3, 3)), make((8, 1, 1)), make((1, 8, 7, 7))

        def work(backend, x, w, bias, residual):
            return _tail(F.conv2d(x, w), bias, residual, target, ACTIVATIONS[activation])

    offset = make.of(100.0, dtypes.float32)  # keeps what becomes an integer away from 0 and from wrapping
    inputs = (*inputs[:3], F.add(inputs[3], offset))
    twin.check(work, *inputs, rtol=2e-3, atol=1.01 if target.is_integer else 1e-3)
    moved = [twin.move(x, gpu) for x in inputs]
    plan, _ = make_plan([work(gpu, *moved).data], gpu.options)
    assert plan.summary()["dispatches"] == 1
    assert plan.summary()["temporary_bytes"] == 0


def test_attention_never_writes_its_scores(gpu, make):
    q = gpu.from_bytes(make.cpu.to_bytes(make((1, 8, 256, 64))), dtypes.float32, (1, 8, 256, 64))
    plan, _ = make_plan([F.attention(q, q, q).data], gpu.options)
    assert len(plan.steps) == 1
    assert plan.summary()["temporary_bytes"] == 0
    assert max(b.nbytes for b in plan.buffers) == 8 * 256 * 64 * 4  # the scores would take 8 * 256 * 256 * 4


def test_a_call_is_one_submission(gpu, make, monkeypatch):
    x = make((4, 8))
    compiled = compile(lambda x: F.softmax(F.matmul(F.exp(x), F.permute_dims(x, (1, 0)))), x, backend=gpu)
    compiled(x)
    queue = gpu.device.queue
    submitted = []

    class Counted:
        write_buffer = queue.write_buffer

        def submit(self, commands):
            submitted.append(len(commands))
            queue.submit(commands)

    monkeypatch.setattr(gpu.device, "queue", Counted())
    compiled(x)
    assert submitted == [1]


def test_saving_a_plan_opens_no_device(make, tmp_path, monkeypatch):
    def refuse(index=0):
        raise AssertionError("a device was opened")

    monkeypatch.setattr(device, "open_device", refuse)
    plan_file.save(str(tmp_path / "x.plan"), lambda x: F.softmax(F.matmul(x, x)), make((6, 6)))
