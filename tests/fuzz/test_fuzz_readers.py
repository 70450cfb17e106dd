"""Each fuzzing harness runs, and a short run of it finds nothing."""

import os
import pathlib
import random

import pytest
from fuzz import mutations, readers
from support.draws import draw
from support.processes import python
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
    ended = python(
        harness,
        f"-runs={RUNS.get(name, 1_000)}",
        "-max_total_time=2",
        f"-seed={SEED}",
        *limits,
        cwd=tmp_path,
        errors="replace",
    )
    assert ended.returncode == 0, f"seed {SEED}: {ended.stderr[-3000:]}"
    assert f"Instrumenting emberlet.{TRACED[name]}\n" in ended.stderr


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
    ended = python(
        script,
        "-runs=10",
        "-rss_limit_mb=0",
        cwd=tmp_path,
        env={**os.environ, readers.UNGUIDED: "" if guided else "1"},
        errors="replace",
    )
    assert ended.returncode != 0 and "TooMuch" in ended.stdout + ended.stderr, ended.stderr[-2000:]
