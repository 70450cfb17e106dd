"""Plans of the test models take the steps, memory and passes over memory that the tables say."""

from __future__ import annotations

import pytest

from .counting import BACKENDS
from .table import lines, written


@pytest.mark.parametrize("backend", BACKENDS)
def test_plans_do_no_other_work(backend: str) -> None:
    found, wanted = lines(backend), written(backend)
    assert [line for line in found if line not in wanted] == [line for line in wanted if line not in found]
