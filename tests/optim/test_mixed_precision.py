"""Mixed precision: float16 in the model, float32 weights, a scaled loss."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.errors import ArgumentError, DTypeError
from emberlet.module import Module
from emberlet.optim import GradientsParams, GradScaler, GradScalerConfig, mixed_precision

BACKENDS = ["numpy", "wasm", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))]


class Net(Module):
    def __init__(self, backend: str) -> None:
        emberlet.manual_seed(5)
        self.conv = nn.Conv2d(1, 4, 3, padding=1, backend=backend)
        self.norm = nn.BatchNorm(4, backend=backend)
        self.rows = nn.LayerNorm(16, backend=backend)
        self.head = nn.Linear(64, 3, backend=backend)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm(self.conv(x)))
        return self.head(self.rows(x.reshape((x.shape[0], 4, 16))).reshape((x.shape[0], 64)))


def batch(backend: str) -> tuple[Any, Any]:
    x = np.random.RandomState(1).randn(12, 1, 4, 4).astype(np.float32)
    y = (np.abs(x.reshape(12, -1)).sum(1) * 3).astype(np.int64) % 3
    return emberlet.asarray(x, backend="autodiff:" + backend), emberlet.asarray(y, backend="autodiff:" + backend)


def losses(backend: str, dtype: str | None, steps: int) -> list[float]:
    model, (x, y) = Net(backend).train(), batch(backend)
    optimizer, scaler, found = optim.AdamConfig().init(), GradScaler(), []
    for _ in range(steps):
        if dtype:
            logits = mixed_precision(model, dtype)(x.astype(dtype))
            assert str(logits.dtype) == dtype
        else:
            logits = model(x)
        loss = F.cross_entropy(logits.astype("float32"), y)
        found.append(float(loss))
        grads = GradientsParams.from_grads(scaler.scale(loss).backward(), model)
        model = scaler.step(optimizer, 0.01, model, grads)
    assert all(str(p.val().dtype) == "float32" for p in model.params())
    assert model.norm.running_mean.val().tolist() != [0.0] * 4
    return found


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_trains_in_mixed_precision_as_in_float32(backend: str, dtype: str) -> None:
    want, found = losses(backend, None, 8), losses(backend, dtype, 8)
    assert want[-1] < 0.7 * want[0]
    np.testing.assert_allclose(found, want, rtol=0.02 if dtype == "float16" else 0.1)


@pytest.mark.parametrize("backend", [BACKENDS[0], BACKENDS[2]])
def test_a_compiled_step_computes_in_mixed_precision(backend: str) -> None:
    found = {}
    for dtype, scale in ((None, 1.0), ("float16", 1024.0)):
        model, (x, y) = Net(backend), batch(backend)

        def loss(model: Any, x: Any, y: Any, dtype: Any = dtype, scale: float = scale) -> Any:
            logits = mixed_precision(model, dtype)(x.astype(dtype)).astype("float32") if dtype else model(x)
            return F.cross_entropy(logits, y) * scale

        step = model.compile_step(loss, optim.SgdConfig().init())
        found[dtype] = [float(step(0.1 / scale, x.inner(), y.inner())) / scale for _ in range(5)]
        assert step.cut is None
        assert all(str(p.val().dtype) == "float32" for p in model.params())
    assert found[None][-1] < 0.5 * found[None][0]
    np.testing.assert_allclose(found["float16"], found[None], rtol=0.01)


def test_gradients_that_float16_rounds_to_zero_survive_with_a_scale() -> None:
    found = {}
    for scale in (1.0, 65536.0):
        model, scaler = nn.Linear(1, 1, bias=False, backend="numpy").train(), GradScaler(GradScalerConfig(scale))
        x = emberlet.asarray([[1e-3]], backend="autodiff:numpy", dtype="float16")
        loss = mixed_precision(model)(x).astype("float32").sum() * 1e-6
        grads = GradientsParams.from_grads(scaler.scale(loss).backward(), model)
        before = model.weight.val().item()
        scaler.step(optim.SgdConfig().init(), 1e9, model, grads)
        found[scale] = before - model.weight.val().item()
    assert found[1.0] == 0.0
    np.testing.assert_allclose(found[65536.0], 1.0, rtol=1e-2)


def test_gradients_of_a_float64_model_keep_their_digits() -> None:
    weight = emberlet.Param(emberlet.asarray(np.zeros((1, 1)), backend="numpy"))
    model = nn.Linear(1, 1, bias=False, backend="numpy")
    model.weight = weight
    model.train()
    x = emberlet.asarray(np.array([[1.0 + 2.0**-40]]), backend="autodiff:numpy")
    scaler = GradScaler()
    grads = GradientsParams.from_grads(scaler.scale(model(x).sum()).backward(), model)
    scaler.step(optim.SgdConfig().init(), 1.0, model, grads)
    assert model.weight.val().item() == -(1.0 + 2.0**-40)


def test_a_step_whose_gradients_overflow_is_left_out_and_the_scale_follows() -> None:
    model = nn.Linear(2, 1, backend="numpy").train()
    optimizer, scaler = optim.SgdConfig().init(), GradScalerConfig(init_scale=1024.0, growth_interval=2).init()
    scales = []
    for factor in (1.0, 1e38, 1.0, 1.0, 1.0):
        before = model.weight.val().tolist()
        x = emberlet.asarray([[1.0, 2.0]], backend="autodiff:numpy", dtype="float16")
        loss = mixed_precision(model)(x).astype("float32").sum() * factor
        model = scaler.step(optimizer, 0.1, model, GradientsParams.from_grads(scaler.scale(loss).backward(), model))
        assert (model.weight.val().tolist() == before) == (factor > 1)
        scales.append(scaler.factor)
    assert scales == [1024.0, 512.0, 512.0, 1024.0, 1024.0]
    again = GradScaler().load_record(scaler.to_record())
    assert (again.factor, again.good) == (1024.0, 1)


def test_what_does_not_fit_is_refused() -> None:
    model = nn.Linear(2, 1, backend="numpy").train()
    with pytest.raises(DTypeError, match="bfloat16"):
        mixed_precision(model, "float64")
    with pytest.raises(DTypeError, match="float32"):
        GradScaler().scale(emberlet.asarray(1.0, dtype="float16"))
    with pytest.raises(ArgumentError, match="above 0"):
        GradScaler().load_record({"scale": 0, "good": 1})
