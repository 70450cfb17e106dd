"""The mpremote commands that a build is deployed with, from the description that the build left."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from emberlet.errors import FormatError, UnsupportedError
from emberlet.micro.builder.deploy import commands, read_about


def built(folder: Path, weights: str = "file", boards: dict[str, str] | None = None, **more: Any) -> Path:
    boards = {"rp2": "armv6m"} if boards is None else boards
    folder.mkdir(exist_ok=True)
    targets = {arch: {"files": ["net.mpy", "net.bpk"]} for arch in [*boards.values()] or ["bytecode"]}
    about = {"name": "net", "weights": weights, "targets": targets, "boards": boards, **more}
    (folder / "build.json").write_text(json.dumps(about), encoding="utf-8")
    for arch in targets:
        (folder / arch).mkdir(exist_ok=True)
        (folder / arch / "net.bpk").write_bytes(bytes(9000))
        (folder / arch / "net.mpy").write_bytes(b"net")
    return folder


@pytest.mark.parametrize("to", ["/", "/models/"])
def test_a_file_that_is_copied_in_place_is_imported_when_all_are_whole(to: str, tmp_path: Path) -> None:
    """Until then there is none: importing half a file may hang a board. Nor is there what an interrupted deployment
    left, which an import would put in its place."""
    built(tmp_path / "dist")
    flash = tmp_path / "flash"
    folder = flash / to.strip("/")
    folder.mkdir(parents=True)
    (folder / "net.mpy").write_bytes(b"old")
    for left in (".emberlet-net", ".emberlet.new"):
        (folder / left).mkdir()
        (folder / left / "net.bpk").write_bytes(b"of another build")
    _, prepare, *copies, publish = commands(tmp_path / "dist", to=to, in_place=True)
    board(flash, prepare[-1])
    assert not list(folder.iterdir())
    (folder / "net.bpk").write_bytes(bytes(9000))
    for torn in (b"", b"ne", b"nets", b"nat"):
        (folder / ".net.mpy").write_bytes(torn)
        with pytest.raises(OSError, match="deploy again"):
            board(flash, publish[-1])
        assert not (folder / "net.mpy").exists()
    for copy in copies:
        *sources, target = copy[2:]
        for source in map(Path, sources):
            path = flash / target[1:].lstrip("/")
            shutil.copy(source, path / source.name if target.endswith("/") else path)
    board(flash, publish[-1])
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {"net.mpy": b"net", "net.bpk": bytes(9000)}


def board(folder: Path, code: str) -> None:
    """Run on this machine what a board would run, with `folder` as its root."""
    files = _BoardFiles(folder)
    exec(code.replace("import os\n", ""), {"os": files, "open": lambda path, mode: open(f"{folder}{path}", mode)})


class _BoardFiles:
    def __init__(self, root: Path) -> None:
        self.root = root

    def __getattr__(self, name: str) -> Any:
        return lambda *paths: getattr(os, name)(*(f"{self.root}{path}" for path in paths))


@pytest.mark.parametrize("to", ["/", "/models/"])
def test_the_board_renames_all_files_once_they_are_there(to: str, tmp_path: Path) -> None:
    where = built(tmp_path / "dist") / "armv6m"
    flash = tmp_path / "flash"
    draft = flash / to.strip("/") / ".emberlet.new"
    draft.mkdir(parents=True)
    (draft / "half.bpk").write_bytes(b"of a deployment that was interrupted")
    (draft.parent / "net.mpy").write_bytes(b"old")
    prepare, copy, publish = commands(tmp_path / "dist", to=to)
    board(flash, prepare[-1])
    assert not list(draft.iterdir())
    assert copy == ["fs", "cp", str(where / "net.mpy"), str(where / "net.bpk"), f":{to}.emberlet.new/"]
    shutil.copy(where / "net.mpy", draft)
    (draft / "net.bpk").write_bytes(bytes(8999))
    with pytest.raises(OSError, match=r"net\.bpk"):
        board(flash, publish[-1])
    assert (draft.parent / "net.mpy").read_bytes() == b"old"
    shutil.copy(where / "net.bpk", draft)
    board(flash, publish[-1])
    assert {p.name: p.read_bytes() for p in draft.parent.iterdir()} == {"net.mpy": b"net", "net.bpk": bytes(9000)}


@pytest.mark.parametrize("renamed", [False, True], ids=["before", "after"])
def test_a_deployment_that_was_interrupted_is_dropped_or_finished_by_the_next(renamed: bool, tmp_path: Path) -> None:
    """Before its first file was renamed, or after."""
    built(tmp_path / "dist")
    ready = tmp_path / "flash" / ".emberlet-net"
    ready.mkdir(parents=True)
    for folder, data in ((ready, b"new"), (ready.parent, b"old")):
        for name in ("net.mpy", "net.bpk"):
            (folder / name).write_bytes(data)
    if renamed:
        (ready / "net.mpy").replace(ready.parent / "net.mpy")
    board(ready.parent, commands(tmp_path / "dist")[0][-1])
    due = b"new" if renamed else b"old"
    assert {p.name: p.read_bytes() for p in ready.parent.iterdir() if p.is_file()} == dict.fromkeys(
        ("net.mpy", "net.bpk"), due
    )
    assert [p.name for p in ready.parent.iterdir() if p.is_dir()] == [".emberlet.new"]


def test_the_board_decides_which_files(tmp_path: Path) -> None:
    built(tmp_path, boards={"rp2": "armv6m", "esp32s3": "xtensawin"})
    for board in ("esp32s3", "ESP32S3", "esp32_generic_s3"):
        assert str(tmp_path / "xtensawin" / "net.mpy") in commands(tmp_path, board)[1]
    assert str(tmp_path / "armv6m" / "net.mpy") in commands(tmp_path, "pico")[1]
    with pytest.raises(UnsupportedError, match=r"rp2, esp32s3.*--board"):
        commands(tmp_path)
    with pytest.raises(UnsupportedError, match=r"rp2, esp32s3.*'esp32'"):
        commands(tmp_path, "esp32")
    built(tmp_path, boards={})
    with pytest.raises(UnsupportedError, match="built for no board, not for 'rp2'"):
        commands(tmp_path, "rp2")


def test_a_romfs_is_deployed_as_an_image_and_frozen_modules_are_not(tmp_path: Path) -> None:
    built(tmp_path, "romfs")
    assert commands(tmp_path)[1:] == [["romfs", "deploy", str(tmp_path / "armv6m" / "net.romfs")]]
    assert commands(tmp_path, port="a0")[1][:3] == ["connect", "a0", "romfs"]
    built(tmp_path, "frozen")
    with pytest.raises(UnsupportedError, match="net was built to be frozen: build the board's firmware"):
        commands(tmp_path)


@pytest.mark.parametrize("lacking", ["name", "weights", "targets", "boards"])
def test_a_description_that_lacks_something_is_refused(lacking: str, tmp_path: Path) -> None:
    about = read_about(built(tmp_path))
    del about[lacking]
    (tmp_path / "build.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(FormatError, match=r"`emberlet.*build`"):
        read_about(tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"name": 'x"); import os; os.remove("boot.py"); ("'},
        {"name": "../net"},
        {"targets": {"armv6m": {"files": ["../../secret"]}}},
        {"targets": {"../armv6m": {"files": ["net.mpy"]}}},
        {"targets": {"armv6m": {"files": "net.mpy"}}},
        {"targets": {"armv6m": ["net.mpy"]}},
        {"targets": ["armv6m"]},
        {"boards": {"rp2": "/etc"}},
        {"partition": {"chip": "rp2", "start": "print(1)", "label": "model"}},
        {"partition": {"chip": "rp2", "start": 0, "label": "model", "more": 1}},
    ],
    ids=str,
)
def test_a_description_with_code_or_paths_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    about = read_about(built(tmp_path)) | changed
    (tmp_path / "build.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(FormatError, match=r"`emberlet.*build`"):
        commands(tmp_path)
