"""The parts of scoring one by one: files and their parts, tables of rows, models opened once, arguments and records."""

from __future__ import annotations

import json
import os
import signal
import sys
import types
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emberlet.batch import Predictor, files, opened, scoring
from emberlet.batch.files import File, Files, Part, kind_of, parts, system_of
from emberlet.batch.opened import Opened, chosen, function, path_of
from emberlet.batch.output_folder import RECORD, begin, forget, held, write_record
from emberlet.batch.pieces import MOST_ROWS
from emberlet.batch.rows import PLACE, Reading, _placed, _sized, tables
from emberlet.batch.scorer import Scorer, one_line
from emberlet.errors import EmberletError, FormatError, ShapeError
from emberlet.host.folders.folder import Folder
from emberlet.host.together import together
from PIL import Image
from pyarrow import fs as arrow_fs
from pyarrow import parquet

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
LOCAL = arrow_fs.LocalFileSystem()
Save = Callable[..., Path]


# -- files


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.parquet", "Parquet"), ("a.PQ", "Parquet"), ("x/a.csv", "CSV"), ("a.csv.gz", "CSV"), ("a.npy", ".npy"),
        ("a.PNG", "pictures"), ("a.jpeg", "pictures"), ("a.gz", None), ("a.txt", None), ("parquet", None),
    ],
)  # fmt: skip
def test_a_file_is_what_its_ending_says(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


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


def test_pictures_are_read_in_groups_and_small_files_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found = parts(made("pictures", *[1] * 7), 3)
    assert [len(part.files) for part in found] == [3, 3, 1]
    assert [part.size for part in found] == [3, 3, 1]
    monkeypatch.setattr(files, "LARGE", 100)
    monkeypatch.setattr(files, "_units", lambda found, file: {0: 10, 1: 10, 2: 2, 3: 1, 4: 7}[file.index])
    found = parts(made("Parquet", 100, 101, 1000, 1000, 300), 1)
    assert [(p.files[0].index, p.start, p.stop) for p in found] == [
        (0, 0, None), (1, 0, 5), (1, 5, 10), (2, 0, 1), (2, 1, 2), (3, 0, None), (4, 0, 2), (4, 2, 4), (4, 4, 7)
    ]  # fmt: skip


def test_a_damaged_file_is_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGE", 2)
    parquet.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "a.parquet", row_group_size=1)
    np.save(tmp_path / "a.npy", np.zeros((5, 2)))
    np.save(tmp_path / "b.npy", np.float64(7))
    for name, count in (("a.parquet", 3), ("a.npy", 5), ("b.npy", 1)):
        assert len(parts(files.find([str(tmp_path / name)]), 1)) == count
        (tmp_path / name).write_bytes(b"no such file")
        assert len(parts(files.find([str(tmp_path / name)]), 1)) == 1


# -- tables of rows


def test_tables_have_the_rows_asked_for_or_fewer_by_their_bytes() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        sizes = [int(n) for n in rng.integers(0, 9, rng.integers(0, 6))]
        whole = np.arange(sum(sizes))
        edges = np.cumsum([0, *sizes])
        given = [(int(a), pa.table({"x": whole[a:b]})) for a, b in pairwise(edges)]
        rows, most = int(rng.integers(1, 8)), int(rng.choice([1, 24, 64, 10_000]))
        found = list(_sized(iter(given), Reading(None, None, (), rows, most)))
        assert [n for _, t in found for n in t["x"].to_pylist()] == whole.tolist()
        assert [first for first, _ in found] == np.cumsum([0, *(len(t) for _, t in found[:-1])]).tolist()[: len(found)]
        limit = max(1, min(rows, most // 8))
        assert all(1 <= len(t) <= rows for _, t in found)
        if most == 10_000:
            assert all(len(t) == rows for _, t in found[:-1])
        if most == 1:
            assert all(len(t) == 1 for _, t in found)
        assert all(len(t) <= max(limit, 1) or t.nbytes <= most for _, t in found[:-1])


def test_every_row_has_its_file_its_place_and_an_id() -> None:
    a, b = made("CSV", 1, 1).files
    shown, numbers = pa.array([a.shown, b.shown]), np.array([a.index, b.index])
    found = _placed(pa.table({"x": [1, 2]}), shown, numbers, np.array([5, 7]))
    assert found.column_names == ["x", *PLACE]
    assert [found[name].to_pylist() for name in PLACE] == [["f0", "f1"], [5, 7], [5, (1 << 40) + 7]]


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


@pytest.mark.parametrize("most", [1, 7, 8, 15, 16, 1000])
def test_rows_of_an_array_are_read_in_pieces_of_a_few_bytes(most: int, tmp_path: Path) -> None:
    array = np.arange(40, dtype=np.float32).reshape(20, 2)
    np.save(tmp_path / "a.npy", array)
    found = files.find([str(tmp_path / "a.npy")])
    part = Part(".npy", found.files, 3, 17)
    got = list(tables(part, Reading(found.system, None, (), 5, most)))
    assert [x for t in got for x in t["data"].to_pylist()] == array[3:17].tolist()
    assert [n for t in got for n in t["source_row"].to_pylist()] == list(range(3, 17))


# -- models


def test_a_process_keeps_the_last_four_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "_open", type(opened._open)())
    count = []

    def make() -> Any:
        count.append(1)
        return object()

    first = [opened.opened(key, make) for key in range(4)]
    assert [opened.opened(key, make) for key in range(4)] == first
    assert len(count) == 4
    assert opened.opened(0, make) is first[0]  # the last that was used
    opened.opened(4, make)  # in the place of 1
    assert opened.opened(0, make) is first[0]
    assert len(count) == 5
    assert opened.opened(1, make) is not first[1]


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


def test_the_file_of_a_model(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert path_of("a.onnx") == path_of(Path("a.onnx")) == str(tmp_path / "a.onnx")
    assert path_of("~/a.onnx") == str(tmp_path / "home" / "a.onnx")
    assert path_of(b"bytes") is None
    assert path_of(Predictor) == sys.modules["emberlet.batch.predictor"].__file__
    with pytest.raises(EmberletError, match="X is not in a file that another process could read"):
        path_of(type("X", (), {"__module__": "nowhere"}))


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


def test_tables_of_scores_are_columns() -> None:
    model = Opened(DIGITS.read_bytes(), "numpy", False, None, None)
    x = np.zeros((2, 3), np.float32)
    model.names = ("label", "scores")
    found = model._named((x, [{1: 0.5, 2: 0.25}, {1: 0.0, 2: 1.0}]))
    assert [part.shape[0] for part in found] == [2, 2]
    assert model._found == ["label", "scores"]
    one = Opened(DIGITS.read_bytes(), "numpy", False, None, None)
    one.names = ()
    one._named(x)
    assert one._found == ["output"]
    two = Opened(DIGITS.read_bytes(), "numpy", False, None, None)
    two.names = ("only",)
    two._named((x, x))
    assert two._found == ["output_0", "output_1"]
    empty = Opened(DIGITS.read_bytes(), "numpy", False, None, None)
    empty.names = ("label", "scores")
    assert len(empty._named((x, []))) == 1 and empty._found == ["label"]
    chosen = Opened(DIGITS.read_bytes(), "numpy", False, None, None)
    chosen.names, chosen._wanted = ("label", "scores"), ["label"]
    assert len(chosen._named((x, [{1: 0.5}, "no table"]))) == 1


# -- scoring rows


def scorer(predictor: Any, **options: Any) -> Scorer:
    return Scorer(predictor, (), LOCAL, False, lambda rows, bad: None, **options)


def place(table: pa.Table, name: str = "/data/list.csv") -> pa.Table:
    file = File(name, name, 0, 1, 0)
    return _placed(table, pa.repeat(file.shown, len(table)), np.int64(file.index), np.arange(len(table)))


def test_as_many_rows_are_read_as_the_model_computes_at_once() -> None:
    predictor = Predictor(DIGITS)
    wide = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(640_000, np.float32)), 64_000)
    assert scorer(predictor)._rows(place(pa.table({"x": wide}))) == 16
    assert scorer(predictor, batch_size=3)._rows(place(pa.table({"x": wide}))) == 3
    assert scorer(predictor)._rows(place(pa.table({"x": [1.0, 2.0]}))) == MOST_ROWS
    assert scorer(predictor)._rows(place(pa.table({"x": ["a", "b"], "y": [1, 2]}))) == MOST_ROWS  # of 8 x 8 pictures
    for shape, rows in (((None, 3, 512, 512), 1), ((None, 3, None, None), 4), (("n", 4), 16), ((), 16), (None, 16)):
        holder = types.SimpleNamespace(opened=types.SimpleNamespace(inputs=[types.SimpleNamespace(shape=shape)]))
        assert scorer(holder)._decoded() == rows


def test_a_path_in_a_column_is_absolute_or_beside_its_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("a.bin", "sub/a.bin"):
        (tmp_path / name).write_bytes(name.encode())
    read = scorer(None)._read
    assert read(str(tmp_path / "a.bin"), "/else/list.csv") == b"a.bin"
    assert read((tmp_path / "a.bin").as_uri(), "/else/list.csv") == b"a.bin"
    assert read("a.bin", str(tmp_path / "sub" / "list.csv")) == b"sub/a.bin"
    assert read("sub/a.bin", str(tmp_path / "list.csv")) == b"sub/a.bin"
    assert read("a.bin", "a.bin") == b"a.bin"
    assert read("a.bin", "list.csv") == b"a.bin"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (EmberletError("one\ntwo"), "one"), (ValueError("bad"), "ValueError: bad"), (KeyError("x"), "KeyError: 'x'"),
        (OSError(2, "No such file", "a.csv"), "a.csv: No such file"), (OSError(2, "No such file"), "No such file"),
        (OSError("plain"), "plain"), (EmberletError(""), "EmberletError"),
    ],
)  # fmt: skip
def test_an_error_in_one_line(error: Exception, line: str) -> None:
    assert one_line(error) == line


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


def test_a_job_knows_its_rows_where_that_is_cheap(data: Path) -> None:
    assert (prepare("a.parquet").rows, prepare("a.parquet").done) == (3, False)
    (data / "pictures").mkdir()
    for i in range(4):
        Image.new("L", (8, 8)).save(data / "pictures" / f"{i}.png")
    job = prepare("pictures")
    assert (job.rows, len(job.parts), job.reading.rows, job.block_bytes) == (4, 1, 256, 128 << 20)
    assert job.options["pictures"] is True
    assert len(prepare("pictures", rows_per_file=3).parts) == 2
    (data / "a.csv").write_text(",".join(f"p{i}" for i in range(64)) + "\n" + ",".join(["1"] * 64), encoding="utf-8")
    job = prepare("a.csv", columns={"image": [f"p{i}" for i in range(64)]})
    assert (job.rows, job.reading.rows, job.options["pictures"]) == (None, 8192, False)
    assert prepare("broken.parquet", "a.parquet", skip_bad=True).rows is None


def test_a_block_is_as_large_as_a_file_of_results(data: Path) -> None:
    row = 64 * 4 + 8 + 8
    for rows, size in ((1, 1 << 20), (8192, 8192 * row), (1 << 20, 32 << 20)):
        found = prepare("a.parquet", rows_per_file=rows, keep=["id"]).block_bytes
        assert abs(found - size) < size // 2


def test_only_the_columns_that_are_used_are_read(data: Path) -> None:
    assert prepare("a.parquet").reading.columns == ("image",)
    assert prepare("a.parquet", keep=["id"]).reading.columns == ("image", "id")
    assert prepare("a.parquet", keep=["image"], outputs={"logits": "x"}).reading.columns == ("image",)
    (data / "prepare_here.py").write_text("def same(batch):\n    return {'image': batch['image']}\n", encoding="utf-8")
    assert prepare("a.parquet", preprocess="prepare_here:same").reading.columns is None


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


def test_the_last_line_of_an_error() -> None:
    assert scoring._last_line(ValueError("one\n two \n\n")) == "two"
    assert scoring._last_line(ValueError("")) == "ValueError"


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
