"""A module and its burnpack are replaced together, whenever generation is killed and however many run at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import onnx
import pytest
from emberlet.codegen import generate
from emberlet.errors import EmberletError
from emberlet.host.files import atomic_write
from emberlet.host.folders import journals
from emberlet.host.folders.folder import identity
from emberlet.store import store_of
from onnx import numpy_helper
from support.onnx_models import parse


def model(value: float) -> onnx.ModelProto:
    """y = x + w, w all `value`; the module says so too, in a comment."""
    made = parse("g (float[3] x) => (float[3] y) { y = Add(x, w) }")
    made.graph.initializer.append(numpy_helper.from_array(np.float32([value, value, value + 1]), "w"))
    return made


def write(folder: Path, value: int) -> None:
    generate(model(value), folder, name="added", top_comment=f"value {value}")


def pair(folder: Path) -> tuple[int, int]:
    """(the module's value, the burnpack's value)"""
    from emberlet.burnpack import Burnpack

    held = Burnpack.from_file(folder / "added.bpk")
    (name,) = held.tensors
    weight = int(np.frombuffer(bytes(held.raw(name)), np.float32)[0])
    said = (folder / "added.py").read_text(encoding="utf-8").split("value ")[1].split()[0]
    return int(said), weight


class Killed(BaseException):
    pass


def moments(folder: Path, value: int) -> int:
    """The number of file-changing system calls of a generation."""
    return interrupted(folder, value, 1 << 30)


def interrupted(folder: Path, value: int, after: int) -> int:
    """Generate, but exit without cleanup after that many file changes; returns their number."""
    made = [0]
    real = {name: getattr(os, name) for name in ("replace", "unlink", "link", "rename", "mkdir", "rmdir", "fsync")}
    dead = [False]

    def counting(name: str):  # type: ignore[no-untyped-def]
        def run(*arguments: object, **named: object) -> object:
            made[0] += 1
            if dead[0] or made[0] > after:
                dead[0] = True
                raise Killed  # and nothing that follows changes a file either
            return real[name](*arguments, **named)

        return run

    with pytest.MonkeyPatch.context() as patch:
        for name in real:
            patch.setattr(os, name, counting(name))
        try:
            write(folder, value)
        except Killed:
            pass
    return made[0]


def test_ended_at_any_moment_both_files_are_old_or_both_are_new(tmp_path: Path) -> None:
    write(tmp_path, 1)
    count = moments(tmp_path, 1)
    assert count > 8
    seen = set()
    for after in range(count + 1):
        write(tmp_path, 1)
        interrupted(tmp_path, 2, after)
        said, held = pair(tmp_path)
        assert said == held
        seen.add(said)
    assert seen == {1, 2}
    write(tmp_path, 3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["added.bpk", "added.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed by a signal")
def test_killed_processes_leave_a_pair(tmp_path: Path) -> None:
    write(tmp_path, 0)
    code = f"""
import importlib.util, pathlib, sys
sys.path[:0] = {sys.path!r}
spec = importlib.util.spec_from_file_location("together", {__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print("ready", flush=True)
while True:
    for value in (1, 2):
        module.write(pathlib.Path({str(tmp_path)!r}), value)
"""
    for moment in range(6):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        try:
            child.wait(0.02 + 0.013 * moment)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        child.communicate()
        said, held = pair(tmp_path)
        assert said == held


def test_several_at_once_into_one_folder(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def work(value: int) -> None:
        try:
            for i in range(4):
                write(tmp_path / "deep", 10 * value + i)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    said, held = pair(tmp_path / "deep")
    assert said == held
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["added.bpk", "added.py"]


def interrupt(folder: Path) -> Path:
    """Interrupt a generation of value 2 over value 1 after its first move; returns the journal."""
    write(folder, 1)
    for after in range(moments(folder, 1) + 1):
        write(folder, 1)
        interrupted(folder, 2, after)
        if (folder / journals.JOURNALS[0]).exists() and "value 2" in (folder / "added.py").read_text(encoding="utf-8"):
            return folder / journals.JOURNALS[0]
    raise AssertionError("it was never interrupted there")


def tree(folder: Path) -> dict[str, object]:
    """Every entry of a folder: its kind, number, permissions, time and contents."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        said = path.lstat()
        held = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (said.st_mode, said.st_ino, said.st_mtime_ns, held)
    return found


def test_readers_change_nothing_and_see_the_new_files_where_they_are(tmp_path: Path) -> None:
    from emberlet.store import open as open_store

    interrupt(tmp_path)
    before = tree(tmp_path)
    assert pair(tmp_path) == (2, 2)
    assert len(open_store(tmp_path / "added.bpk")) == 1
    (tmp_path / "link.bpk").symlink_to("added.bpk")
    assert len(open_store(tmp_path / "link.bpk")) == 1
    (tmp_path / "link.bpk").unlink()
    assert tree(tmp_path) == before
    with atomic_write(tmp_path / "other"):
        pass  # any writer finishes it first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["added.bpk", "added.py", "other"]
    assert pair(tmp_path) == (2, 2)


JUNK = ["", "{", "[]", '{"moves": 3}', '{"scratch": "..", "moves": [["a", "../added.py"]], "gone": []}',
        '{"scratch": ".emberlet-draft-x", "moves": [], "gone": ["../precious"]}', "[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("text", JUNK, ids=range(len(JUNK)))
def test_a_journal_of_others_does_nothing_and_stays(text: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept", encoding="utf-8")
    folder = tmp_path / "out"
    write(folder, 1)
    (folder / journals.JOURNALS[0]).write_text(text, encoding="utf-8")
    assert pair(folder) == (1, 1)
    write(folder, 2)
    assert pair(folder) == (2, 2)
    assert (folder / journals.JOURNALS[0]).read_text(encoding="utf-8") == text
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "kept"


def forged(folder: Path, how: str) -> None:
    """Change what an interrupted generation left so that it is no longer this user's."""
    import json
    import shutil

    journal = folder / journals.JOURNALS[0]
    (draft,) = folder.glob(journals.DRAFT + "*")
    if how == "copied":  # as an archive would bring it
        shutil.copytree(draft, folder / "copy")
        shutil.rmtree(draft)
        (folder / "copy").rename(draft)
    elif how == "linked":
        draft.rename(folder.parent / "elsewhere")
        draft.symlink_to(folder.parent / "elsewhere")
    elif how == "given away":
        os.chown(journal, 12345, 12345)
    elif how == "of a pipe":
        journal.unlink()
        os.mkfifo(journal)
    else:
        said = json.loads(journal.read_text(encoding="utf-8"))
        said["gone"] = [["../precious", identity((folder.parent / "precious").stat())]]
        journal.write_text(json.dumps(said), encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("how", ["copied", "linked", "given away", "of a pipe", "leading elsewhere"])
def test_an_interrupted_write_that_is_not_ours_is_neither_read_nor_finished(how: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept", encoding="utf-8")
    folder = tmp_path / "out"
    interrupt(folder)
    forged(folder, how)
    before, old = tree(tmp_path), (folder / "added.bpk").read_bytes()
    assert journals.current(folder / "added.bpk") == str(folder / "added.bpk")
    with atomic_write(folder / "other"):
        pass
    assert (folder / "added.bpk").read_bytes() == old
    (folder / "other").unlink()
    after = tree(tmp_path)
    assert {name: said[3] for name, said in after.items()} == {name: said[3] for name, said in before.items()}  # type: ignore[index]


def test_a_second_name_of_a_journal_does_nothing(tmp_path: Path) -> None:
    """In another folder, and in the same; nor does a file of the user's own under the name of a journal."""
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    journal = interrupt(folder)
    elsewhere.mkdir()
    for name in ("added.py", "added.bpk", "precious"):
        (elsewhere / name).write_text(name, encoding="utf-8")
    (elsewhere / journals.JOURNALS[0]).hardlink_to(journal)
    (elsewhere / journals.JOURNALS[1]).hardlink_to(elsewhere / "precious")
    (folder / journals.JOURNALS[1]).hardlink_to(journal)
    before = tree(elsewhere)
    assert journals.current(elsewhere / "added.bpk") == str(elsewhere / "added.bpk")
    with atomic_write(elsewhere / "other"):
        pass
    (elsewhere / "other").unlink()
    assert tree(elsewhere) == before
    assert pair(folder) == (2, 2)
    with atomic_write(folder / "other"):
        pass
    assert pair(folder) == (2, 2)
    left = {journals.JOURNALS[1], "added.bpk", "added.py", "other"}
    assert {p.name for p in folder.iterdir()} == left
    assert tree(elsewhere) == before


@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_link_or_a_pipe_in_the_place_of_a_file_is_not_replaced(kind: str, tmp_path: Path) -> None:
    write(tmp_path, 1)
    (tmp_path / "added.bpk").rename(tmp_path / "moved.bpk")
    if kind == "link":
        (tmp_path / "added.bpk").symlink_to("moved.bpk")
    else:
        os.mkfifo(tmp_path / "added.bpk")
    before = tree(tmp_path)
    with pytest.raises((OSError, EmberletError), match="link, a pipe or a device"):
        generate(model(2), tmp_path, name="added", force=True)
    assert tree(tmp_path) == before


def test_a_move_that_fails_puts_the_old_files_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 1)
    real, failing = os.replace, [True]

    def replace(source: str, target: str, **named: int) -> None:
        if failing[0] and str(target).endswith("added.bpk"):
            failing[0] = False
            raise OSError(5, "Input/output error", target)
        real(source, target, **named)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises((OSError, EmberletError), match="Input/output error"):
        write(tmp_path, 2)
    assert pair(tmp_path) == (1, 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["added.bpk", "added.py"]


def test_old_files_that_cannot_be_put_back_now_are_put_back_by_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1)
    with monkeypatch.context() as patch:
        real = os.replace

        def replace(source: str, target: str, **named: int) -> None:
            if str(source).endswith("added.bpk") or str(source).endswith(".before"):
                raise OSError(5, "Input/output error", target)
            real(source, target, **named)

        patch.setattr(os, "replace", replace)
        with pytest.raises((OSError, EmberletError), match="Input/output error"):
            write(tmp_path, 2)
    with pytest.raises(EmberletError, match="run the command that writes it again"):
        pair(tmp_path)
    with atomic_write(tmp_path / "other"):
        pass
    assert pair(tmp_path) == (1, 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["added.bpk", "added.py", "other"]


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet import nn

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*added\.(py|bpk)"):
        write(tmp_path, 1)
    with pytest.raises(OSError, match=r"No space left.*layer\.bpk"):
        nn.Linear(2, 2, backend="python").save_file(tmp_path / "layer")
    two = store_of({"w": [1.0] * 8, "b": [1.0] * 8})
    with pytest.raises(OSError, match=r"No space left.*parts-00001-of-00002\.safetensors"):
        two.save(tmp_path / "parts.safetensors", shard=40)
    assert not list(tmp_path.iterdir())


def test_the_name_of_a_folder_is_refused_in_words(tmp_path: Path) -> None:
    from emberlet import nn

    (tmp_path / "weights").mkdir()
    layer = nn.Linear(2, 2, backend="python")
    for name in (tmp_path / "weights", f"{tmp_path}/", f"{tmp_path}/other/"):
        with pytest.raises((OSError, EmberletError), match="is a folder; give the name of a file in it"):
            layer.save_file(name)
    assert [p.name for p in tmp_path.iterdir()] == ["weights"]


@pytest.mark.skipif(os.name != "posix", reason="folders are synced on POSIX systems only")
def test_the_folder_of_a_new_file_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_write(tmp_path / "file") as file:
        file.write(b"content")
    assert tmp_path.stat().st_ino in synced


def test_a_module_fcntl_without_locks_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JupyterLite puts an empty one where Pyodide has none."""
    monkeypatch.setitem(sys.modules, "fcntl", types.ModuleType("fcntl"))
    write(tmp_path, 3)
    assert pair(tmp_path) == (3, 3)
    with atomic_write(tmp_path / "other") as file:
        file.write(b"there")
    assert (tmp_path / "other").read_bytes() == b"there"
