"""The fuzzing harness of the burnpack reader runs, and a short run of it finds nothing."""

import pathlib
import subprocess
import sys

import pytest

# The peak of memory that the fuzzer sees is inherited from the test runner: single allocations are limited instead.
LIMITS = ("-rss_limit_mb=0", "-malloc_limit_mb=512")


def test_a_short_run_finds_nothing():
    pytest.importorskip("atheris")
    harness = pathlib.Path(__file__).with_name("fuzz_burnpack.py")
    ended = subprocess.run(
        [sys.executable, harness, "-runs=50000", "-seed=1", *LIMITS],
        capture_output=True,
        text=True,
        timeout=120,
        encoding="utf-8",
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
