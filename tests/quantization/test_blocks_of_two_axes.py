"""Blocks of m weights of each of n channels that share a scale, and a zero point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import nn
from emberlet.errors import LoadError
from emberlet.functional.quantized.weights import WeightScheme, fake_quantize, rows_in
from numpy.typing import NDArray

RNG = np.random.default_rng(0)


def layer(inputs: int, outputs: int, **scheme: Any) -> tuple[Any, NDArray[np.float32]]:
    """A quantized layer on NumPy, and its weight (channels, weights of each)."""
    made = nn.Linear(inputs, outputs, backend="numpy")
    w = RNG.normal(size=(outputs, inputs)).astype(np.float32) * RNG.uniform(0.1, 3, (outputs, 1)).astype(np.float32)
    made.weight.set(emberlet.asarray(np.ascontiguousarray(w.T), backend="numpy"))
    made.quantize_weights(**scheme)
    return made, w


def rounded(w: NDArray[np.float32], n: int, m: int, bits: int, affine: bool) -> NDArray[np.float32]:
    """Each block by itself, quantized and dequantized."""
    out = np.empty_like(w)
    for i in range(0, w.shape[0], n):
        for k in range(0, w.shape[1], m):
            block = w[i : i + n, k : k + m]
            low, high = min(float(block.min()), 0.0), max(float(block.max()), 0.0)
            if affine:
                scale = np.float32(np.float32(high - low) / (2**bits - 1))
                zero = np.rint(-np.float32(low) / scale)
                levels = np.clip(np.rint(block / scale) + zero, 0, 2**bits - 1)
                out[i : i + n, k : k + m] = (levels - zero) * scale
            else:
                scale = np.abs(block).max() / np.float32(2 ** (bits - 1) - 1)
                out[i : i + n, k : k + m] = np.rint(block / scale) * scale
    return out


@pytest.mark.parametrize("mode", ["symmetric", "affine"])
@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("level", [(4, 16), (16, 8), (3, 32), (8, 8), (1, 16), (60, 8)])
@pytest.mark.parametrize("shape", [(32, 24), (40, 10), (8, 100), (64, 1)])
def test_a_block_shares_its_range(shape: tuple[int, int], level: tuple[int, int], bits: int, mode: str) -> None:
    made, w = layer(*shape, bits=bits, level=level, mode=mode)
    real = rounded(w, *level, bits, mode == "affine")
    np.testing.assert_allclose(np.asarray(made.weight.val()).T, real, rtol=1e-5, atol=1e-6)
    x = RNG.normal(size=(3, shape[0])).astype(np.float32)
    wanted = x @ real.T + np.asarray(made.bias.val())
    found = np.asarray(made(emberlet.asarray(x, backend="numpy")))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    np.testing.assert_allclose(
        np.asarray(fake_quantize(emberlet.asarray(w), made.weight.scheme, 0)), real, rtol=1e-5, atol=1e-6
    )
    table = nn.Embedding(shape[1], shape[0])
    table.weight.set(emberlet.asarray(w))
    table.quantize_weights(bits, mode, level)
    ids = [0, shape[1] - 1, -1]
    np.testing.assert_allclose(np.asarray(table(emberlet.asarray(ids))), real[ids], rtol=1e-5, atol=1e-6)


def test_scales_are_stored_once_a_block() -> None:
    assert layer(32, 24, level=(4, 16))[0].weight.scale.shape == (12,)
    assert layer(32, 100, level=(50, 16))[0].weight.scale.shape == (4,)
    assert layer(32, 100, level=(60, 16))[0].weight.scale.shape == (200,)  # 2 groups, as blocks of 50 have
    assert layer(8, 24, level=(4, 16))[0].weight.scale.shape == (24,)  # a channel has fewer weights


def test_shapes_tell_how_many_channels_share_a_scale() -> None:
    for channels in range(1, 70):
        for block in (4, 8, 16, 64):
            for n in range(1, 80):
                shared = WeightScheme(8, level=(n, block)).rows_of(1024, channels)
                groups = -(-channels // shared)
                assert shared in (1, n) and -(-channels // rows_in(channels, block, groups)) == groups
                if groups > 1:
                    assert rows_in(channels, block, groups) == shared


@pytest.mark.parametrize("end", ["bpk", "safetensors", "npz"])
@pytest.mark.parametrize("scheme", [
    {"level": (4, 16)}, {"bits": 4, "level": (16, 8), "mode": "affine"}, {"level": (60, 8)}, {"level": (50, 16)},
    {"level": (4, 32), "value_dtype": "float8_e4m3fn", "scale_dtype": "float8_e8m0fnu"},
    {"bits": 4, "level": (4, 16), "value_dtype": "nf4"},
])  # fmt: skip
def test_files_hold_them_for_packed_and_float_layers(scheme: dict[str, Any], end: str, tmp_path: Path) -> None:
    made, _ = layer(32, 100, **scheme)
    path = tmp_path / f"a.{end}"
    made.save_into(path)
    same, _ = layer(32, 100, **scheme)
    same.load_from(path)
    for name, param in made.named_params():
        got = np.asarray(dict(same.named_params())[name].val().astype("float32"))
        np.testing.assert_array_equal(got, np.asarray(param.val().astype("float32")))
    real = np.asarray(made.weight.val())
    plain = nn.Linear(32, 100, backend="numpy")
    plain.load_from(path)
    np.testing.assert_array_equal(np.asarray(plain.weight.val()), real)
    other, _ = layer(32, 100, level=(50, 8) if scheme["level"] != (50, 8) else (20, 16))
    other.load_from(path)
    np.testing.assert_allclose(np.asarray(other.weight.val()), real, atol=0.01 * np.abs(real).max())


def test_scales_that_fit_no_blocks_are_refused() -> None:
    made, _ = layer(32, 100, level=(50, 16))
    record = {name: p.val() for name, p in made.named_params()}
    record["weight.scale"] = emberlet.ones((5,))
    with pytest.raises(LoadError, match="packed weights"):
        nn.Linear(32, 100).load_from(record)


@pytest.mark.parametrize("backend", ["python", "wasm"])
@pytest.mark.parametrize("mode", ["symmetric", "affine"])
def test_other_backends_compute_the_same(backend: str, mode: str) -> None:
    if backend == "wasm":
        pytest.importorskip("wasmtime")
    made, _ = layer(40, 24, bits=4, level=(4, 8), mode=mode)
    x = RNG.normal(size=(2, 40)).astype(np.float32)
    wanted = np.asarray(made(emberlet.asarray(x, backend="numpy")))
    other = made.fork(backend)
    call = other if backend == "python" else other.compile(backend=backend)
    got = np.asarray(call(emberlet.asarray(x, backend=backend)))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))
