"""Files written by Burn 0.22.1's published crates (fixtures/burn) are read with the same meaning."""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path

import emberlet
import numpy as np
import pytest
from emberlet import nn
from emberlet.burnpack import Burnpack, limits
from emberlet.errors import FormatError, LoadError
from emberlet.host.cli.inspect import describe
from emberlet.module import Module
from emberlet.module.burn_names import burn_names
from support import burnpacks
from support.burnpacks import FLOATS, one, pack, tensor

BURN = Path(__file__).parent / "fixtures" / "burn"


class Net(Module):
    """The module of net.txt."""

    def __init__(self):
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm(8)
        self.fc = nn.Linear(8, 10)
        self.emb = nn.Embedding(11, 6)
        self.lstm = nn.Lstm(6, 5)
        self.enc = nn.TransformerEncoder(8, 16, 2, 2)
        self.list = [nn.Linear(2, 3), nn.Linear(3, 2, bias=False)]


def quantized(name: str) -> Burnpack:
    return Burnpack.from_bytes(lzma.decompress((BURN / (name + ".xz")).read_bytes()), name)


def test_every_dtype_and_rank_has_the_bytes_that_burn_wrote():
    pack = Burnpack.from_file(BURN / "all.bpk")
    said = json.loads((BURN / "all.json").read_text(encoding="utf-8"))
    assert len(said["tensors"]) == len(pack.tensors)
    for entry in said["tensors"]:
        found = pack.tensors[entry["name"]]
        assert found.shape == tuple(entry["shape"])
        assert found.param_id == entry["param_id"]
        assert hashlib.sha256(pack.raw(entry["name"])).hexdigest() == entry["sha"]
    assert pack.metadata == said["metadata"]


@pytest.mark.parametrize(("file", "count"), [("quant_flex.bpk", 60), ("quant_wgpu.bpk", 8)])
@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_quantized_tensors_are_what_burn_dequantizes_them_to(file, count, backend):
    pack = quantized(file)
    names = [name for name in pack.tensors if name + ".f32" in pack.tensors]
    assert len(names) == count
    for name in names if backend == "numpy" else names[::7]:
        assert np.array_equal(pack.tensor(name, backend), pack.tensor(name + ".f32", "numpy")), name


def unknown(**changes):
    found = {"value": "Q8S", "store": "Native", "mode": "Symmetric", "tensor": "F32", "block": None, **changes}
    return pack({"tensors": {"t": tensor({"QFloat": found}, [4], 0, 8), "u": tensor("F32", [2, 3], 8, 32)}},
                bytes(8) + FLOATS)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"value": "Q9S"}, "quantized value 'Q9S' is none of"),
        ({"mode": "Codebook"}, "quantization mode 'Codebook' is not known"),
        ({"store": {"Loose": 1}}, "stored as .* are not known"),
        ({"tensor": "F31"}, "scale type 'F31' is none of"),
        ({"block": 7}, "block of its scheme is not a map"),
    ],
)
def test_an_unknown_scheme_refuses_its_tensor_and_not_the_file(changes, says):
    found = Burnpack.from_bytes(unknown(**changes), "file.bpk")
    assert found.tensor("u", "numpy").shape == (2, 3)
    assert len(found.raw("t")) == 8
    with pytest.raises(FormatError, match=r"^file\.bpk: tensor 't': .*" + says):
        found.tensor("t", "numpy")


@pytest.mark.parametrize("name", burnpacks.unreadable())
def test_a_quantized_tensor_that_does_not_hold_together_is_refused_when_asked_for(name):
    found = Burnpack.from_bytes(burnpacks.unreadable()[name], "file.bpk")
    with pytest.raises(FormatError, match=r"^file\.bpk: tensor 't': "):
        found.tensor("t", "numpy")


# -- names


def test_a_record_of_burn_loads_without_a_mapping():
    pack = Burnpack.from_file(BURN / "net.bpk")
    net = Net()
    assert net.load_record(pack) is net
    assert len(burn_names(net)) == len(pack.tensors)
    for own, burn in burn_names(net).items():
        assert np.array_equal(net.to_record()[own], pack.tensor(burn)), own
    assert net.norm.weight.id.value == pack.tensors["norm.gamma"].param_id


def test_a_module_saved_under_burns_names_has_exactly_those(tmp_path):
    net, pack = Net(), Burnpack.from_file(BURN / "net.bpk")
    net.load_record(pack)
    net.save_file(tmp_path / "out.bpk", names="burn")
    written = Burnpack.from_file(tmp_path / "out.bpk")
    assert list(written.tensors) == list(pack.tensors)
    for name, entry in pack.tensors.items():
        assert bytes(written.raw(name)) == bytes(pack.raw(name))
        assert written.tensors[name].param_id == entry.param_id
        assert written.tensors[name].stored == entry.stored
    again = Net()
    again.load_file(tmp_path / "out.bpk")
    assert np.array_equal(again.norm.bias.val(), net.norm.bias.val())


def test_other_names_are_refused(tmp_path):
    with pytest.raises(LoadError, match=r"None.*'burn'.*'torch'"):
        Net().save_file(tmp_path / "out", names="torch")


@pytest.mark.parametrize("make", [nn.TransformerEncoder, nn.TransformerDecoder])
@pytest.mark.parametrize("norm_first", [False, True])
def test_burns_numbering_of_transformer_norms_survives_a_round_trip(make, norm_first, tmp_path):
    net, again = (make(4, 8, 2, 2, norm_first=norm_first) for _ in range(2))
    for i, param in enumerate(net.params()):
        param.set(emberlet.full(param.shape, float(i)))
    net.save_file(tmp_path / "out.bpk", names="burn")
    names = Burnpack.from_file(tmp_path / "out.bpk").tensors
    assert "layers.0.norm_1.gamma" in names
    again.load_file(tmp_path / "out.bpk")
    assert [p.val().tolist() for p in again.params()] == [p.val().tolist() for p in net.params()]
    moved = burn_names(net)["layers.0.norm_1.weight"] != "layers.0.norm_1.gamma"
    assert moved == norm_first


def test_records_and_dicts_with_burns_names_load_too(tmp_path):
    norm, again = nn.LayerNorm(3), nn.LayerNorm(3)
    norm.weight.set(emberlet.asarray([1.0, 2.0, 3.0]))
    again.load_record({"gamma": norm.weight.val(), "beta": norm.bias.val()})
    assert again.weight.val().tolist() == [1.0, 2.0, 3.0]
    norm.save_file(tmp_path / "n", names="burn")
    found = nn.LayerNorm(3).load_record(Burnpack.from_file(tmp_path / "n"), strict=False)
    assert found.weight.val().tolist() == [1.0, 2.0, 3.0]


def test_names_that_only_look_like_burns_are_still_reported():
    with pytest.raises(LoadError, match=r"missing: bias, weight\n  unexpected: other"):
        nn.LayerNorm(3).load_record({"other": emberlet.ones((3,))})


# -- inspecting, limits, tensors that are not quantized


def test_inspect_shows_identities_and_schemes(tmp_path):
    assert "  o52fvfaa833ca" in describe(emberlet.store.open(BURN / "net.bpk"))
    (tmp_path / "q.bpk").write_bytes(lzma.decompress((BURN / "quant_flex.bpk.xz").read_bytes()))
    text = describe(emberlet.store.open(tmp_path / "q.bpk"))
    assert "Q4S, blocks of 4×16, scales F32" in text
    assert "Q2F, blocks of 16, scales UE4M3 times one F32" in text
    (tmp_path / "u.bpk").write_bytes(one({"QFloat": [1]}, [4], bytes(8)))
    assert "unknown scheme [1]" in describe(emberlet.store.open(tmp_path / "u.bpk"))


def test_limits_can_be_raised(monkeypatch, tmp_path):
    data = pack({"tensors": {"t": tensor("U8", [6], 0, 6), "u": tensor("U8", [1], 6, 7)}}, bytes(7))
    (tmp_path / "f.bpk").write_bytes(data)
    for name, low in (("MAX_FILE", 100), ("MAX_METADATA", 10), ("MAX_TENSOR", 5), ("MAX_TENSORS", 1)):
        with monkeypatch.context() as patch:
            patch.setattr("emberlet.burnpack." + name, low)
            with pytest.raises(FormatError, match=f"limit of {low}"):
                Burnpack.from_bytes(data)
            assert len(limits.from_file(tmp_path / "f", limits.Limits(1000, 1000, 6, 2)).tensors) == 2
    with pytest.raises(FormatError, match="not with the magic"):
        limits.from_bytes(b"x" * 300)


def test_dequantizing_what_is_not_quantized_gives_it_back():
    x = emberlet.asarray([1.5, -2.0])
    assert x.dequantize().tolist() == x.tolist()
    assert x.quantize().dequantize().shape == (2,)
