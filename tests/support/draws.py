"""Random choices of tests, fresh in each run; a test that fails shows the seed that repeats them."""

from __future__ import annotations

import os
import random
import secrets

VARIABLE = "EMBERLET_TESTS_SEED"


def begin() -> None:
    """Choose the seed of this run, unless the environment has one; the processes of the run inherit it."""
    os.environ.setdefault(VARIABLE, str(secrets.randbelow(1 << 32)))


def draw(*words: object) -> random.Random:
    """The choices of a test, by the seed of the run and these words. Prints the seed: pytest shows it on failure."""
    begin()
    print(f"{VARIABLE}={os.environ[VARIABLE]} repeats what was drawn")
    return random.Random(f"{os.environ[VARIABLE]}/{'/'.join(map(str, words))}")
