"""What scoring asks of Ray, with a stand-in for it that notes it: the pipeline, the tally of rows, the record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.batch import Predictor, ray_cluster, scoring
from emberlet.batch.files import File, Part
from emberlet.batch.output_folder import read_record
from emberlet.batch.rows import Reading
from emberlet.errors import EmberletError
from pyarrow import fs as arrow_fs

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
LOCAL = arrow_fs.LocalFileSystem()


# -- what workers and readers tell


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
