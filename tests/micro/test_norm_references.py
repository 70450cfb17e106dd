"""Reductions in int8 are the real numbers' within a step, for every sum around the borders of their tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.kernels.norms import Norm
from emberlet.micro.builder.quantization.reference import choose

Array = np.ndarray[Any, Any]


def norm(operation: str, shape: tuple[int, int, int], scale: float, zero: int, out: float, zero_out: int) -> Norm:
    made = Norm("norm", ("x",), "y", shape, operation, scale, zero, out, zero_out)
    if operation not in ("l1", "square"):
        return made
    ratio = scale / out if operation == "l1" else scale**2 / out
    requant = choose([ratio], [made.most], zero_out, what="norm")
    return Norm("norm", ("x",), "y", shape, operation, scale, zero, out, zero_out, requant)


def real(operation: str, x: Array) -> Array:
    if operation == "l1":
        return np.abs(x).sum(1)
    if operation == "square":
        return (x * x).sum(1)
    if operation == "l2":
        return np.sqrt((x * x).sum(1))
    if operation == "logsum":
        return np.log(x.sum(1))
    return np.log(np.exp(x).sum(1))


def off(made: Norm, q: Array) -> float:
    """The greatest difference in steps of the output, where the output's bytes reach."""
    x = (q.astype(np.float64).reshape(made.shape) - made.zero) * made.scale
    found = made.reference(q.astype(np.uint8)).reshape(-1).astype(float)
    with np.errstate(divide="ignore"):
        steps = real(made.operation, x).reshape(-1) / made.scale_out + made.zero_out
    return float(np.abs(found - np.clip(steps, 0, 255)).max())


@pytest.mark.parametrize("zero_out", [0, 90, 200])
def test_the_logarithm_of_every_sum(zero_out: int) -> None:
    """Sums of 1 to 2040 steps, each in a row: powers of two begin anew in the table."""
    rows = np.zeros((2040, 8), int)
    for total in range(1, 2041):
        rows[total - 1] = np.diff(np.linspace(0, total, 9).astype(int))
    made = norm("logsum", (2040, 8, 1), 0.02, 0, 0.05, zero_out)
    assert off(made, rows) <= 0.6
    fine = norm("logsum", (2040, 8, 1), 0.02, 0, 0.004, zero_out)
    assert off(fine, rows) <= 1.1


def test_the_logarithm_of_nothing_is_that_of_one_step() -> None:
    made = norm("logsum", (2, 3, 1), 0.5, 10, 0.05, 200)
    one, none = made.reference(np.array([[10, 10, 11], [9, 10, 10]], np.uint8)).reshape(-1)
    assert one == none == np.rint(np.log(0.5) / 0.05 + 200)


@pytest.mark.parametrize(("scale", "out", "zero_out"), [(0.1, 0.1, 0), (0.02, 0.01, 128), (0.03, 0.04, 250)])
def test_the_logarithm_of_exponentials(scale: float, out: float, zero_out: int) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (500, 6))
    rows[:256] = np.arange(256)[:, None]  # six equal numbers
    rows[256:400, 1:] = 0
    made = norm("logsumexp", (500, 6, 1), scale, 100, out, zero_out)
    assert off(made, rows) <= 1.0


@pytest.mark.parametrize("operation", ["l1", "square", "l2"])
@pytest.mark.parametrize("zero", [0, 77, 255])
def test_norms(operation: str, zero: int) -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([np.full((1, 5), zero), rng.integers(0, 256, (400, 5)), np.full((2, 5), [[0], [255]])])
    rows[1:256] = np.clip(zero + np.arange(1, 256)[:, None] // np.array([1, 2, 4, 8, 256]), 0, 255)
    top = float(real(operation, (rows[None].transpose(1, 2, 0) - zero) * 0.1).max())
    for scale_out in (top / 255, top / 40, top / 3):
        made = norm(operation, (len(rows), 5, 1), 0.1, zero, scale_out, 0)
        assert off(made, rows) <= 0.55
        assert made.reference(rows.astype(np.uint8)).reshape(-1)[0] == 0


def test_a_root_over_the_middle_axis() -> None:
    q = np.random.default_rng(3).integers(0, 256, (3, 4, 5))
    for operation in ("l1", "l2", "square", "logsumexp"):
        made = norm(operation, (3, 4, 5), 0.01, 128, 0.05 if operation != "square" else 0.1, 20)
        assert off(made, q) <= 1.0
