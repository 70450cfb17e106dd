"""Which tiles are measured, which is chosen and which a file may hold."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend, tuning
from emberlet.wgpu_backend.lower.tiles import Tile
from emberlet.wgpu_backend.run import measure_tiles
from support.kernel_programs.programs import weight


@pytest.mark.parametrize(
    ("platform", "variables", "wanted"),
    [
        ("linux", {}, "/home/me/.cache/emberlet/tiles.json"),
        ("linux", {"XDG_CACHE_HOME": "/var/cache"}, "/var/cache/emberlet/tiles.json"),
        ("linux", {"XDG_CACHE_HOME": "cache"}, "/home/me/.cache/emberlet/tiles.json"),
        ("freebsd", {"LOCALAPPDATA": "/x"}, "/home/me/.cache/emberlet/tiles.json"),
        ("darwin", {"XDG_CACHE_HOME": "/x"}, "/home/me/Library/Caches/emberlet/tiles.json"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/emberlet/tiles.json"),
        ("win32", {}, "/home/me/AppData/Local/emberlet/tiles.json"),
        ("linux", {"EMBERLET_CACHE": "here", "XDG_CACHE_HOME": "/x"}, "here/tiles.json"),
        ("linux", {"EMBERLET_CACHE": "off"}, None),
        ("linux", {"EMBERLET_CACHE": ""}, "/home/me/.cache/emberlet/tiles.json"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths of other systems")
def test_the_cache_is_in_the_folder_of_the_platform(
    platform: str, variables: dict[str, str], wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EMBERLET_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tuning.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert tuning.cache_path() == (None if wanted is None else Path(wanted))


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("EMBERLET_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", home)
    assert tuning.cache_path() is None
    device = SimpleNamespace(raw=SimpleNamespace(adapter_info={"vendor": "v"}))
    tuning.save(device, {"a": Tile(2, 4, 1, 8)})
    tuning.clear()
    assert tuning.load(device) == {} and capsys.readouterr().err == ""


def test_devices_are_told_apart_by_adapter_and_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path / "new"))
    info = {"vendor": "v", "device": "d", "description": None, "backend_type": "Vulkan", "other": 1}
    assert tuning.device_name(SimpleNamespace(raw=SimpleNamespace(adapter_info=info))) == "v / d /  / Vulkan"
    made = [SimpleNamespace(raw=SimpleNamespace(adapter_info=info | {"device": name})) for name in "ab"]
    tiles = [{"x": Tile(2, 4, 1, 8)}, {"x": Tile(4, 4, 1, 8), "y": Tile(0, 0, 0, 0, 2)}]
    for device, own in zip(made, tiles, strict=True):
        tuning.save(device, own)
    tuning.save(made[0], {"z": Tile(1, 1, 1, 64)})
    numbers = [{key: tile.numbers() for key, tile in tuning.load(device).items()} for device in made]
    wanted = [{key: tile.numbers() for key, tile in own.items()} for own in tiles]
    wanted[0]["z"] = Tile(1, 1, 1, 64).numbers()
    assert numbers == wanted


def test_a_file_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path / "file"))
    tuning.save(SimpleNamespace(raw=SimpleNamespace(adapter_info={})), {"a": Tile(2, 4, 1, 8)})
    assert "emberlet: tile sizes could not be saved to" in capsys.readouterr().err


class Measured:
    """A backend whose measurements are given."""

    def __init__(self) -> None:
        self.backend = WgpuBackend(planning=True)
        self.options = self.backend.options
        self.device = "device"
        self.uploaded: list[Any] = []

    def upload(self, node: Any) -> None:
        self.uploaded.append(node.shape)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    found = Measured()
    monkeypatch.setattr(found.options, "tiles", {})
    return found


def roots(function: Any, *shapes: tuple[int, ...]) -> list[Any]:
    k = WgpuBackend(planning=True)
    out = function(*[weight(F.zeros((1,), device=k), shape) for shape in shapes])
    return [t.data for t in (out if isinstance(out, tuple) else (out,))]


def test_each_product_is_measured_once_and_saved(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[Any] = []
    tried: list[Any] = []
    monkeypatch.setattr(measure_tiles, "save", lambda device, found: saved.append((device, sorted(found))))
    monkeypatch.setattr(
        measure_tiles, "_best", lambda node, what, backend: tried.append(node.shape) or Tile(2, 4, 1, 8)
    )
    graph = roots(
        lambda a, b, c: (a @ b, F.exp(a) @ b, a @ c, a[:0] @ b, a[:, :0] @ b[:0], a + 1), (4, 8), (8, 3), (8, 5)
    )
    found = measure_tiles.tune(graph, measured)
    assert sorted(tried) == [(4, 3), (4, 5)]
    keys = ["matmul float32 4x8 8x3", "matmul float32 4x8 8x5"]
    assert sorted(found) == keys and sorted(measured.options.tiles) == keys and saved == [("device", keys)]
    assert measure_tiles.tune(graph, measured) == {} and len(tried) == 2 and len(saved) == 1
