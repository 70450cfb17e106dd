"""What the ways of running allow because the documentation does: float64 in float32, 64-bit integers in 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contract.case import Case
from contract.properties import broken
from contract.reference import Refused, expected, leaves
from contract.ways import Broken, Way, available, owned, take_back


def ways(backend: str, eager: bool) -> list[Way]:
    return [w for w in available() if w.backend == backend and w.name.startswith("eager") == eager]


@pytest.mark.parametrize("backend", ["numpy", "wasm"])
def test_inputs_are_compared_with_what_the_backend_keeps_of_them(backend: str) -> None:
    arrays = (np.array([0.3, 0.9]),)
    take_back(owned(arrays, backend), arrays)
    changed: list[Any] = owned(arrays, backend)
    changed[0][0] = 0.25
    with pytest.raises(Broken, match="changes its input 0"):
        take_back(changed, arrays)


def test_64_bit_results_beyond_32_bits_are_compared_unless_they_are_of_a_plan() -> None:
    source = "def make(B):\n    return F.bitwise_left_shift\n"
    case = Case(source, ((np.array([0, -3, 2]), np.array([1, 3, 34])),))
    assert not broken(case, ways("wasm", eager=True) + ways("wasm", eager=False))
    wrong = leaves(np.array([0, -24, 0]))
    assert broken(case, ways("wasm", eager=True), [wrong])


def test_norms_of_equal_elements_may_be_off_by_the_rounding_of_their_mean() -> None:
    source = "def make(B):\n    return lambda x: F.layer_norm(F.broadcast_to(F.max(x), (2, 6)))\n"
    arrays = (np.array([0.3, 1.3], np.float32),)
    found = expected(Case(source, (arrays,)), arrays)
    assert not isinstance(found, Refused)
    # A unit in the last place of 1.3 over the root of 1e-5, several of which a device's sum and division may be off by.
    assert 1.2e-7 / 1e-5**0.5 < found[0].limit < 40 * 1.2e-7 / 1e-5**0.5
    assert not broken(Case(source, (arrays,)), ways("wgpu", eager=False))
