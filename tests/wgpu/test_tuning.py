"""Tile sizes are measured on request, stored in a file, used by later plans, and forgotten with the file."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend, tuning
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.lower.tiles import COLUMNS, ROWS, Tile
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path))
    return tuning.cache_path()


@pytest.fixture
def fresh(gpu, cache):
    return lambda: WgpuBackend(device=gpu.device)


def test_what_is_measured_is_kept_and_used_by_the_next_backend(cache, fresh, make):
    x, y = make((8, 16)), make((16, 12))
    compile(lambda a, b: F.relu(F.matmul(a, b)), x, y, backend=fresh(), tune=True)
    (kept,) = json.loads(cache.read_text(encoding="utf-8"))["devices"].values()
    assert list(kept) == ["matmul float32 8x16 16x12"]
    assert fresh().options.tiles.keys() == kept.keys()


def test_a_kept_tile_is_the_one_that_is_built(cache, fresh, make):
    x, y = make((8, 16)), make((16, 12))
    backend = fresh()
    tuning.save(backend.device, {"matmul float32 8x16 16x12": Tile(2, 4, 1, 8)})
    compiled = compile(F.matmul, x, y, backend=fresh())
    assert "computes 2 × 4 results" in compiled.plan().kernels[0][1]


def test_clearing_forgets_and_a_damaged_file_counts_as_missing(cache, fresh, make):
    backend = fresh()
    tuning.save(backend.device, {"matmul float32 8x16 16x12": Tile(2, 4, 1, 8)})
    tuning.clear()
    assert not cache.exists()
    assert tuning.load(backend.device) == {}
    for text in ("{", "[]", '{"version": 1, "devices": {}}', '{"version": 99}'):
        cache.write_text(text, encoding="utf-8")
        assert tuning.load(backend.device) == {}
    wrong = {"version": tuning.VERSION, "devices": {tuning.device_name(backend.device): {"a": [1, 2], "b": "x"}}}
    cache.write_text(json.dumps(wrong), encoding="utf-8")
    assert tuning.load(backend.device) == {}


DEVICE = SimpleNamespace(raw=SimpleNamespace(adapter_info={"vendor": "v", "device": "d"}))
KEPT = {"matmul float32 8x16 16x12": Tile(2, 4, 1, 8), "matmul float32 64x64 64x64": Tile(0, 0, 0, 0, 2)}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(["v / d /  / ", "a", "b"]), inner),
)


def usable(tile: Tile) -> bool:
    rows, columns, unroll, workgroup, blocks, split = tile.numbers()
    if blocks:
        return blocks in (1, 2)
    if split > 1 and (split & (split - 1) or workgroup & (workgroup - 1) or split > workgroup):
        return False
    if split > 1 and rows * columns * workgroup // 2 * 4 > 16384:
        return False
    return rows in ROWS and columns in COLUMNS and 1 <= unroll <= 4 and 1 <= workgroup <= 256


def replaced_by_the_next(cache) -> None:
    """Loading returns only tiles, whatever the file contains, and later measurements are saved."""
    assert all(usable(tile) for tile in tuning.load(DEVICE).values())
    tuning.save(DEVICE, KEPT)
    found = {key: tile.numbers() for key, tile in tuning.load(DEVICE).items()}
    assert {key: found[key] for key in KEPT} == {key: tile.numbers() for key, tile in KEPT.items()}
    assert json.loads(cache.read_text(encoding="utf-8"))["version"] == tuning.VERSION


@settings(max_examples=200)
@given(data=st.data())
def test_any_damage_to_the_file_counts_as_nothing_measured(cache, data):
    tuning.clear()
    tuning.save(DEVICE, KEPT)
    raw = bytearray(cache.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(raw)))
        end = data.draw(st.integers(at, min(len(raw), at + 12)) | st.just(len(raw)))
        raw[at:end] = data.draw(st.binary(max_size=4) | st.sampled_from([b"[", b"{", b"]", b"-1", b"9", b"null", b'"']))
    cache.write_bytes(raw)
    replaced_by_the_next(cache)


@settings(max_examples=200)
@given(devices=JSON)
def test_any_json_in_the_file_is_survived(cache, devices):
    cache.write_text(json.dumps({"version": tuning.VERSION, "devices": devices}), encoding="utf-8")
    replaced_by_the_next(cache)


def test_json_nested_deeper_than_python_goes_is_survived(cache):
    cache.write_text("[" * 100_000, encoding="utf-8")
    replaced_by_the_next(cache)
