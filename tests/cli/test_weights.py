"""emberlet inspect, convert and diff on weight files."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from emberlet import store
from emberlet.errors import EmberletError
from emberlet.host.cli.convert import size_of
from emberlet.host.cli.diff import compare
from emberlet.host.cli.progress import Bytes

PT = Path(__file__).parents[1] / "store" / "fixtures" / "checkpoint.pt"


def test_inspect_shows_a_pytorch_file(emberlet):
    lines = emberlet("inspect", PT).out.splitlines()
    assert lines[0].split() == ["tensor", "dtype", "shape", "bytes"]
    assert any(line.startswith("state_dict.b") and "(2, 2)" in line for line in lines)
    assert "scalar epoch: 7" in lines
    assert "extra sizes: [1, 2]" in lines
    found = json.loads(emberlet("inspect", PT, "--json", "--key", "state_dict").out)
    assert found["tensors"]["a"] == {"dtype": "float32", "shape": [2], "bytes": 8, "stored": "float32"}
    assert found["layout"] == "pytorch"


def test_inspect_shows_the_initializers_of_a_model(emberlet, digits):
    assert "conv1.weight" in emberlet("inspect", digits, "--weights").out


def test_convert_filters_renames_and_halves(emberlet, tmp_path):
    target = tmp_path / "out.safetensors"
    said = emberlet("convert", PT, target, "--key", "state_dict", "--half", "--filter", "^b$", "--rename", "^b=c.b")
    assert "1 tensors" in said.out
    opened = store.open(target)
    assert {n: s.dtype.name for n, s in opened.items()} == {"c.b": "float16"}
    assert opened.layout == "pytorch"
    refused = emberlet("convert", PT, target)
    assert refused.status == 2
    assert "--overwrite" in refused.err
    emberlet("convert", PT, target, "--key", "state_dict", "--overwrite")
    assert list(store.open(target)) == ["a", "b"]
    assert "is an input" in emberlet("convert", target, target, "--overwrite").err
    assert "REGEX=NAME" in emberlet("convert", PT, tmp_path / "x", "--rename", "a").err


def test_convert_writes_shards(emberlet, tmp_path):
    emberlet("convert", PT, tmp_path / "m.safetensors", "--key", "state_dict", "--shard", "10")
    assert len(list(tmp_path.glob("m-*.safetensors"))) == 2
    assert "2 tensors" in emberlet("inspect", tmp_path / "m.safetensors.index.json").out
    with pytest.raises(EmberletError, match="such as 500M"):
        size_of("lots")
    assert (size_of("2G"), size_of("17"), size_of(None)) == (2 * 10**9, 17, None)


def test_diff_tells_names_shapes_and_distances(emberlet, tmp_path):
    a = {"same": np.float32([1, np.nan]), "moved": np.float32([1, 2]), "shape": np.ones(2), "a": np.ones(1),
         "cast": np.float32([1, 2]), "wide": np.float32([1.5])}  # fmt: skip
    b = {"same": np.float32([1, np.nan]), "moved": np.float32([1, 2.5]), "shape": np.ones(3), "b": np.ones(1),
         "cast": np.float64([1, 4]), "wide": np.float64([1.5])}  # fmt: skip
    store.store_of(a).save(tmp_path / "a.npz")
    store.store_of(b).save(tmp_path / "b.bpk")
    ended = emberlet("diff", tmp_path / "a.npz", tmp_path / "b.bpk")
    said = ended.out
    assert ended.status == 1
    assert "only in A: a\nonly in B: b\n" in said
    assert "moved: largest difference 0.5, root mean square 0.354" in said
    assert "shape: (2,) and (3,)" in said
    assert "cast: float32 and float64; largest difference 2, root mean square 1.41" in said
    assert "1 tensors are the same, 4 differ, 1 only in A, 1 only in B" in said
    found = json.loads(emberlet("diff", tmp_path / "a.npz", tmp_path / "b.bpk", "--json").out)
    assert found["different"]["moved"]["max"] == 0.5
    assert found["different"]["wide"] == {"dtypes": ["float32", "float64"], "max": 0.0, "rms": 0.0}
    assert emberlet("diff", tmp_path / "a.npz", tmp_path / "a.npz").out.startswith("6 tensors are the same")


@pytest.mark.parametrize("kind", ["float64", "float16", "int64", "bool", "uint8"])
def test_random_differences_are_those_of_numpy(kind):
    rng = np.random.default_rng(3)
    x, y = ((rng.random((4, 5)) * 9 // (5 if kind == "bool" else 1)).astype(kind) for _ in range(2))
    gap = np.abs(x.astype(np.float64) - y.astype(np.float64))
    found = compare(store.store_of({"t": x}), store.store_of({"t": y}))["different"]["t"]
    assert found["max"] == pytest.approx(gap.max())
    assert found["rms"] == pytest.approx(np.sqrt((gap**2).mean()))
    wide = compare(store.store_of({"t": x}), store.store_of({"t": y}), atol=100.0)
    assert wide["same"] == 1


def test_infinite_and_huge_differences():
    def both(a, b):
        return compare(store.store_of({"t": np.float64([a])}), store.store_of({"t": np.float64([b])}))

    assert both(np.inf, np.inf)["same"] == both(np.nan, np.nan)["same"] == both(0.0, -0.0)["same"] == 1
    assert both(np.inf, 1)["different"]["t"]["max"] == "infinite"
    assert both(np.nan, 1)["different"]["t"]["rms"] == "infinite"
    assert both(1e300, -1e300)["different"]["t"] == {"max": 2e300, "rms": 2e300}


def test_one_large_tensor_shows_a_bar_before_its_end(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with Bytes("writing", 2_000_000) as progress:
        while "0 bytes of 2.0 MB" not in sys.stderr.getvalue():
            time.sleep(0.05)
        progress.add(1_500_000)
        while "1.5 MB of 2.0 MB" not in sys.stderr.getvalue():
            time.sleep(0.05)
    assert sys.stderr.getvalue().endswith("\r\x1b[K")  # and is deleted afterwards
