"""GGUF's quantized blocks against the reading of the gguf package: as floats, as packed weights, and copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import gguf
import numpy as np
import pytest
from emberlet import nn, store
from emberlet.errors import UnsupportedError

# kind -> the form of a layer that takes its blocks as they are
AS_THEY_ARE = {
    "Q4_0": {"bits": 4, "level": 32},
    "Q4_1": {"bits": 4, "mode": "affine", "level": 32},
    "Q5_0": {"level": 32},
    "Q5_1": {"mode": "affine", "level": 32},
    "Q8_0": {"level": 32},
    "Q2_K": {"bits": 2, "mode": "affine", "level": 16},
    "Q3_K": {"bits": 4, "level": 16},
    "Q4_K": {"bits": 4, "mode": "affine", "level": 32},
    "Q5_K": {"mode": "affine", "level": 32},
    "Q6_K": {"level": 16},
    "IQ4_NL": {"level": 32},
    "IQ4_XS": {"level": 32},
    "TQ1_0": {"bits": 2, "level": 256},
    "TQ2_0": {"bits": 4, "level": 256},
    "MXFP4": {"bits": 4, "level": 32, "value_dtype": "float4_e2m1fn", "scale_dtype": "float8_e8m0fnu"},
    "NVFP4": {"bits": 4, "level": 16, "value_dtype": "float4_e2m1fn", "scale_dtype": "float8_e4m3fn"},
}
ROWS, COLUMNS = 6, 512
# Where blocks have float16 numbers, whose random bits may be infinite.
HALVES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "Q8_0": (0,), "TQ1_0": (52,), "TQ2_0": (64,)}


def drawn(kind: str) -> tuple[Any, Any]:
    """(random blocks of a kind, the package's reading of them)."""
    each = gguf.GGMLQuantizationType[kind]
    weights, nbytes = gguf.GGML_QUANT_SIZES[each]
    rng = np.random.default_rng(each.value)
    raw = rng.integers(0, 256, (ROWS * COLUMNS // weights, nbytes), np.uint8)
    if kind == "MXFP4":
        raw[:, 0] = rng.integers(100, 140, len(raw))
    elif kind == "TQ1_0":  # bytes of five levels
        raw = gguf.quants.quantize(rng.normal(size=(len(raw), weights)).astype(np.float32), each).reshape(raw.shape)
    elif kind != "NVFP4":
        for at in HALVES.get(kind, (0, 2) if kind in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else (0,)):
            raw[:, at : at + 2] = rng.uniform(-2, 2, (len(raw), 1)).astype(np.float16).view(np.uint8)
    raw = raw.reshape(ROWS, -1)
    return raw, gguf.quants.dequantize(raw, each)


def written(path: Path, kind: str, raw: Any) -> Path:
    writer = gguf.GGUFWriter(path, "any")
    writer.add_tensor("fc.weight", raw, raw_dtype=gguf.GGMLQuantizationType[kind])
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    return path


def network() -> Any:
    net = emberlet.Module()
    net.fc = nn.Linear(COLUMNS, ROWS, bias=False)
    return net


@pytest.mark.parametrize("kind", AS_THEY_ARE)
def test_blocks_are_those_that_ggufs_own_package_reads(kind: str, tmp_path: Path) -> None:
    raw, wanted = drawn(kind)
    path = written(tmp_path / "a.gguf", kind, raw)
    opened = store.open(path)
    assert opened["fc.weight"].stored == kind
    np.testing.assert_array_equal(np.asarray(opened["fc.weight"]), wanted)
    np.testing.assert_array_equal(np.asarray(store.open(path, blocks=True)["fc.weight"]), raw)
    packed = network()
    packed.quantize_weights(**AS_THEY_ARE[kind])
    assert max(packed.load_from(path).quantized.values(), default=0.0) < 1e-6
    np.testing.assert_allclose(
        np.asarray(packed.fc.weight.val()).T, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max()
    )


@pytest.mark.parametrize("kind", [*AS_THEY_ARE, "Q8_K"])
def test_blocks_are_copied_as_they_are(kind: str, tmp_path: Path) -> None:
    """Under another name, too."""
    raw = drawn(kind)[0] if kind != "Q8_K" else np.arange(ROWS * 2 * 292, dtype=np.uint8).reshape(ROWS, -1)
    opened = store.open(written(tmp_path / "a.gguf", kind, raw))
    opened.rename([("^fc", "dense")]).save(tmp_path / "b.gguf")
    [tensor] = gguf.GGUFReader(tmp_path / "b.gguf").tensors
    assert (tensor.name, tensor.tensor_type.name) == ("dense.weight", kind)
    assert tuple(tensor.shape[::-1]) == (ROWS, COLUMNS)
    np.testing.assert_array_equal(tensor.data.reshape(-1), raw.reshape(-1))


def test_blocks_of_8_bits_with_a_float32_scale(tmp_path: Path) -> None:
    """Q8_K, which the package does not read: ggml's dequantize_row_q8_K."""
    rng = np.random.default_rng(3)
    blocks = np.zeros((ROWS * COLUMNS // 256, 292), np.uint8)
    scales, levels = rng.random(len(blocks), np.float32), rng.integers(-128, 128, (len(blocks), 256), np.int8)
    blocks[:, :4], blocks[:, 4:260] = scales[:, None].view(np.uint8), levels.view(np.uint8)
    path = written(tmp_path / "a.gguf", "Q8_K", blocks.reshape(ROWS, -1))
    wanted = (levels * scales[:, None]).reshape(ROWS, COLUMNS)
    np.testing.assert_array_equal(np.asarray(store.open(path)["fc.weight"]), wanted)
    net = network()
    net.quantize_weights(8, level=256)
    assert net.load_from(path).quantized["fc.weight"] == 0.0


def test_e2m1s_values_become_integers_without_loss(tmp_path: Path) -> None:
    for kind, level in (("MXFP4", 32), ("NVFP4", 16)):
        raw, wanted = drawn(kind)
        net = network()
        net.quantize_weights(8, level=level)
        assert net.load_from(written(tmp_path / f"{kind}.gguf", kind, raw)).quantized["fc.weight"] == 0.0
        np.testing.assert_array_equal(np.asarray(net.fc.weight.val()).T, wanted)


def test_packed_weights_of_e2m1_are_written_as_mxfp4(tmp_path: Path) -> None:
    net = network()
    net.quantize_weights(**AS_THEY_ARE["MXFP4"])
    net.save_into(tmp_path / "a.gguf")
    [tensor] = gguf.GGUFReader(tmp_path / "a.gguf").tensors
    assert tensor.tensor_type.name == "MXFP4"
    theirs = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    np.testing.assert_array_equal(theirs, np.asarray(net.fc.weight.val()).T)
    again = network()
    again.quantize_weights(**AS_THEY_ARE["MXFP4"])
    again.load_from(tmp_path / "a.gguf")
    np.testing.assert_array_equal(np.asarray(again.fc.weight.val()), np.asarray(net.fc.weight.val()))
    other = network()
    other.quantize_weights(**AS_THEY_ARE["NVFP4"])  # GGUF has no scale of the whole weight
    with pytest.raises(UnsupportedError, match="only matrices of integers, or of MXFP4"):
        other.save_into(tmp_path / "b.gguf")
