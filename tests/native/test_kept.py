"""Machine code is kept in a folder of the user's own, and used again by a process that compiles nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import BackendError
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.llvm import engine, kept, processor
from emberlet.wgpu_backend.llvm.linking import linked
from emberlet.wgpu_backend.wasm.kernels.table import Options
from support.processes import python

pytestmark = pytest.mark.skipif(not processor.kept_name("code", b""), reason="code is kept on Linux on x86-64")
X = np.random.default_rng(0).standard_normal((20, 40)).astype(np.float32)
SCRIPT = """
import sys
import numpy as np
from emberlet import nn
from emberlet import functional as F
print(np.asarray(nn.Softmax().compile(backend="native")(np.arange(40, dtype=np.float32).reshape(2, 20)))[1, 19])
print("llvmlite" in sys.modules)
"""


def softmax(x: Any) -> Any:
    return F.softmax(x * 2.0, axis=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for code, in a cache of its own."""
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path))
    return tmp_path / kept.FOLDER


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that are compiled from now on."""
    made: list[Any] = []
    before = engine._made
    monkeypatch.setattr(engine, "_made", lambda key: (made.append(key), before(key))[1])
    return made


def run(compilations: list[Any]) -> int:
    """Compute as a new process would, and count what was compiled."""
    engine._known.clear()
    compilations.clear()
    np.testing.assert_allclose(compile(softmax, backend="native")(X).sum(axis=1).tolist(), np.ones(20), rtol=1e-6)
    return len([key for key in compilations if not key[2]])


def test_a_second_process_does_not_load_llvm(folder: Path) -> None:
    said = []
    for _ in range(2):
        done = python("-c", SCRIPT, check=True)
        said.append(done.stdout.split())
    assert said[0][0] == said[1][0] and abs(float(said[0][0]) - 0.63212056) < 1e-6
    assert (said[0][1], said[1][1]) == ("True", "False")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_code_is_used_again(folder: Path, compilations: list[Any]) -> None:
    assert run(compilations) >= 2
    assert run(compilations) == 0


class Deep(nn.Module):
    """Layers of enough widths for their kernels to be kept."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(16 + n, 17 + n, backend="numpy") for n in range(10)]

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = F.relu(layer(x))
        return x


def test_kernels_are_written_once_and_damaged_files_written_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Deep(), np.ones((3, 16), np.float32)
    written: list[str] = []
    build = Options.build
    monkeypatch.setattr(Options, "build", lambda *given: (written.append(given[2]), build(*given))[1])

    def result() -> tuple[Any, int]:
        written.clear()
        engine._known.clear()
        return model.compile(backend="native")(x).tolist(), len(written)

    want, many = result()
    assert many >= 10
    assert result() == (want, 0)
    (file,) = folder.glob("kernels-*")
    whole = file.read_bytes()
    for damaged in (whole[:-1], b"", whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:]):
        file.write_bytes(damaged)
        assert result() == (want, many)
        assert file.read_bytes() == whole


def test_code_for_another_processor_is_not_used(folder: Path, compilations: list[Any]) -> None:
    run(compilations)
    engine.set_processor("x86-64-v2")
    try:
        assert run(compilations) >= 2
        assert run(compilations) == 0
    finally:
        engine.set_processor(None)


def test_a_folder_that_others_may_change_is_left_alone(folder: Path, compilations: list[Any]) -> None:
    run(compilations)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    folder.chmod(0o770)
    assert run(compilations) >= 2
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_link_in_place_of_the_folder_is_not_followed(folder: Path, compilations: list[Any]) -> None:
    run(compilations)
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")
    assert run(compilations) >= 2


def test_files_that_others_may_change_or_that_are_damaged_are_ignored(folder: Path, compilations: list[Any]) -> None:
    run(compilations)
    (file,) = folder.glob("code-*")
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:40], b"", whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:]):
        file.write_bytes(damaged)
        assert run(compilations) >= 2
        assert file.read_bytes() == whole
    file.chmod(0o660)
    assert run(compilations) >= 2
    assert file.stat().st_mode & 0o777 == 0o600
    assert run(compilations) == 0


def test_nothing_is_kept_where_that_is_switched_off(compilations: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_CACHE", "off")
    assert run(compilations) >= 2
    assert run(compilations) >= 2


def test_the_least_recently_used_files_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LIMIT", 1000)
    for n in range(6):
        kept.write(f"code-{n}", bytes(200))
        os.utime(folder / f"code-{n}", (n, n))
        kept.read("code-0")
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 1000 + 32
    assert kept.read("code-0") == kept.read("code-5") == bytes(200) and kept.read("code-1") is None


def test_the_files_are_few(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST", 3)
    for n in range(5):
        kept.write(f"code-{n}", bytes(20))
        os.utime(folder / f"code-{n}", (n, n))
    assert {path.name for path in folder.iterdir()} == {"code-2", "code-3", "code-4"}


def refused(*_: Any, **__: Any) -> None:
    raise PermissionError


def test_files_of_others_stay_and_do_not_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LIMIT", 1000)
    kept.write("code-0", bytes(200))
    (folder / "notes.txt").write_bytes(bytes(5000))
    (folder / "code-folder").mkdir()
    os.utime(folder / "notes.txt", (0, 0))
    os.utime(folder / "code-folder", (0, 0))
    kept.write("code-1", bytes(200))
    assert {path.name for path in folder.iterdir()} == {"notes.txt", "code-folder", "code-0", "code-1"}


def test_a_write_that_fails_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write("code-0", bytes(200))
    monkeypatch.setattr(kept.Folder, "chmod", refused)
    kept.write("code-1", bytes(200))
    monkeypatch.undo()
    assert [path.name for path in folder.iterdir()] == ["code-0"]


def test_what_is_larger_than_all_files_may_be_replaces_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LIMIT", 300)
    kept.write("code-0", bytes(200))
    kept.write("code-1", bytes(290))
    assert kept.read("code-0") == bytes(200) and kept.read("code-1") is None


def test_code_in_a_folder_that_cannot_be_written_is_used(
    folder: Path, compilations: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(compilations)
    monkeypatch.setattr(os, "utime", refused)
    assert run(compilations) == 0


def test_memory_that_the_system_refuses_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "pages", refused)
    with pytest.raises(BackendError, match="refuses memory for machine code"):
        run([])


@pytest.mark.parametrize(
    "body",
    [
        "call void @elsewhere()",
        "%a = ptrtoint ptr @where to i64\n  store i64 %a, ptr @where",
    ],
)
def test_code_that_refers_to_what_is_outside_is_not_moved(body: str) -> None:
    text = f"@where = external global i64\ndeclare void @elsewhere()\ndefine void @run() {{\n  {body}\n  ret void\n}}"
    machine = engine._machine(False, reloc="pic", codemodel="small")
    assert linked(machine.emit_object(engine._optimized(machine, text)), "run") is None
