"""Files of kernels: when they are written and read, which are deleted, and what their names depend on."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet import dtypes
from emberlet.wgpu_backend import kernel_cache
from emberlet.wgpu_backend.kernel_cache import PREFIX, KernelFile, _make_room, _read

ADD: Any = ("add", "source of add", [0, 1], (1, 2, 3))
MUL: Any = ("mul", "source of mul", [[(0, 1)]], (4, 1, 1))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def packed(content: Any) -> bytes:
    text = json.dumps(content).encode()
    return zlib.crc32(text).to_bytes(4, "little") + zlib.compress(text, 1)


def test_a_file_is_written_once_all_kernels_are_there(cache: Path) -> None:
    file = KernelFile(["a", "b", "c"])
    assert file.kernels == {}
    file.kernels["a"] = ADD
    file.save()
    assert not cache.exists()
    file.kernels["b"], file.kernels["c"] = MUL, ("plus", *ADD[1:])
    file.save()
    (path,) = cache.iterdir()
    assert path == file.path and path.name.startswith(PREFIX)
    sources, kernels = json.loads(zlib.decompress(path.read_bytes()[4:]))
    assert sources == ["source of add", "source of mul"] and [kernel[1] for kernel in kernels] == [0, 1, 0]
    path.unlink()
    file.save()
    assert not path.exists()  # it was written already


def test_what_was_written_is_read_and_used_last(cache: Path) -> None:
    first = KernelFile(["a", "b"])
    first.kernels |= {"a": ADD, "b": MUL}
    first.save()
    assert first.path is not None
    os.utime(first.path, (1, 1))
    second = KernelFile(["a", "b"])
    assert second.kernels == {"a": ADD, "b": ("mul", "source of mul", [[[0, 1]]], (4, 1, 1))}
    assert first.path.stat().st_mtime > 1
    first.path.write_bytes(b"")
    second.save()
    assert first.path.read_bytes() == b""  # it had been read, so it is not new
    assert KernelFile(["b", "a"]).path != first.path and KernelFile(["a"]).path != first.path


@pytest.mark.parametrize(
    "content",
    [
        [["s"], [["add", 0, [], [1, 1, 1]]]],
        [["s"], [["add", 0, [], [1, 1, 1]]] * 3],
        [["s"], [["add", 1, [], [1, 1, 1]]] * 2],
        [["s"], [["add", 0, [], 1]] * 2],
        [["s"], [["add", 0, []]] * 2],
        [["s"], 2], [["s"]], 3, {"a": 1}, None,
    ],
    ids=str,
)  # fmt: skip
def test_a_file_of_another_content_counts_as_missing(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "file"
    path.write_bytes(packed(content))
    assert _read(path, ["a", "b"]) is None


def test_a_damaged_file_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    whole = packed([["s"], [["add", 0, [], [1, 1, 1]]] * 2])
    wanted = {key: ("add", "s", [], (1, 1, 1)) for key in "ab"}
    for data, found in [
        (whole, wanted), (b"", None), (whole[:3], None), (whole[:4], None), (whole[:-1], None),
        (b"\0\0\0\0" + whole[4:], None), (whole[:4] + b"y" + whole[5:], None), (whole + b"more", wanted),
    ]:  # fmt: skip
        path.write_bytes(data)
        assert _read(path, ["a", "b"]) == found
    path.write_bytes(whole)
    size = len(zlib.decompress(whole[4:]))
    monkeypatch.setattr(kernel_cache, "_MOST", size - 1)
    assert _read(path, ["a", "b"]) is None
    monkeypatch.setattr(kernel_cache, "_MOST", size + 1)
    assert _read(path, ["a", "b"]) == wanted
    assert _read(tmp_path / "missing", []) is None


def test_the_files_used_longest_ago_are_deleted(tmp_path: Path) -> None:
    for number, (size, used) in enumerate([(10, 30), (20, 10), (30, 20), (40, 40)]):
        path = tmp_path / f"{PREFIX}{number:024x}"
        path.write_bytes(bytes(size))
        os.utime(path, (used, used))
    (tmp_path / "other").write_bytes(bytes(1000))

    def left() -> list[str]:
        return sorted(path.name[-1] for path in tmp_path.glob(PREFIX + "*"))

    for limit, wanted in [(100, "0123"), (99, "023"), (80, "023"), (50, "03"), (49, "3"), (40, "3"), (0, ""), (0, "")]:
        _make_room(tmp_path, limit)
        assert left() == list(wanted)
    assert (tmp_path / "other").exists()


def test_room_is_made_for_the_file_that_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (kernel_cache.LIMIT, kernel_cache._MOST) == (32 << 20, 64 << 20)
    monkeypatch.setattr(kernel_cache, "LIMIT", 100)
    old, new = (tmp_path / f"{PREFIX}{number:024x}" for number in range(2))
    for size, kept in [(60, True), (61, False)]:
        old.write_bytes(bytes(40))
        kernel_cache._write(new, bytes(size))
        assert old.exists() == kept
        new.unlink()


def test_the_name_depends_on_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "_code", [])
    path = KernelFile(["a"]).path
    assert kernel_cache._code == [kernel_cache.digest_of_code()] and len(kernel_cache._code[0]) == 32
    monkeypatch.setattr(kernel_cache, "_code", [b"other"])
    assert KernelFile(["a"]).path not in (path, None)
    monkeypatch.setattr(kernel_cache, "_code", [b""])
    nothing = KernelFile(["a"])
    assert nothing.path is None and nothing.kernels == {}
    nothing.kernels["a"] = ADD
    nothing.save()


def test_the_digest_is_of_every_file_that_plans_and_writes_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = list(kernel_cache._files(()))
    names = {str(Path(*path.parts[-2:])) for path in files}
    assert {"kernels/tile.py", "shaders/math.wgsl", "plan/make.py", "fuse/fusion.py", "lower/index.py"} <= names
    assert all(path.suffix in (".py", ".wgsl") for path in files)
    assert len(files) == len(set(files)) > 40
    copies = [tmp_path / f"{n}.py" for n in range(2)]
    monkeypatch.setattr(kernel_cache, "_files", lambda more: iter(copies))
    digests = set()
    for texts in [("a", "b"), ("b", "a"), ("a", "c"), ("ab", "")]:
        for copy, text in zip(copies, texts, strict=True):
            copy.write_text(text, encoding="utf-8")
        digests.add(kernel_cache.digest_of_code())
    assert len(digests) == 4
    copies.append(tmp_path / "missing.py")
    assert kernel_cache.digest_of_code() == b""


def test_code_in_an_archive_has_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtypes, "__file__", None)
    assert kernel_cache.digest_of_code() == b""


def test_a_file_that_another_process_deletes_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = SimpleNamespace(glob=lambda _: [tmp_path / "missing"])
    _make_room(gone, 0)  # type: ignore[arg-type]
