"""Random choices of tests, fresh in each run; a test that fails shows the seed that repeats them."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

VARIABLE = "EMBERLET_TESTS_SEED"
WHOLE = "EMBERLET_TESTS_WHOLE"  # set by `dev.py test --all`: no test takes a part of its cases


def begin() -> None:
    """Choose the seed of this run, unless the environment has one; the processes of the run inherit it."""
    os.environ.setdefault(VARIABLE, str(secrets.randbelow(1 << 32)))


def draw(*words: object) -> random.Random:
    """The choices of a test, by the seed of the run and these words. Prints the seed: pytest shows it on failure."""
    begin()
    print(f"{VARIABLE}={os.environ[VARIABLE]} repeats what was drawn")
    return random.Random(f"{os.environ[VARIABLE]}/{'/'.join(map(str, words))}")


def generator(*words: object) -> np.random.Generator:
    """NumPy's numbers of a test, by the seed of the run and these words."""
    import numpy as np

    return np.random.default_rng(draw(*words).randrange(1 << 63))


def share(of: int) -> int:
    """One of how many cases a run has where it usually has one of `of`."""
    return 1 if os.environ.get(WHOLE) else of


def some(values: Sequence[T], of: int, *words: object) -> list[T]:
    """One of `of` values, drawn by these words, in their order."""
    chosen = draw(*words).sample(range(len(values)), max(1, len(values) // share(of)))
    return [values[i] for i in sorted(chosen)]
