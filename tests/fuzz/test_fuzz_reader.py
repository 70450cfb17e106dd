"""The fuzzing harness of the importer runs, and a short run of it finds nothing."""

import pathlib
import subprocess
import sys

import pytest

# -rss_limit_mb=0: the peak of memory that the fuzzer sees is inherited from the test runner.


def test_a_short_run_finds_nothing(tmp_path):
    pytest.importorskip("atheris")
    harness = pathlib.Path(__file__).with_name("fuzz_reader.py")
    ended = subprocess.run(
        [sys.executable, harness, "-runs=1500", "-seed=1", "-rss_limit_mb=0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        encoding="utf-8",
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
