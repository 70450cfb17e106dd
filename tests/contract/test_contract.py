"""Every way of running keeps the contract (contract/__init__.py): a short run of each kind.

Each run has one of PARTS parts of the cases, drawn anew. With EMBERLET_CONTRACT_SEED in the environment every run has
the same cases, all of them: `dev.py mutate --placed` compares runs.
"""

from __future__ import annotations

import os

import pytest
from support.draws import draw, share

from contract import fuzz

COUNTS = {
    "programs": 900,
    "modules": 200,
    "networks": 150,
    "sessions": 1000,
    "large": 12,
    "random_numbers": 40,
    "generated": 100,
}
PARTS = 48
# Kinds that still find something now and then, or are new, have the same cases, of which a run has a part.
SAME = {"layers": (1, 300), "invalid": (1, 300), "other_runtimes": (6, 60), "chains": (1, 300), "indices": (1, 60),
        "promises": (1, 160), "operations": (1, 600)}  # fmt: skip

if "EMBERLET_CONTRACT_SEED" in os.environ:
    pytestmark = pytest.mark.timeout(0)  # all cases of a kind may take minutes, and many of a busy machine


def asked(name: str) -> tuple[int, int]:
    """The seed and the number of cases of a kind."""
    given = os.environ.get("EMBERLET_CONTRACT_SEED")
    fresh = draw(name).randrange(1 << 32) if given is None else int(given)
    return SAME.get(name, (fresh, COUNTS.get(name, 100)))


@pytest.mark.parametrize("name", fuzz.names())
def test_a_short_run_finds_nothing_that_breaks_the_contract(name: str) -> None:
    seed, count = asked(name)
    first = 0
    if "EMBERLET_CONTRACT_SEED" not in os.environ:
        part = -(-count // share(PARTS))
        first = min(part * draw(name, "part").randrange(PARTS), count - part)
        count = part
    print(f"python3 dev.py fuzz contract {name} --seed {seed} --first {first}")
    row = fuzz.run(name, seed, count=count, first=first)
    assert row.cases
    assert not row.found
