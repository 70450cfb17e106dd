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
from emberlet.wgpu_backend.kernel_cache import PREFIX, KernelFile, _make_room

ADD: Any = ("add", "source of add", [0, 1], (1, 2, 3))
MUL: Any = ("mul", "source of mul", [[(0, 1)]], (4, 1, 1))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
