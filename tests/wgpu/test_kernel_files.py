"""Files of kernels: when they are written and read, which are deleted, and what their names depend on."""

from __future__ import annotations

from pathlib import Path

import pytest
from emberlet import dtypes
from emberlet.wgpu_backend import kernel_cache


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
