"""Burn's bincode records: files that the bincode crate wrote of Burn's serde types (fixtures/bincode.rs)."""

from __future__ import annotations

import gzip
import pathlib
import struct

import emberlet
import numpy as np
import pytest
from emberlet import nn, store
from emberlet.errors import FormatError, LoadError
from emberlet.module import Module
from emberlet.param import Param

FIXTURES = pathlib.Path(__file__).with_name("fixtures")
FILES = {"old": ("float32", "int32", 3), "flex": ("bfloat16", "int16", 14), "new": ("float64", "int64", 260)}


def file(name: str) -> bytes:
    return gzip.decompress((FIXTURES / f"bincode_{name}.bin.gz").read_bytes())


class Net(Module):
    def __init__(self, layers):
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm(2)
        self.act = nn.PRelu(1)
        self.steps = Param(emberlet.asarray(0))
        self.mask = Param(emberlet.asarray([True, True, True]))
        self.layers = [nn.Linear(3, 3, bias=i % 2 == 0) for i in range(layers)]
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(300, 70)


@pytest.mark.parametrize("name", FILES)
def test_a_record_without_names_loads_into_its_module(name, tmp_path):
    float_type, int_type, layers = FILES[name]
    path = tmp_path / "net.bin"
    path.write_bytes(file(name))
    for source in (path, FIXTURES / f"bincode_{name}.bin.gz", path.read_bytes()):
        opened = store.open(source)
        assert (opened["0"].dtype.name, opened["7"].dtype.name, opened["8"].dtype.name) == (
            float_type,
            int_type,
            "bool",
        )
        assert opened["0"].param_id == 1 << 40 | 1
        assert opened.metadata["format"].startswith("burn_core::record::file::BinFileRecorder")
    net = Net(layers)
    result = net.load_from(path)
    assert len(result.applied) == len(opened) and not result.missing and not result.unused
    assert net.steps.val().item() == -7 and net.mask.val().tolist() == [True, False, True]
    for number, param in ((1, net.conv.weight), (6, net.norm.running_var), (len(opened) - 1, net.head.weight)):
        expected = (number * 100 + np.arange(np.prod(param.shape)) % 97).reshape(param.shape) / 8
        got = np.asarray(param.val().astype(emberlet.float32))
        assert np.allclose(got, expected, rtol=2**-7 if name == "flex" else 0)


def test_another_module_is_refused_and_stays_as_it_was():
    net = Net(4)
    before = net.conv.weight.val().tolist()
    with pytest.raises(
        LoadError, match=r"holds 16, and Net has 17.* number 14: the module has layers.3.weight \(3, 3\), "
    ):
        net.load_from(file("old"))
    with pytest.raises(LoadError, match=r"holds 16, and Linear has 2\. .* number 0"):
        nn.Linear(3, 3).load_from(file("old"))
    turned = Net(3)
    turned.head = nn.Linear(70, 300)
    with pytest.raises(LoadError, match=r"head.weight.*\(300, 70\).*\(70, 300\)"):
        turned.load_from(file("old"))
    assert net.conv.weight.val().tolist() == before


def test_numbers_can_be_renamed_and_filtered():
    opened = store.open(file("old"))
    result = nn.Linear(300, 70).load_from(opened, rename={"14": "weight", "15": "bias"}, partial=True)
    assert result.applied == ["weight", "bias"] and len(result.unused) == 14
    result = nn.Linear(300, 70).load_from(opened.filter("^1[45]$"))
    assert result.applied == ["weight", "bias"] and not result.unused


def number(n: int) -> bytes:
    return bytes([n]) if n < 251 else b"\xfb" + struct.pack("<H", n) if n < 1 << 16 else b"\xfc" + struct.pack("<I", n)


def record(*values: bytes, version: str = "0.18.0", float_type: str = "f32") -> bytes:
    said = (float_type, "i32", "burn_core::record::memory::BinBytesRecorder", version, "FullPrecisionSettings")
    return b"".join(number(len(t)) + t.encode() for t in said) + b"".join(values)


def parameter(array: np.ndarray, dtype: bytes = b"\x01", identity: bytes = b"0400000004000") -> bytes:
    data = array.tobytes()
    return b"\r" + identity + number(len(data)) + data + number(array.ndim) + bytes(array.shape) + dtype


def test_norms_that_burn_numbers_otherwise_take_its_order():
    layer = nn.TransformerDecoder(4, 8, 2, 1, norm_first=True).layers[0]
    names = [f"{p}.{k}" for p in ("norm_2", "norm_3", "norm_1") for k in ("weight", "bias")]  # Burn's norm_1, 2, 3
    shapes = [p.param.shape for p in store.sources.places(layer, burn=True)]
    values = [np.full(shape, i, np.float32) for i, shape in enumerate(shapes)]
    layer.load_from(record(*map(parameter, values)))
    for i, name in enumerate(names, len(values) - 6):
        norm, key = name.split(".")
        assert getattr(getattr(layer, norm), key).val().tolist() == [float(i)] * 4
    assert layer.cross_attn.query.weight.val()[0, 0].item() == 0.0  # Burn declares it before self_attn


def test_values_that_look_like_parameters_and_lists_of_thirteen():
    """A tensor's bytes are skipped, so bytes in them that look like a parameter are not taken for one. 13 may also be a
    length."""
    inner = np.frombuffer(parameter(np.ones(3, np.float32)) + bytes(2), np.float32)
    pieces = [b"\r", *[parameter(inner), b"\0\1"] * 13]
    assert [s.shape for s in store.open(record(*pieces)).values()] == [inner.shape] * 13


ONE = parameter(np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (record(ONE)[:-1], "cut off"),
        (record(ONE[:-20]), "is cut off at byte"),
        (record(ONE[:10]), "neither a parameter nor the length of a list|cut off"),
        (record(b"\xff"), "0xff begins no number"),
        (record(b"\xfd" + bytes(7) + b"\1"), "neither a parameter nor the length of a list"),
        (
            record(parameter(np.ones(2, np.float32), b"\x09")),
            "quantized ones and those of Burn before 0.14 are not read",
        ),
        (record(parameter(np.ones(2, np.float32), b"\xfa")), "none of bool, float32, int32"),
        (record(parameter(np.ones(2, np.float64))), "none of bool, float32, int32"),
        (record(bytes((1 << 20) + 1)), "bytes between parameters"),
        (record(b"\r0400000004000\xfd" + b"\xff" * 8), "is cut off"),
        (record(b"\r0400000004000\x00\x41" + bytes(99)), "a shape of 65 axes"),
        (record(parameter(np.ones(2, bool), b"\x0d\x02"), version="0.21.0"), "bools of four bytes"),
        (b"\x03f32\x03abc" + bytes(3), "it says 'f32', 'abc'"),
        (b"\x03f32\xfc\xff\xff\xff\xff", "a text of 4294967295 bytes"),
        (b"\x03f32\x03\xff\xff\xff", "not UTF-8"),
    ],
)
def test_malformed_records_are_refused(data, says):
    with pytest.raises(FormatError, match=says):
        store.open(data)


def test_limits_hold_for_records_without_names():
    with pytest.raises(FormatError, match="limit of 2 tensors"):
        store.open(record(ONE, ONE, ONE), limits=store.Limits(tensors=2))
    with pytest.raises(FormatError, match="more than the limit of 7"):
        store.open(record(ONE), limits=store.Limits(tensor=7))
