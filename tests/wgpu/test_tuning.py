"""Tile sizes are measured on request, kept in a file, used by later plans, and forgotten when the file goes."""

from __future__ import annotations

import json

import pytest
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend, tuning
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.tiles import Tile


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
    (kept,) = json.loads(cache.read_text())["devices"].values()
    assert list(kept) == ["matmul float32 8x16 16x12"]
    assert fresh().options.tiles.keys() == kept.keys()


def test_a_kept_tile_is_the_one_that_is_built(cache, fresh, make):
    x, y = make((8, 16)), make((16, 12))
    backend = fresh()
    tuning.save(backend.device, {"matmul float32 8x16 16x12": Tile(2, 4, 1, 8)})
    compiled = compile(F.matmul, x, y, backend=fresh())
    assert "computes 2 × 4 results" in compiled.plan().kernels[0][1]


def test_clearing_forgets_and_a_damaged_file_counts_as_none(cache, fresh, make):
    backend = fresh()
    tuning.save(backend.device, {"matmul float32 8x16 16x12": Tile(2, 4, 1, 8)})
    tuning.clear()
    assert not cache.exists()
    assert tuning.load(backend.device) == {}
    for text in ("{", "[]", '{"version": 1, "devices": {}}', '{"version": 99}'):
        cache.write_text(text)
        assert tuning.load(backend.device) == {}
    wrong = {"version": tuning.VERSION, "devices": {tuning.device_name(backend.device): {"a": [1, 2], "b": "x"}}}
    cache.write_text(json.dumps(wrong))
    assert tuning.load(backend.device) == {}
