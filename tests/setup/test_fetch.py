"""MicroPython's packages from a mirror whose indexes do not fit together."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tools.micropython_builds import fetch

pytestmark = pytest.mark.skipif(not Path("/usr/lib/apt/apt-helper").exists(), reason="only Debian has apt-helper")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror without indexes, with one package."""
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "x_1.deb").write_bytes(b"package")
    monkeypatch.setattr(fetch, "_mirror", lambda: f"file:{tmp_path}")
    return tmp_path


def lock(digest: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "locked.txt").write_text(f"# comment\narmhf {digest} pool/x_1.deb\n", encoding="utf-8")
    monkeypatch.setattr(fetch, "LOCKED", folder / "locked.txt")


def test_packages_with_known_hashes_are_fetched_without_indexes(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock(hashlib.sha256(b"package").hexdigest(), mirror, monkeypatch)
    (file,) = fetch._download(mirror, "armhf")
    assert file.read_bytes() == b"package"


def test_a_package_with_another_hash_is_refused(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock("0" * 64, mirror, monkeypatch)
    with pytest.raises(fetch.FetchError, match=r"(?s)update.*download-file"):
        fetch._download(mirror, "armhf")


def test_the_error_of_apt_remains_where_no_package_is_known(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock("0" * 64, mirror, monkeypatch)
    with pytest.raises(fetch.FetchError, match="update"):
        fetch._download(mirror, "riscv64")


def test_nothing_can_be_fetched_where_apt_refuses_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> str:
        raise fetch.FetchError("E: Syntax error /etc/apt/apt.conf:1")

    monkeypatch.setattr(fetch, "_mirror", refused)
    monkeypatch.setattr(fetch, "KEYRING", Path(__file__))
    monkeypatch.setattr("shutil.which", lambda name: name)
    assert not fetch.possible()
