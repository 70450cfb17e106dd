"""Burn's older recorders, put together by hand: named MessagePack and JSON, gzip, both generations of tensors."""

from __future__ import annotations

import gzip
import json
import struct
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes, nn, store
from emberlet.errors import FormatError
from emberlet.module import Module
from emberlet.param.identity import ParamId

SAID = {"float": "f32", "int": "i32", "format": "burn_core::record::NamedMpk", "version": "0.16.0", "settings": "Full"}


def packed(value: object) -> bytes:
    """MessagePack as rmp-serde writes it, with names."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        if value >= 1 << 63:
            return b"\xcf" + struct.pack(">Q", value)
        return bytes([value]) if 0 <= value < 128 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value.encode())]) + value.encode()
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    assert isinstance(value, dict)
    pairs = [packed(k) + packed(v) for k, v in value.items()]
    return (bytes([0x80 | len(pairs)]) if len(pairs) < 16 else b"\xdf" + struct.pack(">I", len(pairs))) + b"".join(
        pairs
    )


def param(array: np.ndarray, dtype: str, id: str | None = None) -> dict[str, object]:
    data = {"bytes": array.tobytes(), "shape": list(array.shape), "dtype": dtype}
    return {"id": id or str(ParamId(7)), "param": data}


def plain(value: Any) -> Any:
    """As JSON writes it: bytes are numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, bytes)) else value


WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
NORM = {
    "gamma": param(np.full(3, 2, np.float32), "F32"),
    "beta": param(np.zeros(3, np.float32), "F32"),
    "epsilon": 0.5,
}
ITEM = {
    "layers": [{"weight": param(WEIGHT, "F32"), "bias": param(np.ones(3, np.float32), "F32", "an-older-uuid")}],
    "norm": {"LayerNorm": NORM},
    "half": param(np.float16([1.5]), "F16"),
    "flag": True,
    "steps": 300,
    "name": "net",
    "nothing": None,
    "sizes": [1, 2],
}


RECORD = {"metadata": SAID, "item": ITEM}
TEXT = json.dumps(plain(RECORD))
FILES = {"mpk": packed(RECORD), "json": TEXT.encode(), "pretty": json.dumps(plain(RECORD), indent=2).encode()}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_records_are_read_with_everything_in_them(kind, zipped, tmp_path):
    path = tmp_path / ("net." + ("mpk" if kind == "mpk" else "json") + (".gz" if zipped else ""))
    path.write_bytes(gzip.compress(FILES[kind]) if zipped else FILES[kind])
    opened = store.open(path)
    assert opened.format == "record"
    assert np.array_equal(np.asarray(opened["layers.0.weight"]), WEIGHT)
    assert opened["layers.0.weight"].param_id == 7
    assert opened["layers.0.bias"].param_id is None
    assert opened["half"].dtype is dtypes.float16
    assert opened.scalars == {"flag": True, "steps": 300, "norm.LayerNorm.epsilon": 0.5}
    assert opened.extras == {"name": "net", "sizes": [1, 2]}
    assert opened.metadata["version"] == "0.16.0"
    assert list(store.open(path, key="norm.LayerNorm")) == ["gamma", "beta"]


def test_a_record_loads_into_a_module_without_a_mapping(tmp_path):
    class Net(Module):
        def __init__(self):
            self.layers = [nn.Linear(2, 3)]
            self.norm = nn.LayerNorm(3)

    (tmp_path / "net.mpk").write_bytes(FILES["mpk"])
    net = Net()
    result = net.load_from(tmp_path / "net.mpk", rename=[(r"\.LayerNorm", "")])
    assert net.layers[0].weight.val().tolist() == WEIGHT.tolist()
    assert net.norm.weight.val().tolist() == [2.0, 2.0, 2.0]
    assert result.transposed == []


@pytest.mark.parametrize(
    ("float_type", "values", "dtype", "expected"),
    [
        ("f32", [1.5, 2.5], "float32", [1.5, 2.5]),
        ("f64", [0.1, 2.5], "float64", [0.1, 2.5]),
        ("half::binary16::f16", [0x3E00, 0xC000], "float16", [1.5, -2.0]),
        ("half::bfloat::bf16", [0x3FC0, 0xC000], "bfloat16", [1.5, -2.0]),
        ("f32", [1, -2], "int32", [1, -2]),
        ("f32", [1, 1 << 40], "int64", [1, 1 << 40]),
        ("f32", [True, False], "bool", [True, False]),
    ],
)
def test_values_of_the_oldest_records(float_type, values, dtype, expected):
    item = {"w": {"id": "x", "param": {"value": values, "shape": [2]}}}
    opened = store.open(packed({"metadata": {**SAID, "float": float_type}, "item": item}), format="record")
    assert opened["w"].dtype.name == dtype
    assert opened["w"].tensor().tolist() == expected


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "cut off"),
        (b"\x81\xa4item", "cut off"),
        (packed(3), "is not one of Burn's records"),
        (packed({"item": {}}) + b"\0", "more than one value"),
        (b"\xdd\xff\xff\xff\xff", "is cut off"),
        (b"\xdf\xff\xff\xff\xff", "is cut off"),
        (b"\x91" * 200, "nested deeper than 128"),
        (b"\xdd" + struct.pack(">I", 900_000) + b"\x80" * 900_000, "more memory than its length allows"),
        (b"\xc1", "0xc1 is not read"),
        (b"\x81\xa1\xff\xc0", "not UTF-8"),
        (b"{" * 5000, "is not JSON"),
        (b"\x1f\x8b" + bytes(20), "gzip data are malformed"),
        (gzip.compress(bytes(64 << 20), mtime=0), "would become more than"),
        (gzip.compress(FILES["mpk"])[:-20], "cut off"),
        (packed({"item": {"w": {"bytes": b"123", "shape": [1], "dtype": "F32"}}}), "3 bytes where float32"),
        (packed({"item": {"w": {"bytes": b"", "shape": [-1], "dtype": "F32"}}}), "not a list of unsigned"),
        (packed({"item": {"w": {"bytes": b"", "shape": [0, 1 << 63], "dtype": "F32"}}}), "not a list of unsigned"),
        (packed({"item": {"w": {"bytes": b"", "shape": [0] * 65, "dtype": "F32"}}}), "not a list of unsigned"),
        (packed({"item": {"w": {"bytes": b"", "shape": [0, True], "dtype": "F32"}}}), "not a list of unsigned"),
        (packed({"item": {"w": {"bytes": b"", "shape": [0], "dtype": "F99"}}}), "dtype 'F99' is not read"),
        (packed({"item": {"w": {"value": [1.5, "x"], "shape": [2]}}}), "not numbers of one type"),
        (packed({"item": {"w": {"value": [1.5], "shape": [2]}}}), "1 values where its shape takes 2"),
    ],
)
def test_malformed_records_are_refused(data, says):
    with pytest.raises(FormatError, match=says):
        store.open(data, format="record")


@pytest.mark.parametrize("shape", [[0, 1 << 20], [0] * 64])
def test_an_empty_tensor_of_many_dimensions_is_read(shape):
    data = packed({"item": {"w": {"bytes": b"", "shape": shape, "dtype": "F32"}}})
    found = store.open(data, format="record")
    assert [found[name].shape for name in found] == [tuple(shape)]
