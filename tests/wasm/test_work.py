"""The WebAssembly kernels of many programs are those of a recorded table: their number, code and memory.

`support.work` says how to write the table anew after a change that is meant to change kernels.
"""

from __future__ import annotations

import pytest
from support.work.table import PROGRAMS, compared, recorded


@pytest.fixture(scope="module")
def table() -> dict[str, list[str]]:
    return recorded("wasm")


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if not (program.dims or program.tile)])
def test_kernels_do_the_recorded_work(table: dict[str, list[str]], name: str) -> None:
    found, wanted = compared("wasm", table, name)
    assert found == wanted
