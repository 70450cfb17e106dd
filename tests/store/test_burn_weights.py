"""Packed weights of modules as Burn's quantized tensors, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet import asarray, nn, store
from emberlet.burnpack import Burnpack
from emberlet.module import Module

SCHEMES = [
    {"bits": 8}, {"bits": 4, "level": 32}, {"bits": 2, "level": 16}, {"bits": 8, "level": "tensor"},
    {"bits": 4, "level": (4, 32)}, {"bits": 8, "scale_dtype": "float16"},
    {"bits": 4, "scale_dtype": "bfloat16", "level": 8},
    {"bits": 8, "scale_dtype": "float8_e8m0fnu", "level": 32},
]  # fmt: skip


class Net(Module):
    """Layers of each kind, one with more weights an output than Burn's blocks have along an axis."""

    def __init__(self) -> None:
        self.wide = nn.Linear(600, 24)
        self.norm = nn.LayerNorm(24)
        self.narrow = nn.Linear(24, 5, bias=False)
        self.table = nn.Embedding(40, 64)
        self.conv = nn.Conv2d(4, 6, 3)
        self.lstm = nn.Lstm(8, 4)


def made() -> Any:
    net = Net()
    draw = np.random.default_rng(2)
    for param in net.params():
        param.set(asarray(draw.normal(size=param.shape).astype(np.float32)))
    return net


def weights(net: Any) -> dict[str, Any]:
    return {name: np.asarray(getattr(net, name).weight.val()) for name in ("wide", "narrow", "table", "conv")}


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_a_file_for_burn_loads_into_packed_and_float_layers(scheme: dict[str, Any], tmp_path: Path) -> None:
    """The reader of Burn's tensors is held to files of Burn's in test_quantized.py and test_burn_files.py."""
    net = made()
    net.quantize_weights(**scheme)
    exact = weights(net)
    net.save_into(tmp_path / "net.bpk", names="burn")
    pack = Burnpack.from_file(tmp_path / "net.bpk")
    assert {n for n in pack.tensors if ".values" in n or ".scale" in n} == set()
    quantized = {name for name, entry in pack.tensors.items() if entry.is_quantized}
    assert {"wide.weight", "narrow.weight", "table.weight"} <= quantized
    assert "norm.gamma" in pack.tensors
    if scheme.get("level", "channel") in ("channel", "tensor"):
        assert {"conv.weight", "lstm.input_gate.input_transform.weight"} <= quantized
    floats, packed = made(), made()
    packed.quantize_weights(**scheme)
    floats.load_from(tmp_path / "net.bpk")
    lost = packed.load_from(tmp_path / "net.bpk").quantized
    for name, x in exact.items():
        np.testing.assert_allclose(weights(floats)[name], x, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(weights(packed)[name], x, rtol=1e-5, atol=1e-6)
    assert max(lost.values(), default=0.0) < 1e-6
    if "scale_dtype" not in scheme and not isinstance(scheme.get("level"), tuple):
        for name in ("wide", "narrow", "table", "conv"):
            a, b = (np.asarray(getattr(one, name).weight.values.val()) for one in (net, packed))
            np.testing.assert_array_equal(a, b)


def test_integers_chosen_by_samples_keep_their_scales(tmp_path: Path) -> None:
    """Those of GPTQ need not reach the largest level, so that rounding them again would give other scales."""
    draw = np.random.default_rng(3)
    layer = nn.Linear(300, 7)
    samples = [asarray(draw.normal(size=(64, 300)).astype(np.float32)) for _ in range(8)]
    layer.quantize_weights(4, method="gptq", samples=samples)
    layer.weight.values.set(asarray(np.full(layer.weight.values.shape, 0x99, np.uint8)))  # levels of 1
    layer.save_into(tmp_path / "w.bpk", names="burn")
    again = nn.Linear(300, 7)
    again.quantize_weights(4)
    again.load_from(tmp_path / "w.bpk")
    np.testing.assert_array_equal(np.asarray(again.weight.values.val()), np.asarray(layer.weight.values.val()))
    np.testing.assert_array_equal(np.asarray(again.weight.scale.val()), np.asarray(layer.weight.scale.val()))


@pytest.mark.parametrize(
    "scheme",
    [{"mode": "affine"}, {"bits": 4, "value_dtype": "nf4"}, {"value_dtype": "float8_e4m3fn"}, {"input_scales": True},
     {"bits": 4, "level": 16, "scale_dtype": "float8_e4m3fn"}],
    ids=str,
)  # fmt: skip
def test_weights_that_burn_has_no_form_for_are_floats(scheme: dict[str, Any], tmp_path: Path) -> None:
    net = made()
    net.quantize_weights(**scheme)
    net.save_into(tmp_path / "net.bpk", names="burn")
    pack = Burnpack.from_file(tmp_path / "net.bpk")
    assert not pack.tensors["wide.weight"].is_quantized
    np.testing.assert_allclose(np.asarray(pack.tensor("wide.weight")), weights(net)["wide"], rtol=1e-6, atol=1e-7)


def test_a_file_for_burn_keeps_its_bits_in_other_stores(tmp_path: Path) -> None:
    net = made()
    net.quantize_weights(4, level=32)
    net.save_into(tmp_path / "a.bpk", names="burn", precision="half")
    store.open(tmp_path / "a.bpk").save(tmp_path / "b.bpk")
    a, b = (Burnpack.from_file(tmp_path / name) for name in ("a.bpk", "b.bpk"))
    assert bytes(a.raw("wide.weight")) == bytes(b.raw("wide.weight")) and a.tensors["wide.weight"].is_quantized
    assert str(a.tensors["wide.bias"].dtype) == "float16"


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_files_that_hold_no_quantized_tensors_keep_the_integers_of_weights(ending: str, tmp_path: Path) -> None:
    net = made()
    net.quantize_weights(4, level=32)
    net.save_into(tmp_path / f"a.{ending}", names="burn")
    found = {name: snapshot.dtype for name, snapshot in store.open(tmp_path / f"a.{ending}").items()}
    assert not [name for name, dtype in found.items() if name.endswith(".weight") and dtype.is_float]
