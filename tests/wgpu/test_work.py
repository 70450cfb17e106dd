"""The kernels of many programs agree with a recorded table in their number, workgroups and counts of operations.

`support.work` says how to write the table anew after a change that is meant to change kernels.
"""

from __future__ import annotations

import pytest
from support.work.table import PROGRAMS, compared, recorded


@pytest.fixture(scope="module")
def table() -> dict[str, list[str]]:
    return recorded("gpu")


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_kernels_do_the_recorded_work(table: dict[str, list[str]], name: str) -> None:
    found, wanted = compared("gpu", table, name)
    assert found == wanted
