"""State dicts in floats of 8 bits with scales beside them: values are those of ml_dtypes, files those that the
safetensors package writes, weights those of the published formulas, computed in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import ml_dtypes
import numpy as np
import pytest
from emberlet import nn, store
from emberlet.errors import FormatError
from safetensors.numpy import save_file

E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)


def by_blocks(values: Any, scales: Any, size: int) -> Any:
    """DeepSeek-V3's weight_dequant: each block of size x size weights times its scale."""
    found = values.astype(np.float32)
    for i in range(scales.shape[0]):
        for j in range(scales.shape[1]):
            found[i * size : (i + 1) * size, j * size : (j + 1) * size] *= scales[i, j]
    return found


def drawn(shape: tuple[int, ...], grid: tuple[int, ...], dtype: Any = E4M3) -> tuple[Any, Any]:
    """(values, scales) that no rounding of a weight gives: the largest value of a block is not the dtype's."""
    rng = np.random.default_rng(sum(shape))
    return rng.normal(0, 20, shape).astype(dtype), rng.uniform(0.001, 0.02, grid).astype(np.float32)


def written(path: Path, values: Any, scales: Any, end: str = "weight_scale_inv", **more: Any) -> Path:
    save_file({"fc.weight": values, f"fc.{end}": scales, **more}, path, {"format": "pt"})
    return path


def network(shape: tuple[int, int]) -> Any:
    net = emberlet.Module()
    net.fc = nn.Linear(shape[1], shape[0], bias=False)
    return net


def weight(net: Any) -> Any:
    return np.asarray(net.fc.weight.val()).T


@pytest.mark.parametrize(
    ("shape", "size"),
    [((256, 384), 128), ((200, 300), 128), ((64, 256), 128), ((256, 100), 128), ((256, 384), 64), ((64, 256), 64)],
)
def test_blocks_are_read_in_every_form(shape: tuple[int, int], size: int, tmp_path: Path) -> None:
    """Into floats, and into values and scales: without loss if the module has the same ones."""
    values, scales = drawn(shape, (-(-shape[0] // size), -(-shape[1] // size)))
    path = written(tmp_path / "m.safetensors", values, scales)
    wanted = by_blocks(values, scales, size)
    wide, same, other = network(shape), network(shape), network(shape)
    assert wide.load_from(path).unused == []
    np.testing.assert_array_equal(weight(wide), wanted)
    np.testing.assert_array_equal(np.asarray(store.open(path)["fc.weight"]), wanted)
    same.quantize_weights(8, level=(size, size), value_dtype="float8_e4m3fn")
    lost = same.load_from(path).quantized
    assert max(lost.values(), default=0.0) == 0.0
    np.testing.assert_array_equal(weight(same), wanted)
    same.save_into(tmp_path / "again.bpk")
    again = network(shape)
    again.load_from(tmp_path / "again.bpk")
    np.testing.assert_array_equal(weight(again), wanted)
    other.quantize_weights(8)
    assert 0.0 < other.load_from(path).quantized["fc.weight"] < 0.03


@pytest.mark.parametrize("end", ["weight_scale", "scale_weight", "weight_scale_inv"])
@pytest.mark.parametrize("grid", [(), (1,), (1, 1), (96,), (96, 1)])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_one_scale_or_one_for_each_row(dtype: str, grid: tuple[int, ...], end: str, tmp_path: Path) -> None:
    values, scales = drawn((96, 160), grid, getattr(ml_dtypes, dtype))
    path = written(tmp_path / "m.safetensors", values, scales, end, **{"fc.input_scale": np.float32(2.0)[None]})
    wanted = values.astype(np.float32) * scales.reshape((-1, 1))
    wide, same = network((96, 160)), network((96, 160))
    assert wide.load_from(path).unused == ["fc.input_scale"]
    np.testing.assert_array_equal(weight(wide), wanted)
    same.quantize_weights(8, value_dtype=dtype)
    assert max(same.load_from(path).quantized.values(), default=0.0) == 0.0
    np.testing.assert_array_equal(weight(same), wanted)


def test_powers_of_two_in_bytes(tmp_path: Path) -> None:
    """MXFP8: a scale for 32 weights of a row."""
    values, _ = drawn((96, 160), ())
    scales = np.random.default_rng(1).integers(110, 125, (96, 5), np.uint8)
    path = written(tmp_path / "m.safetensors", values, scales, "weight_scale")
    wanted = values.astype(np.float32) * np.repeat(scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float32), 32, 1)
    wide, same = network((96, 160)), network((96, 160))
    wide.load_from(path)
    np.testing.assert_array_equal(weight(wide), wanted)
    same.quantize_weights(8, level=32, value_dtype="float8_e4m3fn", scale_dtype="float8_e8m0fnu")
    assert max(same.load_from(path).quantized.values(), default=0.0) == 0.0
    np.testing.assert_array_equal(weight(same), wanted)


def test_matrices_of_several_experts_and_other_names(tmp_path: Path) -> None:
    """A parameter of three axes, and one that no layer of the module holds; a scale without a weight stays."""
    values, scales = drawn((2, 128, 256), (2, 1, 2))
    path = tmp_path / "m.safetensors"
    save_file({"up": values, "up_scale_inv": scales, "k_scale": np.ones(1, np.float32), "raw": values[0]}, path)
    opened = store.open(path)
    assert list(opened) == ["k_scale", "raw", "up"]
    wanted = np.stack([by_blocks(v, s, 128) for v, s in zip(values, scales, strict=True)])
    np.testing.assert_array_equal(np.asarray(opened["up"]), wanted)
    np.testing.assert_array_equal(np.asarray(opened["raw"].tensor()), values[0])


def test_renamed_weights_keep_their_values(tmp_path: Path) -> None:
    values, scales = drawn((128, 128), (1, 1))
    path = written(tmp_path / "m.safetensors", values, scales)
    made = nn.Linear(128, 128, bias=False)
    made.quantize_weights(8, level=(128, 128), value_dtype="float8_e4m3fn")
    lost = made.load_from(path, rename=[("^fc.", "")]).quantized
    assert max(lost.values(), default=0.0) == 0.0
    np.testing.assert_array_equal(np.asarray(made.weight.val()).T, by_blocks(values, scales, 128))


@pytest.mark.parametrize("grid", [(3,), (2, 3), (5, 2), (2, 2, 1)])
def test_scales_that_do_not_fit_are_refused(grid: tuple[int, ...], tmp_path: Path) -> None:
    values, scales = drawn((256, 256), grid)
    with pytest.raises(FormatError, match=r"fc\.weight_scale_inv is float32 .* does not scale the weight fc\.weight"):
        store.open(written(tmp_path / "m.safetensors", values, scales))


def test_two_scales_of_a_weight_are_refused(tmp_path: Path) -> None:
    values, scales = drawn((128, 128), (1, 1))
    with pytest.raises(FormatError, match=r"fc\.weight has two scales"):
        store.open(written(tmp_path / "m.safetensors", values, scales, **{"fc.weight_scale": scales}))
