"""Compiled steps train four networks as PyTorch does, from the same weights and batches, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

from . import networks

GPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))


@pytest.mark.parametrize("backend", ["numpy", "wasm", GPU])
@pytest.mark.parametrize("name", ["digits", "encoder", "lstm", "unet"])
def test_100_losses_are_pytorchs(name: str, backend: str) -> None:
    model, loss, optimizer, items = networks.digits(backend) if name == "digits" else networks.network(name, backend)
    rate, answers = networks.curve(name)
    step = model.compile_step(loss, optimizer)
    found = [step(rate, *items(i)) for i in range(100)]
    assert step.cut is None
    np.testing.assert_allclose([float(x) for x in found], answers, rtol=1e-4, atol=1e-4)


def test_steps_without_a_plan_have_the_same_form() -> None:
    model, loss, optimizer, items = networks.digits("python")
    rate, answers = networks.curve("digits")
    step = model.compile_step(loss, optimizer)
    np.testing.assert_allclose([float(step(rate, *items(i))) for i in range(2)], answers[:2], rtol=1e-4)
    assert repr(step) == "CompiledStep(Digits, operation by operation)"
