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
from emberlet.errors import EmberletError, LoadError
from emberlet.host import together
from emberlet.host.files import atomic_write
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

    held = Burnpack.from_file(folder / "added.bpk")  # first, because it completes the interrupted generation
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
        try:
            said, held = pair(tmp_path)
        except LoadError as error:
            assert "import it again" in str(error)
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
        try:
            said, held = pair(tmp_path)
        except LoadError:
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


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"moves": 3}', '{"scratch": "..", "moves": [["a", "../added.py"]], "gone": []}',
     '{"scratch": ".emberlet-draft-x", "moves": [], "gone": ["../precious"]}'],
)  # fmt: skip
def test_an_invalid_journal_does_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept", encoding="utf-8")
    folder = tmp_path / "out"
    write(folder, 1)
    (folder / together.JOURNAL).write_text(text, encoding="utf-8")
    assert pair(folder) == (1, 1)
    assert not (folder / together.JOURNAL).exists()
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "kept"


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
