"""What the ways of running allow because the documentation does: float64 in float32, 64-bit integers in 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.backend import get_backend

from contract.case import Case
from contract.properties import broken
from contract.reference import Refused, expected, leaves
from contract.ways import Broken, Unavailable, Way, available, owned, take_back


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


def test_an_error_of_pythons_is_no_reason_for_plans_without_open_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function explains it, and a plan for each length then hides it: the results are right."""
    shapes = (4, 1, 3), (1, 2, 3), (1, 2, 2)
    case = Case("def make(B):\n    return lambda x, w, r: F.rnn(x, w, r)\n",
                (tuple(np.ones(s, np.float32) for s in shapes),), seed=4)  # fmt: skip
    way = next(w for w in ways("wasm", eager=False) if w.name.endswith("open sizes"))
    wanted = [expected(case, arrays) for arrays in case.calls]
    assert not broken(case, [way], wanted)
    monkeypatch.setattr(type(get_backend("wasm")), "recurrent_steps", "a mistake", raising=False)
    assert "no open sizes, since DTypeError" in broken(case, [way], wanted)


def test_a_way_is_left_out_for_named_reasons_only() -> None:
    with pytest.raises(AssertionError, match="no way may be left out"):
        raise Unavailable("it does not work")
