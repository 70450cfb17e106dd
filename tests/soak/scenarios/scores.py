"""A killed `emberlet score` is resumed where it was: every row once, and no row of an earlier model."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from soak.killing import killed, said
from soak.models_of_digits import versions
from soak.telling import Clock, Told
from tools.paths import ROOT

WHAT = (
    "SIGKILL at a random moment of `score` on a local Ray, from the end of its imports on, every other time from its "
    "first new file on; resumed, and killed again"
)
NEEDS = ("ray",)
SHARE = 2

# Nearly all of a run's time goes to starting Ray's processes: few of them make many runs.
ROWS, FILES, CPUS, WORKERS = 600, 6, 3, 1
LONGEST = 900  # seconds for a run that nobody kills; processes start slowly on a machine with other work
AGAIN = 0.85  # the share of killed runs whose resumed run is killed too


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("kills")
    home = Path(tempfile.mkdtemp(prefix="ray"))  # a short path, for Ray's sockets
    environment = {**os.environ, "HOME": str(home), "RAY_TMPDIR": str(home), "RAY_USAGE_STATS_ENABLED": "0",
                   "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}  # fmt: skip
    cluster = subprocess.Popen(
        [sys.executable, ROOT / "tests" / "batch" / "cluster.py", home / "t", str(CPUS)],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        encoding="utf-8",
    )  # fmt: skip
    assert cluster.stdin is not None and cluster.stdout is not None
    try:
        _kill(clock, choose, told, home, environment, cluster.stdout.readline().strip())
    finally:
        cluster.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            cluster.wait(60)
        cluster.kill()
        shutil.rmtree(home, ignore_errors=True)
    return told


def _kill(
    clock: Clock, choose: random.Random, told: Told, home: Path, environment: dict[str, str], address: str
) -> None:
    from emberlet.batch import Predictor

    model = versions(home)[0][0]
    images = np.random.default_rng(0).random((ROWS, 64), np.float32)
    (home / "in").mkdir()
    for number, part in enumerate(np.split(images, FILES)):
        column = pa.FixedSizeListArray.from_arrays(pa.array(part.reshape(-1)), 64)
        ids = np.arange(number * len(part), (number + 1) * len(part))
        parquet.write_table(pa.table({"id": ids, "image": column}), home / "in" / f"{number}.parquet")
    wanted = np.asarray(Predictor(model, "numpy")({"image": images})["logits"])
    import emberlet.batch.ray_parts  # noqa: F401 -- and Ray's data sets, which each fork would import for seconds
    from emberlet.host.cli import main

    words = ["score", model, home / "in", "--keep", "id", "--ray", address, "--workers", str(WORKERS),
             "--rows-per-file", "100", "--backend", "numpy", "--resume"]  # fmt: skip

    def score(out: Path) -> None:
        os.environ.update(environment)
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            assert main([str(word) for word in [*words, "--out", out]]) == 0

    def run_for(seconds: float, out: Path, writing: bool = False) -> bool:
        """Whether the run was killed before it finished. writing: count the seconds from its first new file on."""
        hit = killed(partial(score, out), seconds, home / "error", begun=_more_files(out) if writing else lambda: True)
        if text := said(home / "error"):
            told.failures.append(text)
        return hit

    begin = time.perf_counter()
    assert not run_for(LONGEST, home / "first") and not told.failures, told.failures or "the first run takes too long"
    took = time.perf_counter() - begin
    files = [file.stat().st_mtime for file in (home / "first").glob("*.parquet")]
    wrote = max(0.5, time.time() - min(files))
    finished = writing_kills = 0
    while clock and (clock.times is None or told.tried < clock.times) and len(told.failures) < 20:
        out = home / f"out{told.checked}"
        fresh = True
        while fresh or choose.random() < AGAIN:
            writing = choose.random() < 0.5
            begin = time.perf_counter()
            if not run_for(choose.uniform(0.0, 1.1) * (wrote if writing else took), out, writing):
                finished += 1
                took = time.perf_counter() - begin if fresh else took  # the first run of a cluster takes far longer
                break
            fresh = False
            told.tried += 1
            writing_kills += writing
        if run_for(LONGEST, out):
            told.failures.append(f"a resumed run takes more than {LONGEST} s")
        else:
            told.failures += _wrong(out, wanted)
        told.checked += 1
        shutil.rmtree(out, ignore_errors=True)
    told.facts |= {"kills after a new file": writing_kills}
    told.facts |= {"runs that finished before their kill": finished, "seconds of a whole run": round(took, 1)}


def _more_files(out: Path) -> Callable[[], bool]:
    """Whether a run has written a file that was not there before."""
    before = len(list(out.glob("*.parquet")))
    return lambda: len(list(out.glob("*.parquet"))) > before


def _wrong(out: Path, wanted: Any) -> list[str]:
    """What is wrong with a finished output."""
    found = parquet.read_table(out).sort_by("id")
    if found["id"].to_pylist() != list(range(len(wanted))):
        return [f"{len(found)} rows of {len(wanted)}"]
    if not np.allclose(np.array(found["logits"].to_pylist(), np.float32), wanted, atol=1e-4):
        return ["rows with other results"]
    return [f"{out.name}.checkpoint is left"] if Path(f"{out}.checkpoint").exists() else []
