"""Failing rows are found, named, and separated from the others."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emberlet.batch import Predictor, files, scoring
from emberlet.batch.rows import FILE, ROW, Reading, tables
from emberlet.batch.scorer import Bad, Scorer
from emberlet.errors import BackendError, EmberletError, FormatError
from PIL import Image

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


@pytest.fixture
def pictures(tmp_path: Path) -> pa.Table:
    """40 files, 37 of them pictures of 8 x 8 pixels."""
    random = np.random.default_rng(0)
    for i in range(40):
        path = tmp_path / f"{i:02}.png"
        Image.fromarray(random.integers(0, 256, (8, 8), np.uint8)).save(path)
        if i in (3, 4, 39):
            path.write_bytes(path.read_bytes()[:50] if i == 3 else b"")
    found = files.find([str(tmp_path)])
    (table,) = (t for part in files.parts(found, 100) for t in tables(part, Reading(found.system, None, (), 100)))
    return table


def scorer(skip: bool, told: list[Any], **options: Any) -> Scorer:
    predictor = Predictor(DIGITS, inputs={"image": "path"}, **options)
    return Scorer(
        predictor,
        (),
        files.system_of("/")[0],
        skip,
        lambda rows, bad: told.append((rows, bad)),
        batch_size=16,
        pictures=True,
    )


def test_bad_rows_are_skipped_and_the_rest_is_right(pictures: pa.Table) -> None:
    told: list[tuple[int, list[Bad]]] = []
    found = scorer(True, told)(pictures)
    names = [Path(p).stem for p in found[FILE].to_pylist()]
    assert names == [f"{i:02}" for i in range(40) if i not in (3, 4, 39)]
    pixels = [np.asarray(Image.open(p)).reshape(1, 8, 8) for p in found[FILE].to_pylist()]
    wanted = Predictor(DIGITS)({"image": np.stack(pixels)})["logits"]
    np.testing.assert_allclose(np.array(found["logits"].to_pylist()), wanted, rtol=1e-4, atol=1e-3)
    assert sum(rows for rows, _ in told) == 37
    assert [Path(file).stem for _, bad in told for file, _, _ in bad] == ["03", "04", "39"]
    assert all("cannot be decoded" in why for _, bad in told for _, _, why in bad)


def test_without_skipping_the_first_bad_row_stops_the_run_by_name(pictures: pa.Table) -> None:
    with pytest.raises(FormatError, match=r"03\.png: .*cannot be decoded"):
        scorer(False, [])(pictures)


def test_a_table_of_which_nothing_is_left_is_empty(pictures: pa.Table) -> None:
    found = scorer(True, [])(pictures.slice(3, 2))
    assert len(found) == 0
    assert found.column_names == [FILE, ROW, "row_id"]


def test_a_failure_of_the_device_is_no_bad_row(pictures: pa.Table) -> None:
    def lost(batch: dict[str, Any]) -> dict[str, Any]:
        raise BackendError("the device is lost")

    with pytest.raises(BackendError):
        scorer(True, [], preprocess=lost)(pictures)


def test_rows_that_fail_together_and_not_apart_are_an_error(pictures: pa.Table) -> None:
    def together(batch: dict[str, Any]) -> dict[str, Any]:
        if len(batch["image"]) > 1:
            raise ValueError("too many")
        return batch

    with pytest.raises(EmberletError, match=r"too many|ValueError"):
        scorer(False, [], preprocess=together)(pictures.slice(5, 4))


def test_a_column_of_paths_leads_beside_the_file_that_holds_it(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8), np.uint8)
    (tmp_path / "images").mkdir()
    for i, x in enumerate(pixels):
        Image.fromarray(x).save(tmp_path / "images" / f"{i}.png")
    (tmp_path / "list.csv").write_text("path\nimages/0.png\nimages/1.png\nimages/gone.png\n", encoding="utf-8")
    found = files.find([str(tmp_path / "list.csv")])
    (table,) = tables(files.parts(found, 9)[0], Reading(found.system, None, (), 9))
    told: list[Any] = []
    results = scorer(True, told)(table)
    wanted = Predictor(DIGITS)({"image": pixels[:2, None]})["logits"]
    np.testing.assert_allclose(np.array(results["logits"].to_pylist()), wanted, rtol=1e-4, atol=1e-3)
    assert [(Path(file).name, row) for _, bad in told for file, row, _ in bad] == [("list.csv", 2)]


@pytest.mark.parametrize("asked", [True, False])
def test_a_report_is_made_twice_a_second_where_one_is_asked_for(asked: bool, monkeypatch: Any) -> None:
    told: list[tuple[int, int | None, int]] = []
    reported = threading.Event()

    def report(rows: int, of: int | None, skipped: int) -> None:
        told.append((rows, of, skipped))
        reported.set()

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=lambda found, timeout: found))
    tally = SimpleNamespace(state=SimpleNamespace(remote=lambda: (3, 1)))
    watched = scoring._watched(tally, 5, report if asked else None)
    with watched:
        assert watched._thread.is_alive() is asked
        assert reported.wait(10) if asked else True
    assert not watched._thread.is_alive()
    assert told[:1] == ([(3, 5, 1)] if asked else [])
