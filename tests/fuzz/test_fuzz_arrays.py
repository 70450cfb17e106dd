"""The fuzzing harness of .npy and .npz runs, a short run of it finds nothing, and its counts become a table."""

import pathlib
import subprocess
import sys

import pytest
from fuzz import readers


def test_a_short_run_finds_nothing():
    pytest.importorskip("atheris")
    harness = pathlib.Path(__file__).with_name("fuzz_arrays.py")
    ended = subprocess.run(
        [sys.executable, harness, "-runs=4000", "-seed=1", "-rss_limit_mb=0", "-malloc_limit_mb=512"],
        capture_output=True,
        text=True,
        timeout=120,
        encoding="utf-8",
    )
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_the_table_takes_the_place_of_the_one_before(tmp_path):
    log = "stat::number_of_executed_units: 12345\nstat::slowest_unit_time_sec: 0\nstat::peak_rss_mb: 98\n"
    page = tmp_path / "reliability.md"
    page.write_text("# Reliability\n\nWords.\n", encoding="utf-8")
    for _ in range(2):
        readers.write([readers.row("fuzz_arrays", log, [])], page)
        page.write_text(page.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert text.count("| `.npy` and `.npz` | 12,345 | under 1 s | 98 MB | none |") == 1
    assert text.startswith("# Reliability\n\nWords.\n") and text.count("More.") == 2
