"""Each fuzzing harness runs, a short run of it finds nothing, and its counts become a row of the table."""

import os
import pathlib
import random
import subprocess
import sys
from datetime import date

import pytest
from fuzz import mutations, readers
from support.draws import draw
from support.rows import every

# A module that each reader imports on its way: it must be traced too, or inputs that reach new code in it are not kept.
TRACED = {
    "fuzz_reader": "codegen.passes.fold",
    "fuzz_burnpack": "burnpack.cbor",
    "fuzz_metadata": "burnpack.special_types",
    "fuzz_arrays": "host.npy",
    "fuzz_stores": "store.formats.pickles",
    "fuzz_plan": "wgpu_backend.plan.reading",
    "fuzz_wasm": "wgpu_backend.wasm.sections",
    "fuzz_tflite": "micro.builder.tflite.reading",
    "fuzz_rows": "batch.rows",
    "fuzz_pictures": "host.images",
    "fuzz_data": "host.data.arrow_files",
    "fuzz_streams": "micro.audio",
}
SEED = draw(__name__).randrange(1 << 31)
RUNS = {"fuzz_metadata": 20_000, "fuzz_burnpack": 50_000, "fuzz_arrays": 10_000, "fuzz_plan": 10_000}


@every("name", readers.HARNESSES, share=len(readers.HARNESSES))
def test_a_short_run_finds_nothing(name, tmp_path):
    pytest.importorskip("atheris")
    harness = pathlib.Path(__file__).with_name(name + ".py")
    # The peak of memory that the fuzzer sees is inherited from the test runner: single allocations are limited instead.
    limits = ("-rss_limit_mb=0",) if name not in RUNS else ("-rss_limit_mb=0", "-malloc_limit_mb=512")
    ended = subprocess.run(
        [sys.executable, harness, f"-runs={RUNS.get(name, 1_000)}", "-max_total_time=2", f"-seed={SEED}", *limits],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        encoding="utf-8",
        errors="replace",
    )
    assert ended.returncode == 0, f"seed {SEED}: {ended.stderr[-3000:]}"
    assert f"Instrumenting emberlet.{TRACED[name]}\n" in ended.stderr


LOG = """files that repeat and share: 5
slowest input so far: 0.07 s
slowest input so far: 0.31 s
stat::number_of_executed_units: 12345
stat::slowest_unit_time_sec: 0
stat::peak_rss_mb: 98
"""


def test_rows_take_the_place_of_those_before(tmp_path):
    page = tmp_path / "reliability.md"
    page.write_text("# Reliability\n\nWords.\n", encoding="utf-8")
    one = readers.row("stat::number_of_executed_units: 1", [])
    readers.write({"fuzz_plan": readers.row(LOG, []), "fuzz_arrays": one}, page)
    page.write_text(page.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
    for _ in range(2):
        readers.write({"fuzz_arrays": readers.row(LOG, ["crash-1"])}, page)
    text = page.read_text(encoding="utf-8")
    assert (
        text.count(f"| `.npy` and `.npz` | 12,350 | 12,345 | 5 | 0 | 0.31 s | 98 MB | crash-1 | {date.today()} |") == 1
    )
    assert text.count(f"| saved plans (JSON) | 12,350 | 12,345 | 5 | 0 | 0.31 s | 98 MB | none | {date.today()} |") == 1
    assert text.startswith("# Reliability\n\nWords.\n") and text.count("More.") == text.count("`.npy`") == 1


def test_runs_of_a_reader_add_up(tmp_path):
    page = tmp_path / "reliability.md"
    first = readers.Row(999_000, 250_000, 9, 800, 0.31, 98, ("crash-1",), "2026-01-02", "2026-01-02")
    readers.write({"fuzz_plan": first}, page)
    assert readers.parsed(readers.lines(page)["fuzz_plan"]) == first
    readers.write(
        {"fuzz_plan": first + readers.Row(1_000, 0, 1, 900, 0.5, 90, (), "2026-01-04", "2026-01-04", 2)}, page
    )
    written = readers.lines(page)["fuzz_plan"]
    assert written.endswith(
        "| 1,000,000 | 250,000 | 10 | 900 | 0.50 s | 98 MB | crash-1 | 2026-01-02 to 2026-01-04, 3 runs |"
    )
    assert readers.parsed(written).runs == 3


def test_a_harness_that_did_not_run_makes_no_row():
    assert readers.row("Traceback\nImportError: no module named atheris", []) == "ImportError: no module named atheris"


@pytest.mark.parametrize("data", [b"", b"1", bytes(300), b"12 34 56"])
def test_a_change_gives_other_bytes_and_no_more_than_allowed(data):
    r = random.Random(0)
    for _ in range(500):
        found = mutations.changed(data, [b"other", b""], 310, r)
        assert found != data and len(found) <= 310


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize("name, wasted", [("time", "spend(0.4)"), ("memory", "x = b'1' * (300 << 20)")])
def test_an_input_over_a_limit_fails(name, wasted, guided, tmp_path):
    pytest.importorskip("atheris")
    script = tmp_path / "fuzz_it.py"
    script.write_text(
        f"import sys, time\nsys.path.insert(0, {str(pathlib.Path(__file__).parents[1])!r})\n"
        "from fuzz import harness\nharness.SECONDS = 0.2\n"
        "def spend(seconds):\n    end = time.thread_time() + seconds\n    while time.thread_time() < end: pass\n"
        f"def read(data):\n    try:\n        {wasted}\n    except Exception:\n        pass\n"
        "harness.run(read, {'one': b'1'}, 4)\n",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [sys.executable, script, "-runs=10", "-rss_limit_mb=0"],
        cwd=tmp_path, env={**os.environ, readers.UNGUIDED: "" if guided else "1"},
        capture_output=True, text=True, timeout=240, encoding="utf-8", errors="replace",
    )  # fmt: skip
    assert ended.returncode != 0 and "TooMuch" in ended.stdout + ended.stderr, ended.stderr[-2000:]
