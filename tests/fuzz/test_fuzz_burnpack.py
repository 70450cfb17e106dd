"""The fuzzing harness of the burnpack reader runs, and a short run of it finds nothing."""

import pathlib
import subprocess
import sys

import pytest


def test_a_short_run_finds_nothing():
    pytest.importorskip("atheris")
    harness = pathlib.Path(__file__).with_name("fuzz_burnpack.py")
    ended = subprocess.run(
        [sys.executable, harness, "-runs=50000", "-seed=1"], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
