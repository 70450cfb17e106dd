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
from emberlet.errors import ArgumentError, DTypeError, EmberletError, FormatError
from emberlet.module import Module
from emberlet.store.recorders import LoadedRecord

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


@pytest.mark.parametrize(
    "names", [("a", "a.b"), ("a.b", "a"), ("x.bytes", "x.shape", "x.dtype"), ("value", "shape"), ("id", "param")]
)
@pytest.mark.parametrize("recorder", ["NamedMpkFileRecorder", "PrettyJsonFileRecorder"])
def test_names_that_a_record_has_no_place_for_are_refused(
    names: tuple[str, ...], recorder: str, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match=r"no place for .*rename"):
        getattr(store, recorder)().record({name: np.ones(2, np.float32) for name in names}, tmp_path / "a")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["DefaultFileRecorder", "CompactRecorder", "NamedMpkFileRecorder"])
def test_burns_aliases_are_written_by_the_name_of_its_struct(name: str, tmp_path: Path) -> None:
    path = nn.Linear(3, 2).save_file(tmp_path / "a", getattr(store, name))
    said = msgpack.unpackb(Path(path).read_bytes())["metadata"]["format"]
    assert said.startswith("burn_core::record::file::NamedMpkFileRecorder<burn_core::record::settings::")


def test_a_recorder_is_made_as_in_the_book() -> None:
    half = store.HalfPrecisionSettings
    assert store.NamedMpkFileRecorder[half].new().settings is half
    assert store.CompactRecorder.new().settings is store.CompactRecorder.default().settings is half
    with pytest.raises(ArgumentError, match="HalfPrecisionSettings, found 'half'"):
        store.NamedMpkFileRecorder("half")


def test_paths_of_bytes_and_texts_in_place_of_bytes(tmp_path: Path) -> None:
    layer, recorder = nn.Linear(3, 2), store.NamedMpkFileRecorder()
    path = layer.save_file(bytes(tmp_path / "a"), recorder)
    assert set(recorder.load(bytes(tmp_path / "a"))) == {"weight", "bias"} and path == str(tmp_path / "a.mpk")
    with pytest.raises(DTypeError, match="loads bytes, found str"):
        store.BinBytesRecorder().load("abc")


def test_a_recorder_takes_no_other_arguments(tmp_path: Path) -> None:
    layer, recorder = nn.Linear(3, 2), store.NamedMpkFileRecorder()
    path = layer.save_file(tmp_path / "a", recorder)
    for words in ({"precision": "half"}, {"metadata": {}}, {"nonsense": 3}):
        with pytest.raises(ArgumentError, match=f"save_file with NamedMpkFileRecorder takes .*{next(iter(words))}"):
            layer.save_file(tmp_path / "b", recorder, **words)
    with pytest.raises(ArgumentError, match="takes a path and the recorder alone"):
        layer.save_file(tmp_path / "b", recorder, "half")
    for words in ({"strict": False}, {"layout": "burn"}):
        with pytest.raises(ArgumentError, match=next(iter(words))):
            layer.load_file(path, recorder, **words)
    device = emberlet.Device.default()
    for given, words in ((recorder, {}), (recorder, {"device": device}), (store.NamedMpkFileRecorder, {})):
        other = layer.clone().load_file(path, given, **words)
        assert other.weight.val().tolist() == layer.weight.val().tolist()
    assert [each.name for each in tmp_path.iterdir()] == ["a.mpk"]


def test_a_loaded_record_keeps_its_options_however_it_is_passed() -> None:
    class Two(Module):
        def __init__(self) -> None:
            self.fc = nn.Linear(3, 3)

    record = LoadedRecord(
        store.store_of({"fc.weight": np.arange(9, dtype=np.float32).reshape(3, 3), "fc.bias": np.ones(3, np.float32)}),
        layout="pytorch",
    )
    for net in (Two().load_record(record), Two().load_record(record=record), Two().load_record(record, strict=False)):
        assert np.asarray(net.fc.weight.val())[0].tolist() == [0.0, 3.0, 6.0]
    net = Two()
    assert net.load_from(record, layout="burn").applied == ["fc.weight", "fc.bias"]
    assert np.asarray(net.fc.weight.val())[0].tolist() == [0.0, 1.0, 2.0]


def test_one_of_burns_stores_takes_no_other_arguments(tmp_path: Path) -> None:
    layer = nn.Linear(3, 2)
    layer.save_into(store.BurnpackStore(tmp_path / "a.bpk"))
    with pytest.raises(ArgumentError, match="load_from with BurnpackStore takes it alone, found partial"):
        layer.load_from(store.BurnpackStore(tmp_path / "a.bpk"), partial=True)
    assert layer.load_record(store.BurnpackStore(tmp_path / "a.bpk")) is layer
