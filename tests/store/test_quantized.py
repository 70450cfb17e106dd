"""Weights in 8, 4 and 2 bits: stored as Burn's quantized tensors, packed in layers, and only computed so."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import emberlet
import numpy as np
import pytest
from emberlet import nn, store
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError, UnsupportedError
from emberlet.functional.quantized.weights import WeightScheme, fake_quantize
from emberlet.host.cli import main
from emberlet.module import Module

BURN = Path(__file__).parent.parent / "core" / "fixtures" / "burn"
RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(10, 6)).astype(np.float32)
LEVELS = ["tensor", "channel", 4]


def reference(w, bits, mode, level, calibration="min-max"):
    """The same by NumPy, a column and a block at a time."""
    out = np.empty_like(w)
    rows = w.shape[0]
    size = rows if isinstance(level, str) else level
    for column in range(w.shape[1]):
        for start in range(0, rows, size):
            part = w if level == "tensor" else w[start : start + size, column]
            x = w[start : start + size, column]
            if mode == "affine":
                low, high = min(0, part.min()), max(0, part.max())
                scale = np.float32(high - low) / np.float32(2**bits - 1)
                zero = np.round(-low / scale)
                out[start : start + size, column] = (np.clip(np.round(x / scale) + zero, 0, 2**bits - 1) - zero) * scale
            else:
                top = 2 ** (bits - 1) - 1
                reach = np.abs(part).max() if calibration == "min-max" else np.abs(part).mean()
                scale = np.float32(reach) / np.float32(top)
                out[start : start + size, column] = np.clip(np.round(x / scale), -top, top) * scale
    return out


@pytest.mark.parametrize("backend", ["numpy", "python"])
@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("mode", "calibration"), [("symmetric", "min-max"), ("symmetric", "absolute-mean"),
                                                   ("affine", "min-max")])  # fmt: skip
def test_levels_and_scales_are_those_of_numpy(bits, level, mode, calibration, backend):
    w = emberlet.asarray(WEIGHT, backend=backend)
    found = fake_quantize(w, WeightScheme(bits, mode, level, calibration))
    np.testing.assert_allclose(
        np.asarray(found), reference(WEIGHT, bits, mode, level, calibration), rtol=2e-6, atol=2e-6
    )


class Net(Module):
    def __init__(self, backend=None):
        self.layers = [nn.Linear(10, 6, backend=backend), nn.Relu(), nn.Linear(6, 4, bias=False, backend=backend)]
        self.norm = nn.LayerNorm(4, backend=backend)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("mode", ["symmetric", "affine"])
@pytest.mark.parametrize("level", LEVELS)
def test_packed_layers_compute_what_their_fakes_do(bits, mode, level):
    net = Net()
    net.to_record()  # makes the values, which lazy clones would each draw anew
    fake, packed = net.clone(), net.clone()
    assert fake.quantize_weights(bits, mode, level, fake=True) == ["layers.0", "layers.2"]
    assert packed.quantize_weights(bits, mode, level) == ["layers.0", "layers.2"]
    x = emberlet.asarray(RNG.normal(size=(3, 10)).astype(np.float32))
    np.testing.assert_allclose(np.asarray(packed(x)), np.asarray(fake(x)), rtol=1e-5, atol=1e-5)
    if bits == 8:
        # The norm that follows may divide by little.
        np.testing.assert_allclose(np.asarray(packed(x)), np.asarray(net(x)), atol=0.25)
    assert packed.layers[0].weight.values.val().size * 8 // bits >= 60
    assert fake.layers[0].weight.real.val().tolist() == net.layers[0].weight.val().tolist()


ON_A_DEVICE = """
import sys
import emberlet
from emberlet import nn
from emberlet.burnpack import Burnpack
for bits in (8, 4, 2):
    layer = nn.QuantizedLinear(16, 3, bits=bits, affine=True)
    layer.load_record(Burnpack.from_file(sys.argv[1] + "/q" + str(bits) + ".bpk"))
    print(layer(emberlet.asarray([[i / 16 for i in range(16)]])).tolist())
"""


def test_packed_layers_run_on_micropython(unix_port, tmp_path):
    x = emberlet.asarray([[i / 16 for i in range(16)]])
    wanted = []
    for bits in (8, 4, 2):
        net = Module()
        net.inner = nn.Linear(16, 3)
        net.quantize_weights(bits, "affine")
        net.inner.save_into(tmp_path / f"q{bits}.bpk")
        wanted.append(net.inner(x).tolist())
    said = unix_port.run(ON_A_DEVICE, [tmp_path], heap="2M", files=[tmp_path]).check().stdout
    found = [json.loads(line) for line in said.splitlines()]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_some_layers_are_chosen_and_shared_ones_stay_shared():
    net = Net()
    net.tied = net.layers[0]
    assert net.quantize_weights(filter=r"layers\.0|tied") == ["layers.0", "tied"]
    assert net.tied is net.layers[0]
    assert type(net.layers[2]) is nn.Linear
    assert net.quantize_weights(filter=lambda name, container: container == "Net.Linear") == ["layers.2"]
    other = Net()
    assert other.quantize_weights(keep=["layers.0"]) == ["layers.2"]
    assert type(other.layers[0]) is nn.Linear
    with pytest.raises(UnsupportedError, match=r"'layers\.7'"):
        other.quantize_weights(keep=["layers.7"])


@pytest.mark.parametrize(
    "arguments",
    [{"bits": 3}, {"mode": "odd"}, {"level": 0}, {"level": "row"}, {"bits": 2, "level": 3}, {"calibration": "x"},
     {"mode": "affine", "calibration": "absolute-mean"}],
)  # fmt: skip
def test_other_schemes_are_refused_and_nothing_changes(arguments):
    net = Net()
    with pytest.raises(UnsupportedError):
        net.quantize_weights(**arguments)
    assert type(net.layers[0]) is nn.Linear


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("level", ["tensor", "channel", 4, 32])
@pytest.mark.parametrize("calibration", ["min-max", "absolute-mean"])
def test_burns_layout_goes_out_and_comes_back(bits, level, calibration):
    opened = store.store_of({"w": WEIGHT, "b": np.ones(6, np.float32), "i": np.ones((2, 2), np.int32)})
    small = opened.quantize(bits, level, calibration)
    data = store.dumps(small)
    pack = Burnpack.from_bytes(data)
    assert pack.tensors["w"].is_quantized
    assert not pack.tensors["b"].is_quantized
    assert not pack.tensors["i"].is_quantized
    assert pack.tensors["w"].nbytes < WEIGHT.nbytes or (bits, level) == (8, 4)
    found = np.asarray(pack.tensor("w"))
    assert np.array_equal(found, np.asarray(small["w"]))
    if level in ("tensor", "channel"):
        np.testing.assert_allclose(
            found, reference(WEIGHT, bits, "symmetric", level, calibration), rtol=2e-6, atol=2e-6
        )
    else:
        wanted = reference(WEIGHT.T.copy(), bits, "symmetric", level, calibration).T
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("level", ["tensor", "channel", 4])
def test_a_burnpack_written_from_another_keeps_its_bits(bits, level, tmp_path):
    path, again, wide = tmp_path / "a.bpk", tmp_path / "b.bpk", tmp_path / "c.safetensors"
    small = store.store_of({"w": WEIGHT, "tied": WEIGHT, "b": np.ones(6, np.float32)}).quantize(bits, level)
    small.save(path)
    assert main(["convert", str(path), str(again), "--rename", "^w=x"]) == 0
    first, second = Burnpack.from_file(path), Burnpack.from_file(again)
    assert second.tensors["x"].stored == first.tensors["w"].stored
    assert bytes(second.raw("x")) == bytes(first.raw("w"))
    assert np.array_equal(np.asarray(store.open(again)["x"]), np.asarray(small["w"]))
    assert os.path.getsize(again) == os.path.getsize(path)
    assert main(["convert", str(path), str(wide)]) == 0
    assert np.array_equal(np.asarray(store.open(wide)["w"]), np.asarray(small["w"]))
    halves = store.open(path).half()
    assert not Burnpack.from_bytes(store.dumps(halves)).tensors["w"].is_quantized


@pytest.mark.parametrize("name", ["quant_flex.bpk.xz", "quant_wgpu.bpk.xz"])
def test_every_scheme_of_burn_is_written_again_as_it_was(name):
    data = lzma.decompress((BURN / name).read_bytes())
    first, second = Burnpack.from_bytes(data), Burnpack.from_bytes(store.dumps(store.open(data)))
    for key, entry in first.tensors.items():
        assert second.tensors[key].stored == entry.stored
        assert bytes(second.raw(key)) == bytes(first.raw(key))


@pytest.mark.parametrize("change", [{"value": "Q9Z"}, {"store": "Elsewhere"}, {"mode": "Other"}])
def test_a_quantized_tensor_that_cannot_be_read_is_not_copied_either(change, tmp_path):
    pack = Burnpack.from_bytes(store.dumps(store.store_of({"w": WEIGHT}).quantize(8)))
    pack.tensors["w"].stored["QFloat"].update(change)
    (tmp_path / "old.bpk").write_bytes(b"old")
    with pytest.raises(FormatError, match="tensor 'w'"):
        store.store_of(pack).save(tmp_path / "old.bpk")
    assert (tmp_path / "old.bpk").read_bytes() == b"old"


def test_micropython_says_that_quantizing_needs_cpython(unix_port):
    call = "nn.Linear(4, 3).quantize_weights()"
    code = f"from emberlet import nn\ntry:\n    {call}\nexcept Exception as e:\n    print(repr(e))"
    said = unix_port.run(code, heap="2M").check().stdout
    assert "UnsupportedError" in said
    assert "needs CPython" in said
