"""Each known cause still breaks the contract: the entry goes with the cause."""

from __future__ import annotations

from typing import Any

import pytest

from contract import known
from contract.kinds import layers
from contract.kinds.invalid import with_bad_indices
from contract.properties import broken
from contract.reference import Refused, expected
from contract.ways import available

EXAMPLES = [pytest.param(k.example, id=k.cause, marks=pytest.mark.xfail(strict=True, reason=k.cause))
            for k in known.KNOWN if k.example]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_known_cause_is_mended(example: Any) -> None:
    case = with_bad_indices(example) if example.seed < 0 else layers.case_of(example, "known")
    assert case is not None
    case = case._replace(calls=case.calls[:1])
    wanted = [expected(case, arrays) for arrays in case.calls]
    assert isinstance(wanted[0], Refused)
    assert not broken(case, ways=available(), wanted=wanted)
