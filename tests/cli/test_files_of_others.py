"""No command deletes, moves or overwrites what it did not create, and none writes over what it reads."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emberlet.host.folders.journals import DRAFT, JOURNALS
from emberlet.host.folders.scratch import SCRATCH, SCRATCH_END, marked
from pyarrow import parquet

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")

Emberlet = Callable[..., Any]


def tree(folder: Path) -> dict[str, object]:
    """Every entry of a folder: its kind and permissions, number, time and contents."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        said = path.lstat()
        held = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        changed = 0 if path.is_dir() else said.st_mtime_ns
        found[str(path.relative_to(folder))] = (said.st_mode, said.st_ino, changed, held)
    return found


def fill(folder: Path, elsewhere: Path) -> None:
    """Put files of others into a folder: with our names, hidden, linked, read-only, pipes."""
    folder.mkdir(parents=True, exist_ok=True)
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "precious").write_text("kept", encoding="utf-8")
    for name in ("notes.txt", ".hidden", JOURNALS[0], f"{SCRATCH}1{SCRATCH_END}", "digits.py.before", "read_only",
                 "digits.plan.new", "model.json", "checkpoint", f"{SCRATCH}notes"):  # fmt: skip
        (folder / name).write_text(f"mine: {name}", encoding="utf-8")
    (folder / "read_only").chmod(0o400)
    (folder / JOURNALS[0]).write_text(
        json.dumps({"scratch": f"{DRAFT}x", "moves": [["notes.txt", "digits.py"]], "gone": ["notes.txt"]}),
        encoding="utf-8",
    )
    for name in (f"{DRAFT}x", marked(DRAFT), "results.checkpoint"):
        (folder / name).mkdir()
        (folder / name / "notes.txt").write_text("mine", encoding="utf-8")
    os.mkfifo(folder / JOURNALS[1])
    os.mkfifo(folder / marked(SCRATCH, SCRATCH_END))
    (folder / JOURNALS[2]).symlink_to(elsewhere / "precious")
    (folder / marked(SCRATCH, SCRATCH_END)).symlink_to(elsewhere / "precious")
    (folder / marked(DRAFT)).symlink_to(elsewhere)
    (folder / marked(SCRATCH, SCRATCH_END)).hardlink_to(elsewhere / "precious")
    (folder / "link").symlink_to(elsewhere / "precious")
    (folder / "dangling").symlink_to(elsewhere / "nothing")
    os.chown(folder / marked_folder(folder), 12345, 12345) if os.geteuid() == 0 else None


def marked_folder(folder: Path) -> str:
    """A draft in the folder as ours would be, which root gives to somebody else; other users cannot be imitated."""
    found = [p.name for p in folder.glob(f"{DRAFT}*") if p.is_dir() and not p.is_symlink() and len(p.name) > 20]
    if os.geteuid() != 0:
        shutil.rmtree(folder / found[0])
    return found[0]


@pytest.fixture
def place(tmp_path: Path, digits: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of others' files with inputs for the commands."""
    folder = tmp_path / "place"
    fill(folder, tmp_path / "elsewhere")
    shutil.copy(digits, folder / "digits.onnx")
    np.save(folder / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    np.savez(folder / "inputs.npz", image=np.zeros((1, 1, 8, 8), np.float32))
    (folder / "training" / "train" / "epoch-1").mkdir(parents=True)
    (folder / "training" / "train" / "epoch-1" / "loss.log").write_text("0.5,10\n0.25,10\n", encoding="utf-8")
    np.savez(folder / "weights.npz", **{f"w{i}": np.zeros((64, 64), np.float32) for i in range(3)})
    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(128, np.float32)), 64)
    parquet.write_table(pa.table({"image": rows}), folder / "rows.parquet")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


# the words of a command -> what it makes; OUT stands for the name or folder that it is told to write
WRITERS: dict[str, tuple[str, list[str]]] = {
    "codegen": ("codegen digits.onnx --out OUT", ["OUT/digits.py", "OUT/digits.bpk"]),
    "codegen --embed": ("codegen digits.onnx --embed --out OUT", ["OUT/digits.py"]),
    "graph, svg": ("graph digits.onnx --out OUT.svg", ["OUT.svg"]),
    "graph, html": ("graph digits.onnx --out OUT.html", ["OUT.html"]),
    "graph, txt": ("graph digits.onnx --out OUT.txt", ["OUT.txt"]),
    "convert, bpk": ("convert weights.npz OUT.bpk", ["OUT.bpk"]),
    "convert, no ending": ("convert weights.npz OUT", ["OUT.bpk"]),
    "convert, safetensors": ("convert digits.onnx OUT.safetensors", ["OUT.safetensors"]),
    "convert, npz": ("convert digits.onnx OUT.npz", ["OUT.npz"]),
    "convert --shard": (
        "convert weights.npz OUT.safetensors --shard 20K",
        ["OUT.safetensors.index.json", *(f"OUT-0000{n}-of-00003.safetensors" for n in (1, 2, 3))],
    ),
    "run": ("run digits.onnx --input image=x.npy --out OUT.npz --backend numpy", ["OUT.npz"]),
    "compile, plan": ("compile digits.onnx --out OUT.plan", ["OUT.plan"]),
    "compile, wasm": ("compile digits.onnx --out OUT.wasm", ["OUT.wasm"]),
    "micro build": ("micro build digits.onnx --out OUT --weights module", ["OUT/digits.py", "OUT/build.json"]),
    "quantize": (
        "quantize digits.onnx --calibration inputs.npz --out OUT --time none",
        ["OUT/digits.py", "OUT/digits.bpk", "OUT/digits.quantized.html"],
    ),
    "quantize --activations": (
        "quantize digits.onnx --calibration inputs.npz --out OUT --time none --name small --activations",
        ["OUT/small.py", "OUT/small.bpk", "OUT/small.onnx", "OUT/small.quantized.html"],
    ),
    "train-report": ("train-report training --out OUT.html", ["OUT.html"]),
}
READERS = {
    "inspect": "inspect digits.onnx", "inspect weights": "inspect weights.npz", "diff": "diff weights.npz weights.npz",
    "run": "run digits.onnx --input inputs.npz --backend numpy", "verify": "verify digits.onnx", "devices": "devices",
    "micro deploy": "micro deploy . --dry-run", "score": "score digits.onnx rows.parquet --out results",
}  # fmt: skip
# what a command says of an existing file that it did not write
REFUSED = ("was not written", "holds no digest", "no longer holds", "--overwrite", "is a folder", "Is a directory",
           "is a link, a pipe or a device", "is a pipe or a device")  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_commands_that_only_read_change_nothing(name: str, emberlet: Emberlet, place: Path) -> None:
    before = tree(place.parent)
    said = emberlet(*READERS[name].split())
    assert "Traceback" not in said.err
    assert {k: v for k, v in tree(place.parent).items() if not k.startswith("cache")} == before
    if name == "score":
        assert "results.checkpoint was not made by score" in said.err


@pytest.mark.parametrize("name", WRITERS)
def test_commands_that_write_leave_everything_else(name: str, emberlet: Emberlet, place: Path) -> None:
    words, made = WRITERS[name]
    folder = "OUT/" in made[0]
    out = "." if folder else "fresh"
    before = tree(place.parent)
    for _ in range(2):  # the second time over its own files
        more = ["--overwrite"] if words.startswith("convert") and _ else []
        said = emberlet(*words.replace("OUT", out).split(), *more)
        assert said.status == 0, said.err
        after = {k: v for k, v in tree(place.parent).items() if not k.startswith("cache")}
        assert {k: v for k, v in after.items() if k in before} == before
        assert {str((place / m.replace("OUT", out)).relative_to(place.parent)) for m in made} <= after.keys()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe", "second name"])
@pytest.mark.parametrize("name", WRITERS)
def test_commands_refuse_to_replace_what_they_did_not_write(
    name: str, kind: str, emberlet: Emberlet, place: Path
) -> None:
    words, made = WRITERS[name]
    for each in made:
        path = place / each.replace("OUT", "taken")
        path.parent.mkdir(exist_ok=True)
        if kind == "file":
            path.write_bytes(b"somebody's work")
        elif kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to(place.parent / "elsewhere" / "precious")
        elif kind == "second name":
            path.hardlink_to(place.parent / "elsewhere" / "precious")
        else:
            os.mkfifo(path)
        before = tree(place.parent)
        said = emberlet(*words.replace("OUT", "taken").split())
        assert said.status == 2 and any(text in said.err for text in REFUSED), (each, said.err)
        assert {k: v for k, v in tree(place.parent).items() if not k.startswith("cache")} == before
        path.rmdir() if kind == "folder" else path.unlink()


@pytest.mark.parametrize("name", WRITERS)
def test_the_second_name_of_an_output_keeps_its_contents(name: str, emberlet: Emberlet, place: Path) -> None:
    words, made = WRITERS[name]
    out = "." if "OUT/" in made[0] else "fresh"
    paths = [place / m.replace("OUT", out) for m in made]
    assert emberlet(*words.replace("OUT", out).split()).status == 0
    others = [place.parent / "elsewhere" / f"{n}" for n in range(len(paths))]
    for path, other in zip(paths, others, strict=True):
        other.hardlink_to(path)
        path.unlink()
        other.write_bytes(other.read_bytes() + b"\n")  # which a file of ours may end in
        path.hardlink_to(other)
    kept = [other.read_bytes() for other in others]
    said = emberlet(
        *words.replace("OUT", out).split(), "--force" if name.startswith(("codegen", "quantize")) else "--overwrite"
    )
    assert said.status == 0, said.err
    assert [other.read_bytes() for other in others] == kept


@pytest.mark.parametrize("out", ["..", "../place", "here", "here/.", "here/../place"])
@pytest.mark.parametrize("command", ["codegen", "micro build"])
def test_an_output_may_be_any_folder_and_leaves_what_is_in_it(
    command: str, out: str, emberlet: Emberlet, place: Path
) -> None:
    (place / "here").symlink_to(place)
    before = tree(place.parent)
    said = emberlet(*command.split(), "digits.onnx", "--out", out)
    assert said.status == 0, said.err
    after = {k: v for k, v in tree(place.parent).items() if not k.startswith("cache")}
    assert {k: v for k, v in after.items() if k in before} == before
    assert (place / out / "digits.py").is_file()


# -- an output is never an input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "compile OUT.plan --out OUT.plan", "compile digits.onnx --out digits.onnx",
        "run digits.onnx --input inputs.npz --out OUT", "run digits.onnx --input image=x.npy --out x.npy",
        "convert weights.npz OUT", "graph digits.onnx --out digits.onnx", "profile digits.onnx --trace digits.onnx",
    ],
)  # fmt: skip
@pytest.mark.parametrize("spelling", ["itself", "another spelling", "a link", "a second name", "a link to its folder"])
def test_an_output_is_never_an_input(words: str, spelling: str, emberlet: Emberlet, place: Path) -> None:
    source = {
        "compile OUT": "digits.onnx",
        "convert": "weights.npz",
        "run digits.onnx --input inputs.npz": "inputs.npz",
    }
    name = next((file for start, file in source.items() if words.startswith(start)), "")
    if words.startswith("compile OUT"):  # a model under the name of a plan
        shutil.copy(place / "digits.onnx", place / "model.plan")
        name = "model.plan"
    if name:
        ending = Path(name).suffix
        other = {"itself": name, "another spelling": f"../place/./{name}", "a link": f"alias{ending}",
                 "a second name": f"alias{ending}", "a link to its folder": f"here/{name}"}[spelling]  # fmt: skip
        if spelling == "a link":
            (place / other).symlink_to(name)
        elif spelling == "a second name":
            (place / other).hardlink_to(place / name)
        (place / "here").symlink_to(place)
        words = words.replace("compile OUT.plan", f"compile {name}").replace("OUT.plan", other).replace("OUT", other)
    before = tree(place.parent)
    for more in ([], ["--overwrite"]):
        said = emberlet(*words.split(), *more)
        assert said.status == 2, said.out
        if name:
            assert "is an input" in said.err
        assert {k: v for k, v in tree(place.parent).items() if not k.startswith("cache")} == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("convert weights.npz w.pth", ".npz or .gguf"),
        ("convert weights.npz w.pt", ".bpk, .safetensors, .npz or .gguf"),
        ("convert weights.npz w.onnx --overwrite", ".bpk, .safetensors, .npz or .gguf"),
        ("convert weights.npz w.h5", ".bpk, .safetensors, .npz or .gguf"),
        ("compile digits.onnx --out d.foo", ".plan or .wasm"), ("compile digits.onnx --out d", ".plan or .wasm"),
        ("run digits.onnx --input inputs.npz --out y.npy", "expected a name that ends in .npz"),
        ("graph digits.onnx --out d.png", ".svg, .html or .txt"),
        ("profile digits.onnx --trace d.txt", "expected a name that ends in .json"),
    ],
)  # fmt: skip
def test_an_ending_is_known_or_the_known_ones_are_named(words: str, says: str, emberlet: Emberlet, place: Path) -> None:
    before = tree(place.parent)
    said = emberlet(*words.split())
    assert said.status == 2 and says in said.err
    assert {k: v for k, v in tree(place.parent).items() if not k.startswith("cache")} == before
