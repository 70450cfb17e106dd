"""The parts of scoring one by one: files and their parts, tables of rows, models opened once, arguments and records."""

from __future__ import annotations

import json
import os
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emberlet.batch import Predictor, files, scoring
from emberlet.batch.files import File, Files, parts, system_of
from emberlet.batch.opened import Opened, chosen, function
from emberlet.batch.output_folder import RECORD, begin, forget, held, write_record
from emberlet.batch.rows import Reading, _placed, tables
from emberlet.batch.scorer import Scorer
from emberlet.errors import EmberletError, FormatError, ShapeError
from emberlet.host.folders.folder import Folder
from emberlet.host.together import together
from pyarrow import fs as arrow_fs
from pyarrow import parquet

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
LOCAL = arrow_fs.LocalFileSystem()
Save = Callable[..., Path]


# -- files


def test_a_location_is_a_path_or_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for location in ("a.csv", str(tmp_path / "a.csv"), "~/a.csv", (tmp_path / "a.csv").as_uri()):
        system, path = system_of(location)
        assert isinstance(system, arrow_fs.LocalFileSystem)
        assert path == str(tmp_path / "a.csv")
    with pytest.raises(EmberletError, match="what://x: "):
        system_of("what://x")


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.csv", "a.csv", "sub/c.csv", ".hidden.csv", "_b.csv", "sub/_d.csv", "notes.txt"):
        (tmp_path / name).write_text("x\n1\n", encoding="utf-8")
    found = files.find([str(tmp_path / "b.csv"), f"{tmp_path}/", str(tmp_path / "a.csv")])
    assert [(f.index, f.path) for f in found.files] == [
        (0, f"{tmp_path}/a.csv"), (1, f"{tmp_path}/b.csv"), (2, f"{tmp_path}/sub/c.csv")
    ]  # fmt: skip
    assert [f.shown for f in found.files] == [f.path for f in found.files]
    assert {f.size for f in found.files} == {4}
    assert all(f.changed > 1 << 60 for f in found.files)


def made(kind: str, *sizes: int) -> Files:
    return Files(kind, LOCAL, tuple(File(f"f{i}", f"/f{i}", i, size, 0) for i, size in enumerate(sizes)))


# -- tables of rows


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.float32(3), "no axis of rows"),
        (np.asfortranarray(np.zeros((3, 4))), "its first axis runs fastest"),
        (np.zeros((3, 2), np.complex64), "arrays of '<c8' are not read"),
    ],
)
def test_arrays_without_rows_are_refused(array: Any, says: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    found = files.find([str(tmp_path / "a.npy")])
    with pytest.raises(EmberletError, match=rf"a\.npy: .*{says}"):
        list(tables(parts(found, 9)[0], Reading(found.system, None, (), 9)))


@pytest.mark.parametrize("change", [-1, 1])
def test_an_array_of_another_length_than_its_header_says_is_refused(change: int, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 4), np.uint8))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data[:-1] if change < 0 else data + b"\0")
    found = files.find([str(tmp_path / "a.npy")])
    with pytest.raises(FormatError, match=f"{12 + change} bytes of data where its header says 12"):
        list(tables(parts(found, 9)[0], Reading(found.system, None, (), 9)))


# -- models


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("json", "expected module:function"), (":dumps", "expected module:function"),
        ("json:", "expected module:function"),
        ("no_such_module:f", "there is no module 'no_such_module'"), ("json:nothing", "json has no nothing"),
        ("json:JSONEncoder.nothing", "json has no JSONEncoder.nothing"), ("math:pi", "pi is not a function"),
        ("broken_here:f", "broken_here fails: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_function_that_is_none_is_refused(named: str, says: str, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "broken_here.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EmberletError, match=f"^preprocess '{named}': {says}"):
        function(named)


def test_a_function_is_found_by_its_name(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "mine_here.py").write_text(
        "class A:\n    @staticmethod\n    def f(x):\n        return x\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    assert function("json:dumps") is json.dumps
    assert function("mine_here:A.f")(3) == 3


@pytest.mark.parametrize(
    ("backend", "gpus", "found"),
    [
        ("numpy", ["3"], "numpy"), ("auto", None, "auto"), ("auto", [], "auto"), ("auto", ["3"], "wgpu:3"),
        ("auto", [1, 2], "wgpu:1"),
        ("auto", ["GPU-7f"], "wgpu"), ("auto", "stopped", "auto"),
    ],
)  # fmt: skip
def test_auto_is_the_gpu_that_ray_assigned(backend: str, gpus: Any, found: str, monkeypatch: Any) -> None:
    ray = types.SimpleNamespace(
        is_initialized=lambda: gpus != "stopped",
        get_runtime_context=lambda: types.SimpleNamespace(
            get_accelerator_ids=lambda: {} if gpus is None else {"GPU": gpus}
        ),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert chosen(backend) == found
    monkeypatch.delitem(sys.modules, "ray")
    assert chosen(backend) == backend


def test_outputs_are_chosen_by_name_and_in_that_order(save: Save) -> None:
    path = save("g (float[n, 2] x) => (float[n, 2] y, float[n, 2] z) { y = Relu(x)\n z = Neg(x) }")
    x = np.array([[1.0, -2.0]], np.float32)
    for compiled in (False, True):
        for wanted in (None, ["z"], ["z", "y"], ["y", "z"]):
            model = Opened(str(path), "numpy", compiled, wanted, None)
            assert list(model({"x": x}, None)) == (wanted or ["y", "z"])
            assert model({"x": x}, None)["z"].tolist() == [[-1.0, 2.0]] if wanted != ["y"] else True
            assert (model._compiled is not None) is compiled
    with pytest.raises(EmberletError, match="the model has no output 'w'; it has y, z"):
        Opened(str(path), "numpy", False, ["w"], None)


def test_inputs_with_and_without_rows_do_not_mix(save: Save) -> None:
    path = save("g (float k) => (float y) { y = Neg(k) }")
    with pytest.raises(ShapeError, match="none of the model's inputs has a batch axis"):
        Predictor(path)({"k": np.full(3, 2.0)})
    path = save("g (float[3] a, float[n, 2] b) => (float[3] y) { y = Neg(a) }")
    with pytest.raises(ShapeError, match="some of the model's inputs have a batch axis and others have none"):
        Predictor(path)({"a": np.zeros((4, 3)), "b": np.zeros((4, 2))})
    path = save("g (float[n, 2] x, float k) => (float[n, 2] y) { y = Mul(x, k) }")
    found = Predictor(path)({"x": np.ones((5, 2)), "k": np.full(5, 3.0)})
    assert found["y"].tolist() == [[3.0, 3.0]] * 5


# -- scoring rows


def scorer(predictor: Any, **options: Any) -> Scorer:
    return Scorer(predictor, (), LOCAL, False, lambda rows, bad: None, **options)


def place(table: pa.Table, name: str = "/data/list.csv") -> pa.Table:
    file = File(name, name, 0, 1, 0)
    return _placed(table, pa.repeat(file.shown, len(table)), np.int64(file.index), np.arange(len(table)))


# -- the job


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).random((3, 64), np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), 64)
    parquet.write_table(pa.table({"id": [1, 2, 3], "image": column}), tmp_path / "a.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no more")
    return tmp_path


def prepare(*inputs: str, out: str = "results", **options: Any) -> scoring.Job:
    return scoring.prepare(str(DIGITS), inputs, out, **options)


def test_an_earlier_run_is_told_by_its_record(data: Path) -> None:
    job = prepare("a.parquet")
    write_record(job.system, job.folder, {**job.record, "done": False})
    written = json.loads((data / "results" / RECORD).read_text(encoding="utf-8"))
    assert written == {**job.record, "done": False}
    with pytest.raises(EmberletError, match="holds the output of an earlier run"):
        prepare("a.parquet")
    assert prepare("a.parquet", resume=True).done is False
    write_record(job.system, job.folder, {**job.record, "done": True})
    again = prepare("a.parquet", resume=True)
    assert again.done is True
    summary = scoring.run(again)
    assert (summary.rows, summary.files, summary.workers, summary.skipped) == (0, 0, 0, [])
    parquet.write_table(pa.table({"x": [1, 2]}), data / "results" / "one.parquet")
    parquet.write_table(pa.table({"x": [1]}), data / "results" / "two.parquet")
    assert held(again.system, again.folder) == (3, 2)
    for text in ("no json", "[]", "{}", '{"emberlet": 1}'):
        (data / "results" / RECORD).write_text(text, encoding="utf-8")
        with pytest.raises(EmberletError, match="is not empty and not an output of score"):
            prepare("a.parquet", resume=True)
    (data / "empty").mkdir()
    assert prepare("a.parquet", out="empty").done is False


@pytest.mark.parametrize("kind", ["folder", "file", "link", "pipe", "an output"])
def test_a_checkpoint_of_somebody_else_stays_and_is_named(data: Path, kind: str) -> None:
    stored, other = data / "results.checkpoint", data / "precious"
    other.mkdir()
    begin(arrow_fs.LocalFileSystem(), str(data / "precious"))
    (data / "precious.checkpoint").rename(other / "inner")
    if kind == "folder":
        stored.mkdir()
    elif kind == "link":  # to a checkpoint that score made, elsewhere
        stored.symlink_to(other / "inner")
    elif kind == "file":
        stored.write_text("mine", encoding="utf-8")
    elif kind == "pipe":
        os.mkfifo(stored)
    else:
        write_record(arrow_fs.LocalFileSystem(), str(stored), {"emberlet score": 1, "done": True})
    before = sorted(str(p) for p in data.rglob("*"))
    with pytest.raises(EmberletError, match=r"results\.checkpoint"):
        prepare("a.parquet")
    forget(arrow_fs.LocalFileSystem(), str(data / "results"))
    assert sorted(str(p) for p in data.rglob("*")) == before


def test_a_checkpoint_of_score_is_deleted_and_what_others_put_there_is_not(data: Path) -> None:
    begin(arrow_fs.LocalFileSystem(), str(data / "results"))
    (data / "results.checkpoint" / "rows").mkdir()
    (data / "results.checkpoint" / "notes.txt").write_text("mine", encoding="utf-8")
    assert prepare("a.parquet").done is False
    forget(arrow_fs.LocalFileSystem(), str(data / "results"))
    assert [p.name for p in (data / "results.checkpoint").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("act", [begin, forget])
def test_a_run_killed_before_any_system_call_leaves_a_checkpoint_that_the_next_run_deletes(
    data: Path, act: Callable[[Any, str], None]
) -> None:
    local, out = arrow_fs.LocalFileSystem(), data / "results"
    before = sorted(data.iterdir())
    for calls in range(1000):
        if act is forget:
            begin(local, str(out))
            (data / "results.checkpoint" / "rows").mkdir()
        child = os.fork()
        if not child:
            sys.setprofile(_killed_after(calls))
            act(local, str(out))
            os._exit(0)
        finished = os.waitpid(child, 0)[1] == 0
        assert prepare("a.parquet").done is False
        begin(local, str(out))
        forget(local, str(out))
        assert sorted(data.iterdir()) == before
        if finished:
            break
    assert 5 < calls < 999


def test_beginning_a_run_finishes_what_a_killed_process_began_to_write_beside_it(data: Path) -> None:
    place = data / "place"
    place.mkdir()
    for name in ("m.bpk", "m.py"):
        (place / name).write_text("old", encoding="utf-8")
    child = os.fork()
    if not child:
        move = Folder.move

        def first_only(*given: Any) -> None:
            move(*given)
            os._exit(1)

        Folder.move = first_only  # type: ignore[method-assign]
        with together(place) as draft:
            for name in ("m.bpk", "m.py"):
                (draft / name).write_text("new", encoding="utf-8")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    begin(arrow_fs.LocalFileSystem(), str(place / "scores"))
    assert {file.name: file.read_text(encoding="utf-8") for file in place.glob("m.*")} == {
        "m.bpk": "new",
        "m.py": "new",
    }


def _killed_after(calls: int) -> Callable[[Any, str, Any], None]:
    """A profile function that kills the process before that call into the system, or into Arrow."""
    left = [calls]

    def profile(frame: Any, event: str, function: Any) -> None:
        if event == "c_call" and (function.__module__ or "").startswith(("posix", "pyarrow", "io", "_io")):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return profile


def test_an_output_that_holds_an_input_is_refused(data: Path) -> None:
    with pytest.raises(EmberletError, match=r"a\.parquet"):
        prepare("a.parquet", out=str(data))


def test_the_record_changes_with_the_model_and_the_files(data: Path) -> None:
    model = data / "m.onnx"
    model.write_bytes(DIGITS.read_bytes())
    first = scoring.prepare(str(model), ["a.parquet"], "results").record
    assert scoring.prepare(str(model), ["a.parquet"], "results").record == first
    (data / "m.onnx.data").write_bytes(b"weights beside it")
    beside = scoring.prepare(str(model), ["a.parquet"], "results").record
    assert beside["weights"] != first["weights"]
    (data / "m.txt").write_text("no weights", encoding="utf-8")
    (data / "other.bpk").write_bytes(b"another model's")
    assert scoring.prepare(str(model), ["a.parquet"], "results").record == beside
    parquet.write_table(parquet.read_table("a.parquet"), data / "b.parquet")
    more = scoring.prepare(str(model), ["a.parquet", "b.parquet"], "results").record
    assert (more["inputs"], first["inputs"]) == (2, 1)
    assert more["listing"] != first["listing"]


def test_rows_of_the_parts_that_can_be_read_follow_each_other(data: Path) -> None:
    found = files.find(["broken.parquet", "a.parquet"])
    single = scoring._Single(parts(found, 9), Reading(found.system, None, (), 1))
    rows = []
    for _ in range(6):
        try:
            row = next(single, None)
            rows.append(None if row is None else row["id"].to_pylist())
        except FormatError:
            rows.append("bad")
    assert rows == [[1], [2], [3], "bad", None, None]
