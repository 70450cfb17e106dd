"""State dicts of bitsandbytes: the numbers are those of its published formula, computed in NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import nn, store
from emberlet.errors import FormatError
from emberlet.functional.quantized.codebooks import NF4

FP4 = (0.0, 0.005208333, 0.6666667, 1.0, 0.33333334, 0.5, 0.16666667, 0.25)
TABLES = {"nf4": np.array(NF4, np.float32), "fp4": np.array([*FP4, *(-x for x in FP4)], np.float32)}


def stored(kind: str, nested: bool, shape: tuple[int, ...], block: int) -> tuple[dict[str, Any], Any]:
    """(the tensors of a layer `fc`, the weight that they mean)."""
    rng = np.random.default_rng(len(shape) + block)
    count = int(np.prod(shape))
    blocks = -(-count // block)
    levels = rng.integers(0, 16, count, np.uint8)
    even = np.append(levels, np.zeros(count % 2, np.uint8))
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": list(shape)}
    held = {"fc.weight": (even[::2] << 4 | even[1::2])[:, None], "fc.weight.quant_map": TABLES[kind]}
    if nested:
        codes = rng.integers(0, 256, blocks, np.uint8)
        table = np.sort(rng.uniform(-1, 1, 256)).astype(np.float32)
        factors = rng.random(-(-blocks // 8), np.float32)
        held |= {"fc.weight.absmax": codes, "fc.weight.nested_absmax": factors, "fc.weight.nested_quant_map": table}
        state |= {"nested_blocksize": 8, "nested_dtype": "float32", "nested_offset": 0.0625}
        scales = table[codes] * np.repeat(factors, 8)[:blocks] + np.float32(0.0625)
    else:
        scales = rng.random(blocks, np.float32)
        held["fc.weight.absmax"] = scales
    text = json.dumps(state).encode()
    held[f"fc.weight.quant_state.bitsandbytes__{kind}"] = np.frombuffer(text, np.uint8)
    held["fc.bias"] = rng.random(shape[0], np.float32)
    return held, (TABLES[kind][levels] * np.repeat(scales, block)[:count]).reshape(shape)


def network() -> Any:
    net = emberlet.Module()
    net.fc = nn.Linear(128, 6)
    return net


@pytest.mark.parametrize("block", [64, 16, 96])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", ["nf4", "fp4"])
def test_weights_of_4_bits_are_read_in_every_form(kind: str, nested: bool, block: int, tmp_path: Path) -> None:
    """Into floats, and into packed levels: as they are if the module has the same ones. 96: blocks go on in the next
    row."""
    held, weight = stored(kind, nested, (6, 128), block)
    path = tmp_path / "m.safetensors"
    store.save(store.store_of(held), path)
    wide, same = network(), network()
    wide.load_from(path, layout="pytorch")
    np.testing.assert_allclose(np.asarray(wide.fc.weight.val()).T, weight, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(np.asarray(wide.fc.bias.val()), held["fc.bias"])
    same.quantize_weights(4, level=64 if block == 96 else block, value_dtype="nf4")
    lost = same.load_from(path, layout="pytorch").quantized
    if kind == "nf4" and block != 96:
        assert max(lost.values(), default=0.0) == 0.0
        np.testing.assert_allclose(np.asarray(same.fc.weight.val()).T, weight, rtol=1e-6, atol=1e-7)
        same.save_into(tmp_path / "again.bpk")
        again = network()
        again.load_from(tmp_path / "again.bpk")
        np.testing.assert_array_equal(np.asarray(again.fc.weight.val()), np.asarray(same.fc.weight.val()))
    else:
        assert 0.0 < lost["fc.weight"] < 0.2


@pytest.mark.parametrize("part", ["absmax", "quant_map", "nested_absmax", "nested_quant_map", "state"])
def test_parts_that_do_not_fit_are_refused(part: str, tmp_path: Path) -> None:
    held, _ = stored("nf4", True, (6, 128), 64)
    if part == "state":
        held["fc.weight.quant_state.bitsandbytes__nf4"] = np.frombuffer(b'{"shape": [6', np.uint8)
    else:
        held[f"fc.weight.{part}"] = held[f"fc.weight.{part}"][:-1]
    store.save(store.store_of(held), tmp_path / "m.safetensors")
    with pytest.raises(FormatError, match="no JSON" if part == "state" else f"{part} has"):
        store.open(tmp_path / "m.safetensors")


def test_the_layout_is_that_of_pytorch(tmp_path: Path) -> None:
    """Of a square weight too, whose shape does not tell."""
    held, weight = stored("nf4", False, (64, 64), 64)
    store.save(store.store_of(held), tmp_path / "m.safetensors")
    net = emberlet.Module()
    net.fc = nn.Linear(64, 64)
    net.load_from(tmp_path / "m.safetensors")
    np.testing.assert_allclose(np.asarray(net.fc.weight.val()).T, weight, rtol=1e-6, atol=1e-7)


def said(held: dict[str, Any], path: Path, **more: Any) -> None:
    """Writes the file with other sizes in its state."""
    name = "fc.weight.quant_state.bitsandbytes__nf4"
    state = json.loads(held[name].tobytes()) | more
    store.save(store.store_of(held | {name: np.frombuffer(json.dumps(state).encode(), np.uint8)}), path)


@pytest.mark.parametrize(
    "more",
    [{"nested_offset": 10**400}, {"nested_offset": float("nan")}, {"shape": [True, 768]}, {"blocksize": True},
     {"nested_blocksize": True}],
)  # fmt: skip
def test_numbers_that_are_no_sizes_are_refused(more: dict[str, Any], tmp_path: Path) -> None:
    said(stored("nf4", True, (6, 128), 64)[0], tmp_path / "m.safetensors", **more)
    with pytest.raises(FormatError, match=r"fc\.weight: its state has no"):
        store.open(tmp_path / "m.safetensors")


@pytest.mark.parametrize("size", [10**12, 10**30])
@pytest.mark.parametrize("part", ["blocksize", "nested_blocksize"])
def test_a_block_may_be_longer_than_the_weight(part: str, size: int, tmp_path: Path) -> None:
    nested = part == "nested_blocksize"
    held, weight = stored("nf4", nested, (3, 5), 2 if nested else 15)
    said(held, tmp_path / "m.safetensors", **{part: size})
    found = store.open(tmp_path / "m.safetensors")["fc.weight"].tensor()
    np.testing.assert_allclose(np.asarray(found), weight, rtol=1e-6, atol=1e-7)
