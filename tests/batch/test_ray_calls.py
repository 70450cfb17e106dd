"""What scoring asks of Ray, with a stand-in for it that notes it: the pipeline, the tally of rows, the record."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emberlet.batch import Predictor, ray_cluster, scoring
from emberlet.batch.files import File, Part
from emberlet.batch.output_folder import begin, read_record
from emberlet.batch.rows import Reading
from emberlet.errors import EmberletError
from pyarrow import fs as arrow_fs
from pyarrow import parquet

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
LOCAL = arrow_fs.LocalFileSystem()


# -- what workers and readers tell


def parts_of_ray(ray_stand_in: Any) -> Any:
    return importlib.import_module("emberlet.batch.ray_parts")


def array_part(folder: Path, rows: int) -> Part:
    np.save(folder / "a.npy", np.arange(2 * rows, dtype=np.float32).reshape(rows, 2))
    path = str(folder / "a.npy")
    file = File(path, path, 0, os.path.getsize(path), 1)
    return Part(".npy", (file,), 0, rows)


# -- the pipeline


def job(folder: Path, **changed: Any) -> scoring.Job:
    part = array_part(folder, 5)
    options = {"keep": (), "system": LOCAL, "skip": False, "batch_size": None, "pictures": False}
    fields: dict[str, Any] = {
        "predictor": Predictor(DIGITS), "out": "given/", "system": LOCAL, "folder": str(folder / "out"),
        "files": None, "parts": [part, part, part], "reading": Reading(LOCAL, None, (), 2), "options": options,
        "block_bytes": 12345, "rows": 5, "record": {"emberlet score": 1}, "done": False,
    }  # fmt: skip
    return scoring.Job(**{**fields, **changed})


def test_a_failure_is_that_which_a_worker_told_or_the_last_line_of_rays(
    ray_stand_in: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    ray_stand_in.written = RuntimeError("a trace\n  the cause  \n\n")
    with pytest.raises(EmberletError, match=r"^Ray gave up: the cause$"):
        scoring._scored(job(tmp_path), 1, 1, 0, False, None)
    assert ray_stand_in.gets[-1] == 10
    monkeypatch.setattr(parts_of_ray(ray_stand_in).Tally, "failure", lambda self: "row 3 is bad")
    with pytest.raises(EmberletError, match=r"^row 3 is bad$"):
        scoring._scored(job(tmp_path), 1, 1, 0, False, None)

    def gone(self: Any) -> None:
        raise LookupError("the actor died")

    monkeypatch.setattr(parts_of_ray(ray_stand_in).Tally, "failure", gone)
    with pytest.raises(EmberletError, match=r"^Ray gave up: the cause$"):
        scoring._scored(job(tmp_path), 1, 1, 0, False, None)


def test_a_job_that_is_done_starts_nothing_and_drops_a_checkpoint_that_was_left(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(ray_cluster, "connected", lambda *a: pytest.fail("connected"))
    work = job(tmp_path, done=True)
    out = Path(work.folder)
    out.mkdir()
    parquet.write_table(pa.table({"x": [1, 2]}), out / "a.parquet")
    parquet.write_table(pa.table({"x": [3]}), out / "b.parquet")
    (out / "note.txt").write_text("x", encoding="utf-8")
    begin(LOCAL, work.folder)
    found = scoring.run(work)
    assert (found.rows, found.files, found.seconds, found.workers, found.skipped) == (3, 2, 0.0, 0, [])
    assert not Path(work.folder + ".checkpoint").exists()


@pytest.mark.parametrize("skipped", [[], [("a", 1, "why"), ("b", 2, "no")]])
def test_a_run_that_scores_nothing_is_an_error_if_rows_were_skipped(
    skipped: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    @contextmanager
    def connected(*args: Any) -> Iterator[int]:
        yield 3

    monkeypatch.setattr(ray_cluster, "connected", connected)
    monkeypatch.setattr(scoring, "_scored", lambda *args: skipped)
    if not skipped:
        assert scoring.run(job(tmp_path)).rows == 0
        return
    with pytest.raises(EmberletError, match=r"^no row could be scored; the first: a: why$"):
        scoring.run(job(tmp_path))
    assert (read_record(LOCAL, job(tmp_path).folder) or {})["done"] is False


def test_modules_of_functions_are_sent_along_except_emberlets(ray_stand_in: Any, monkeypatch: Any) -> None:
    sent = ray_stand_in.sent
    for name, wanted in ((None, []), ("nowhere", []), ("emberlet.batch", []), ("json", [("+", "json"), ("-", "json")])):
        sent.clear()
        with scoring._by_value(SimpleNamespace(resolve=lambda name=name: name)):  # type: ignore[arg-type]
            assert sent == wanted[:1]
        assert sent == wanted
    sent.clear()
    with pytest.raises(KeyError), scoring._by_value(SimpleNamespace(resolve=lambda: "json")):  # type: ignore[arg-type]
        raise KeyError
    assert len(sent) == 2
