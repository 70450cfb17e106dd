"""Differential fuzzing: differences are shrunk, seeds reproduce cases, and a short run finds nothing."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from fuzz.differential import engine
from support.draws import draw

from tools.components import require

SECONDS = {"gradients": 3.0}  # of a kind, 1.5 of the others
# One in some hundreds of random models or estimators still differs: the same cases, of which a run has a part.
SAME = {"models": (2, 480), "estimators": (1, 300)}  # seed, count
PARTS = 12


@pytest.mark.parametrize("name", engine.names())
def test_a_short_run_finds_no_difference(name: str) -> None:
    kind = engine.kind(name)
    for component in kind.NEEDS:
        require(component)
    choose = draw(name)
    seed, count = SAME.get(name, (choose.randrange(1 << 32), 1 << 40))
    part = count // PARTS
    first = part * choose.randrange(PARTS) if name in SAME else 0
    print(f"python3 dev.py fuzz {name} --seed {seed} --first {first}")
    ran = engine.run(kind, seed, seconds=SECONDS.get(name, 1.5), first=first, count=part)
    assert ran.cases
    assert not ran.found


class Sums:
    """A kind whose cases are lists of numbers; one with a number above 9 in it differs."""

    NEEDS = ()

    def draw(self, choose: random.Random) -> list[int] | None:
        drawn = [choose.randrange(20) for _ in range(choose.randrange(9))]
        return drawn or None

    def difference(self, case: list[int]) -> str:
        return "too large" if max(case, default=0) > 9 else ""

    def simpler(self, case: list[int]) -> Iterable[list[int]]:
        yield from (case[:at] + case[at + 1 :] for at in range(len(case)))
        yield from ([*case[:at], n - 1, *case[at + 1 :]] for at, n in enumerate(case) if n)

    def program(self, case: list[int]) -> str:
        return f"print(max({case}))"


def test_what_differs_is_shrunk_and_a_seed_and_a_number_stand_for_it() -> None:
    said: list[str] = []
    ran = engine.run(Sums(), 3, count=50, say=said.append)
    assert len(ran.found) == engine.SHOWN
    assert {f.program for f in ran.found} == {"print(max([10]))"}
    assert len(said) == len(ran.found)
    again = engine.run(Sums(), 3, first=ran.found[-1].number, count=1, say=said.append)
    assert again.found == ran.found[-1:]


def test_a_model_that_ends_onnxruntimes_process_counts_as_refused() -> None:
    """It runs in its own process, and the next model gets a new one."""
    import numpy as np
    from fuzz.differential import onnxruntime_process as judge
    from support.onnx_models import parse

    model = parse("g (float[2] x) => (float[2] y) { y = Neg (x) }").SerializeToString()
    fed = {"x": np.ones(2, np.float32)}
    (found,) = judge.outputs(model, fed) or ()
    assert found.tolist() == [-1, -1]
    assert judge.outputs(b"no model", fed) is None
    assert judge._running is not None
    judge._running.kill()
    assert judge.outputs(model, fed) is None
    assert judge.outputs(model, fed) is not None
