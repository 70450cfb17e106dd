"""Burn's recorders: what they write is what MessagePack and JSON make of Burn's structure, and is read again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emberlet
import msgpack  # type: ignore[import-untyped]
import numpy as np
import pytest
from emberlet import nn, store
from emberlet.errors import DTypeError, EmberletError
from emberlet.module import Module

FIXTURES = Path(__file__).parent / "fixtures"
READERS: dict[str, Callable[[bytes], Any]] = {
    "NamedMpkFileRecorder": msgpack.unpackb,
    "NamedMpkGzFileRecorder": lambda data: msgpack.unpackb(gzip.decompress(data)),
    "PrettyJsonFileRecorder": json.loads,
    "JsonGzFileRecorder": lambda data: json.loads(gzip.decompress(data)),
    "DefaultFileRecorder": msgpack.unpackb,
    "CompactRecorder": msgpack.unpackb,
}
ENDINGS = (".mpk", ".mpk.gz", ".json", ".json.gz", ".mpk", ".mpk")


class Net(Module):
    def __init__(self) -> None:
        self.layers = [nn.Linear(3, 70), nn.Linear(70, 2)]
        self.norm = nn.LayerNorm(2)


@pytest.mark.parametrize(("name", "ending"), list(zip(READERS, ENDINGS, strict=True)))
def test_a_file_has_burns_structure_and_loads_again(name: str, ending: str, tmp_path: Path) -> None:
    net, recorder = Net(), getattr(store, name)()
    path = net.save_file(tmp_path / "net", recorder)
    assert path == str(tmp_path / "net") + ending
    file = READERS[name](Path(path).read_bytes())
    half = name == "CompactRecorder"
    assert file["metadata"]["settings"] == ("Half" if half else "Full") + "PrecisionSettings"
    assert set(file["item"]) == {"layers", "norm"} and set(file["item"]["norm"]) == {"gamma", "beta"}
    held = file["item"]["layers"][1]["weight"]
    assert held["id"] == str(net.layers[1].weight.id)
    assert held["param"]["shape"] == [70, 2] and held["param"]["dtype"] == ("F16" if half else "F32")
    values = np.asarray(net.layers[1].weight.val()).astype("float16" if half else "float32")
    assert bytes(held["param"]["bytes"]) == values.tobytes()
    for other in (Net().load_record(recorder.load(tmp_path / "net")), Net().load_file(path, recorder)):
        assert np.array_equal(np.asarray(other.layers[1].weight.val()), values.astype("float32"))


@pytest.mark.parametrize(("settings", "dtype"), [("Double", "F64"), ("Full", "F32"), ("Half", "F16")])
def test_settings_choose_the_precision(settings: str, dtype: str, tmp_path: Path) -> None:
    recorder = store.NamedMpkFileRecorder[getattr(store, settings + "PrecisionSettings")]()
    path = recorder.record(nn.Linear(3, 2).into_record(), tmp_path / "a.mpk")
    assert msgpack.unpackb(Path(path).read_bytes())["item"]["bias"]["param"]["dtype"] == dtype


@pytest.mark.parametrize("count", [0, 15, 16, 31, 32, 127, 128, 255, 256, 65535, 65536, 1 << 33])
def test_counts_of_every_width_are_message_pack(count: int) -> None:
    from emberlet.store.formats.record_writing import as_message_pack

    values: list[Any] = [count]
    if count < 70000:
        values += ["é" * count, bytes(count), [1] * count, {"k" * count: 1}, {str(i): i for i in range(count)}]
    for value in values:
        assert msgpack.unpackb(as_message_pack(value)) == value


def test_bytes_in_memory_are_recorded_and_loaded() -> None:
    layer = nn.Linear(3, 2)
    recorder = store.BinBytesRecorder()
    other = nn.Linear(3, 2).load_record(recorder.load(recorder.record(layer.into_record())))
    assert other.weight.val().tolist() == layer.weight.val().tolist()


def test_a_file_of_pytorch_goes_through_a_module(tmp_path: Path) -> None:
    class Norm(Module):
        def __init__(self) -> None:
            self.layer_norm = nn.BatchNorm(4)

    args = store.LoadArgs(FIXTURES / "state_dict.pt").with_key_remap("^norm\\.(.*)", "layer_norm.$1")
    record = store.PyTorchFileRecorder().load(args, emberlet.Device.default())
    with pytest.raises(EmberletError, match="into_record"):
        store.CompactRecorder().record(record, tmp_path / "a")
    loaded = Norm().load_record(record)
    assert loaded.layer_norm.weight.val().tolist() == record["layer_norm.weight"].tensor("numpy").tolist()
    assert Path(store.CompactRecorder().record(loaded.into_record(), tmp_path / "a")).name == "a.mpk"


def test_what_is_not_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmberletError, match="BinFileRecorder reads files"):
        nn.Linear(3, 2).save_file(tmp_path / "a", store.BinFileRecorder())
    with pytest.raises(DTypeError, match="hold no int4"):
        store.NamedMpkFileRecorder().record({"z": emberlet.asarray([1, 2]).astype("int4")}, tmp_path / "a")
    assert not list(tmp_path.iterdir())
