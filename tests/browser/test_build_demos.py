"""The models of the demos are built again where something that decides them has changed, or where one is missing."""

from __future__ import annotations

from pathlib import Path

import build_demos
import pytest

from tools import model_packages
from tools.paths import ROOT


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the builds that ran; each writes empty files."""
    ran: list[str] = []

    def stand_in(name: str) -> None:
        def build(_: Path, target: Path) -> None:
            assert not (target / build_demos.KEY).exists(), "what is being built is said to be built"
            ran.append(name)
            for file in build_demos.BUILT:
                if file.startswith((name, "words" if name == "search" else name)):
                    (target / file).touch()

        monkeypatch.setattr(build_demos, f"build_{name}", build)

    for name in ("photo", "search", "voice"):
        stand_in(name)
    monkeypatch.setattr(model_packages, "fetch_missing", lambda _: None)
    return ran


def test_nothing_is_built_twice_unless_a_file_is_missing(tmp_path: Path, built: list[str]) -> None:
    assert build_demos.build_demos(tmp_path) == build_demos.build_demos(tmp_path) == ""
    assert built == ["photo", "search", "voice"]
    for name in build_demos.BUILT:
        (tmp_path / name).unlink()
        assert build_demos.build_demos(tmp_path) == ""
        assert (tmp_path / name).exists()
    assert len(built) == 3 * (1 + len(build_demos.BUILT))


def test_an_interrupted_build_is_not_taken_for_a_whole_one(
    tmp_path: Path, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build_demos.build_demos(tmp_path)
    before = build_demos._key

    def interrupted(_: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(build_demos, "_key", lambda packages: "other")
        changed.setattr(build_demos, "build_search", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_demos.build_demos(tmp_path)
    assert build_demos._key is before
    build_demos.build_demos(tmp_path)
    assert built == ["photo", "search", "voice", "photo", "photo", "search", "voice"]


@pytest.mark.parametrize("name", ["wgpu_backend/render/shaders/matmul.wgsl", "codegen/reader/schemas.json",
                                  "core/tensor.py", "examples/demos/efficientnet.py"])  # fmt: skip
def test_every_kind_of_source_decides_the_models(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, read = build_demos._key(""), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b" " * (path == ROOT / name))
    assert build_demos._key("") != before
