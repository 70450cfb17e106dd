"""emberlet score reports wrong arguments in one line, before a cluster starts."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pytest
from emberlet.batch import ray_cluster, scoring
from emberlet.batch.output_folder import RECORD
from PIL import Image
from pyarrow import parquet


@pytest.fixture
def no_cluster(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a cluster was started")

    monkeypatch.setattr(ray_cluster, "connected", refuse)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with rows for the digits model, and bad ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    images = np.random.default_rng(0).random((3, 64), np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), 64)
    parquet.write_table(pa.table({"id": [1, 2, 3], "image": column, "other": column}), tmp_path / "a.parquet")
    short = pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), 32)
    parquet.write_table(pa.table({"image": short}), tmp_path / "short.parquet")
    (tmp_path / "broken.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:500])
    (tmp_path / "prepare.py").write_text("def fails(batch):\n    raise KeyError('x')\n", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep", encoding="utf-8")
    os.mkdir(tmp_path / "pictures")
    Image.new("RGB", (9, 9)).save(tmp_path / "pictures" / "a.png")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing.parquet"], "nothing.parquet: No such file or directory"),
        (["a.parquet", "--backend", "gpu"], "there is no backend 'gpu'"),
        (["a.parquet", "--input", "picture=image"], "the model has no input 'picture'; it has image: float32"),
        (["a.parquet", "--input", "image=pixels"], "there is no column 'pixels'; the columns are id, image, other"),
        (["a.parquet", "--input", "image"], "--input image: expected NAME=COLUMN"),
        (["a.parquet", "--input", "image=id", "--input", "image=other"], "--input image: given twice"),
        (["a.parquet", "--output", "scores"], "the model has no output 'scores'; it has logits"),
        (["a.parquet", "--output", "logits="], "--output logits=: expected NAME[=COLUMN]"),
        (["a.parquet", "--output", "logits=id", "--keep", "id"], "a.parquet row 0: the output 'id' has the name of"),
        (["a.parquet", "--keep", "name"], "there is no column 'name' to keep; the columns are id, image, other"),
        (["a.parquet", "--preprocess", "prepare"], "preprocess 'prepare': expected module:function"),
        (["a.parquet", "--preprocess", "prepare:works"], "preprocess 'prepare:works': prepare has no works"),
        (["a.parquet", "--preprocess", "prepare:fails"], "a.parquet row 0: KeyError: 'x'"),
        (["a.parquet", "--workers", "0"], "--workers is 0, expected 1 or more"),
        (["a.parquet", "--ray", "somewhere"], "--ray somewhere: expected HOST:PORT, or auto"),
        (["a.parquet", "--ray", "ray://head:10001"], "--ray ray://head:10001: expected HOST:PORT, or auto"),
        (["a.parquet", "--ray", "127.0.0.1:1"], "--ray 127.0.0.1:1: nothing answers there: "),
        (["a.parquet", "--cpus", "-1"], "--cpus is -1, expected 0 or more"),
        (["a.parquet", "--batch-size", "0"], "batch_size is 0, expected 1 or more"),
        (["a.parquet", "--rows-per-file", "0"], "rows_per_file is 0, expected 1 or more"),
        (
            ["short.parquet"],
            "short.parquet row 0: the model takes image: float32 (batch, 1, 8, 8), found rows of shape",
        ),
        (["broken.parquet"], "broken.parquet: "),
        (
            ["pictures"],
            "pictures/a.png: the model takes image: float32 (batch, 1, 8, 8), found rows of shape (9, 9, 1)",
        ),
        (["a.parquet", "pictures"], "the inputs are of several kinds, Parquet and pictures"),
        (["full"], "full holds no supported file"),
        (["a.parquet", "--out", "full"], "full is not empty and not an output of score"),
        (["a.parquet", "--out", "a.parquet"], "a.parquet is a file; --out names a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line_and_no_cluster_starts(emberlet, digits, data, no_cluster, arguments, says):
    out = [] if "--out" in arguments else ["--out", "results"]
    said = emberlet("score", digits, *arguments, *out)
    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("emberlet: " + says)
    assert said.err.count("\n") == 1
    assert not (data / "results").exists()


def test_a_model_that_is_missing_is_named(emberlet, data, no_cluster):
    said = emberlet("score", "no.onnx", "a.parquet", "--out", "results")
    assert (said.status, said.err) == (2, f"emberlet: {data}/no.onnx: No such file or directory\n")


def _record(data, digits, **changed):
    job = scoring.prepare(str(digits), ["a.parquet"], "results")
    (data / "results").mkdir()
    (data / "results" / RECORD).write_text(json.dumps({**job.record, **changed}), encoding="utf-8")


def test_an_earlier_run_is_not_overwritten_and_not_mixed(emberlet, digits, data, no_cluster):
    _record(data, digits, done=True)
    said = emberlet("score", digits, "a.parquet", "--out", "results")
    assert "results holds the output of an earlier run; --resume" in said.err
    said = emberlet("score", digits, "a.parquet", "--out", "results", "--resume")
    assert (said.status, said.out) == (0, "nothing is left to do: results holds all 0 rows\n")
    said = emberlet("score", digits, "a.parquet", "--out", "results", "--resume", "--keep", "id")
    assert "results was begun with other arguments: keep changed" in said.err
    parquet.write_table(parquet.read_table("a.parquet").slice(1), "a.parquet")
    said = emberlet("score", digits, "a.parquet", "--out", "results", "--resume")
    assert "results was begun with other arguments: the input files changed" in said.err


def test_arguments_that_fit_no_row_are_refused_at_once(emberlet, digits, data, no_cluster):
    """Arguments that fit no row are refused before a cluster starts, even when bad rows are to be skipped."""
    said = emberlet("score", digits, "short.parquet", "--out", "results", "--skip-bad")
    assert said.status == 2
    assert said.err.startswith("emberlet: short.parquet row 0: the model takes image")
    said = emberlet("score", digits, "broken.parquet", "--out", "results", "--skip-bad")
    assert (said.status, said.err.count("\n")) == (2, 1)


def test_files_that_are_broken_do_not_hide_the_others(data, digits):
    job = scoring.prepare(str(digits), ["broken.parquet", "a.parquet"], "results", skip_bad=True, keep=["id"],
                          columns={"image": ["other"]})  # fmt: skip
    assert job.reading.columns == ("other", "id")
    for name in ("a.png", "0.png"):
        (data / "pictures" / name).write_bytes(b"no picture")
    Image.new("L", (8, 8)).save(data / "pictures" / "b.png")
    assert len(scoring.prepare(str(digits), ["pictures"], "results", skip_bad=True).files.files) == 3


def test_columns_of_a_picture_are_floats_and_a_column_of_paths_is_not(data, digits):
    names = [f"p{i}" for i in range(64)]
    (data / "a.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * 64) + "\n", encoding="utf-8")
    assert set(scoring.prepare(str(digits), ["a.csv"], "results", columns={"image": names}).reading.floats) == set(
        names
    )
    Image.new("L", (8, 8)).save(data / "b.png")
    (data / "b.csv").write_text("path\nb.png\n", encoding="utf-8")
    assert scoring.prepare(str(digits), ["b.csv"], "results", columns={"image": ["path"]}).reading.floats == ()


def test_another_model_does_not_continue_a_run(emberlet, digits, data, no_cluster):
    _record(data, digits, weights="others")
    said = emberlet("score", digits, "a.parquet", "--out", "results", "--resume")
    assert "results was begun with other arguments: the model changed" in said.err


def test_the_bar_tells_rows_a_second(monkeypatch, capsys):
    from emberlet.host.cli import progress

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    moments = iter([10.0, 12.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(moments))
    with progress.Rows("scoring") as bar:
        bar.at(0, 1000, 0)
        bar.at(100, 1000, 0)
        bar.at(500, 1000, 2)
    said = capsys.readouterr().err
    assert "[############............] 500 of 1,000 rows, 200 rows/s, 2 skipped" in said
