"""Quantized tensors are chosen by scheme, mode or dtype, and behave as the real numbers that they represent."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import Quantized, QuantScheme
from emberlet import functional as F

VALUES = [[-1.0, 0.5, 2.0], [0.25, -0.75, 1.5]]


@pytest.mark.parametrize("scheme", [None, "affine", "symmetric", "uint8", "int4", QuantScheme("int16", "affine")])
def test_schemes_are_objects_modes_or_dtypes(backend: Any, scheme: Any) -> None:
    x = emberlet.asarray(VALUES)
    q = x.quantize(scheme)
    assert isinstance(q, Quantized)
    if scheme != "uint8":  # symmetric and unsigned: numbers below zero are cut off
        levels = {"int4": 14, "affine": 255}.get(str(scheme), 254)
        np.testing.assert_allclose(np.asarray(q.dequantize()), VALUES, atol=4.0 / levels)


def test_operations_take_the_real_numbers(backend: Any) -> None:
    x, other = emberlet.asarray(VALUES), emberlet.asarray([[1.0, 2.0, 3.0]])
    q = x.quantize()
    real = q.dequantize()
    pairs = [
        (q + 1, real + 1), (2 * q, 2 * real), (q - other, real - other), (other - q, other - real), (q @ other.T,
        real @ other.T), (other @ q.T, other @ real.T), (-q, -real), (q / q, real / real), (q > 0, real > 0),
        (q.sum(axis=1), real.sum(axis=1)), (F.exp(q), F.exp(real)), (F.softmax(q, 1), F.softmax(real, 1)),
        (F.add(q, other), F.add(real, other)), (q[0], real[0]), (F.relu(q), F.relu(real)),
        (emberlet.asarray(q), real), (q.reshape((3, 2)), real.reshape((3, 2))), (F.linear(other, q.T), other @ real.T),
    ]  # fmt: skip
    for found, expected in pairs:
        assert found.backend is x.backend
        assert found.tolist() == expected.tolist()
    np.testing.assert_array_equal(np.asarray(q), np.asarray(real))
    assert [row.tolist() for row in q] == real.tolist()
    assert len(q) == 2


def test_quantized_tensors_are_copied_and_pickled() -> None:
    q = emberlet.asarray(VALUES, backend="numpy").quantize("affine")
    for other in (copy.deepcopy(q), pickle.loads(pickle.dumps(q))):
        assert other.dequantize().tolist() == q.dequantize().tolist()
        assert other.values.tolist() == q.values.tolist()
