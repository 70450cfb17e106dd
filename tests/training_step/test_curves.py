"""Compiled steps train four networks as PyTorch does, from the same weights and batches, on each backend."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.optim import mixed_precision

from . import networks

STEPS = 40  # of the 100 that PyTorch took: what is wrong in a step is seen in the next
GPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))


@pytest.mark.parametrize("backend", ["numpy", "wasm", GPU])
@pytest.mark.parametrize("name", ["digits", "encoder", "lstm", "unet"])
def test_the_first_losses_are_pytorchs(name: str, backend: str) -> None:
    model, loss, optimizer, items = networks.digits(backend) if name == "digits" else networks.network(name, backend)
    rate, answers = networks.curve(name)
    step = model.compile_step(loss, optimizer)
    found = [step(rate, *items(i)) for i in range(STEPS)]
    assert step.cut is None
    np.testing.assert_allclose([float(x) for x in found], answers[:STEPS], rtol=1e-4, atol=1e-4)


def test_steps_without_a_plan_have_the_same_form() -> None:
    model, loss, optimizer, items = networks.digits("python")
    rate, answers = networks.curve("digits")
    step = model.compile_step(loss, optimizer)
    np.testing.assert_allclose([float(step(rate, *items(i))) for i in range(2)], answers[:2], rtol=1e-4)
    assert repr(step) == "CompiledStep(Digits, operation by operation)"


@pytest.mark.needs("gpu-driver")
def test_the_digits_train_in_float16_on_the_gpu() -> None:
    """The losses stay near PyTorch's in float32, and values are stored in float16 where the device has shader-f16."""
    model, _, optimizer, items = networks.digits("wgpu")
    rate, answers = networks.curve("digits")
    scale = 1024.0

    def loss(model: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(mixed_precision(model)(x.astype("float16")).astype("float32"), y) * scale

    step = model.compile_step(loss, optimizer)
    apart = [abs(float(step(rate, *items(i))) / scale - answers[i]) for i in range(STEPS)]
    assert step.cut is None and max(apart) < 0.15 and np.mean(apart) < 0.03
    assert {str(p.val().dtype) for p in model.params()} == {"float32"}
    kernels = [source for plan in step._plans for _, source in plan.plan.plan.kernels]
    assert any("array<f16>" in source for source in kernels) == emberlet.get_backend("wgpu").half
