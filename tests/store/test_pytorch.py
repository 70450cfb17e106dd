"""PyTorch's files: what torch 2.13 wrote (fixtures/make_pytorch.py), the files of Burn's own tests, and attacks."""

from __future__ import annotations

import collections
import io
import os
import pickle
import sys
import zipfile
from pathlib import Path

import emberlet
import numpy as np
import pytest
from emberlet import dtypes, nn, store
from emberlet.errors import EmberletError, FormatError, LoadError
from emberlet.module import Module

HERE = Path(__file__).parent / "fixtures"
EXPECTED = np.load(HERE / "pytorch.npz")
FILES = sorted({name.partition("|")[0] for name in EXPECTED.files})


class Net(Module):
    """The module of state_dict.pt, without the layers that have no parameters."""

    def __init__(self) -> None:
        self.fc = [nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)]
        self.norm = nn.BatchNorm(4)
        self.conv = nn.Conv1d(4, 2, 3, bias=False)


class Layers(Module):
    """The module of recurrent_and_attention.pt."""

    def __init__(self) -> None:
        self.lstm = [nn.Lstm(5, 6), nn.Lstm(6, 6)]
        self.both = nn.BiLstm(6, 4)
        self.gru = nn.Gru(8, 8)
        self.rnn = nn.BiRnn(8, 6, bias=False)
        self.attention = nn.MultiHeadAttention(12, 3, dropout=0.0)
        self.head = nn.Linear(12, 12)

    def forward(self, x):
        for layer in (*self.lstm, self.both, self.gru, self.rnn):
            x, _ = layer(x)
        return self.head(self.attention(x).context)


@pytest.mark.parametrize("zero_copy", [False, True])
def test_recurrent_layers_and_attention_load_by_the_names_pytorch_gives_them(zero_copy):
    file = HERE / "recurrent_and_attention.pt"
    model = Layers()
    result = model.load_from(store.open(file, key="state_dict", zero_copy=zero_copy))
    assert (result.missing, result.unused, result.wrong) == ([], [], {})
    assert result.sources["gru.new_gate.hidden_transform.bias"] == "gru.bias_hh_l0"
    whole = store.open(file)
    wanted = np.asarray(whole["y"])
    np.testing.assert_allclose(model(whole["x"].tensor()).tolist(), wanted, rtol=1e-5, atol=1e-5)
    model.save_into(copy := io.BytesIO())
    again = Layers()
    again.load_from(copy.getvalue())
    np.testing.assert_allclose(again(whole["x"].tensor()).tolist(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("format", ["safetensors", "npz", "burnpack"])
def test_recurrent_layers_and_attention_go_back_to_pytorchs_names(format):
    file = store.open(HERE / "recurrent_and_attention.pt", key="state_dict")
    model = Layers()
    model.load_from(file)
    model.save_into(saved := io.BytesIO(), layout="pytorch", format=format)
    written = store.open(saved.getvalue(), format=format)
    assert set(written) == set(file)  # which load_state_dict(strict=True) takes
    for name, snapshot in file.items():
        assert np.array_equal(np.asarray(written[name]), np.asarray(snapshot)), name
    again = Layers()
    again.load_from(written, layout="pytorch")
    x = store.open(HERE / "recurrent_and_attention.pt")["x"].tensor()
    assert again(x).tolist() == model(x).tolist()


def test_what_pytorch_does_not_have_is_not_written_as_if_it_had():
    model = Layers()
    with pytest.raises(LoadError, match=r"attention\.in_proj_weight"):
        model.save_into(io.BytesIO(), layout="pytorch", filter="query", format="npz")
    model.gru = nn.Gru(8, 8, reset_after=False)
    with pytest.raises(LoadError, match="gru resets before the product"):
        model.save_into(io.BytesIO(), layout="pytorch", format="npz")


@pytest.mark.parametrize("gru", [nn.Gru(8, 7), nn.Gru(8, 8, reset_after=False)], ids=["size", "reset before"])
def test_layers_unlike_pytorchs_are_refused_and_nothing_is_loaded(gru):
    model = Layers()
    model.gru = gru
    before = model.lstm[0].input_gate.input_transform.weight.val().tolist()
    with pytest.raises(LoadError, match=r"missing: gru\.update_gate\.input_transform\.weight"):
        model.load_from(store.open(HERE / "recurrent_and_attention.pt", key="state_dict"))
    assert model.lstm[0].input_gate.input_transform.weight.val().tolist() == before


@pytest.mark.parametrize("zero_copy", [False, True])
@pytest.mark.parametrize("file", FILES)
def test_every_tensor_is_what_torch_reads(file, zero_copy):
    opened = store.open(HERE / file, zero_copy=zero_copy)
    wanted = {n.partition("|")[2]: EXPECTED[n] for n in EXPECTED.files if n.startswith(file + "|")}
    assert {n for n in opened if opened[n].dtype.kind != "string"} == set(wanted)
    for name, array in wanted.items():
        found = opened[name]
        assert found.shape == array.shape
        assert np.array_equal(np.asarray(found).astype(array.dtype), array), name
        assert np.asarray(found.tensor("python").tolist()).tolist() == array.tolist()


def test_strided_views_are_gathered_without_numpy(monkeypatch):
    wanted = {n: np.asarray(s) for n, s in store.open(HERE / "views.pt").items()}
    monkeypatch.setitem(sys.modules, "numpy", None)
    opened = store.open(HERE / "views.pt")
    for name, array in wanted.items():
        assert bytes(opened[name].raw()) == array.tobytes()


def test_views_of_one_storage_share_it():
    opened = store.open(HERE / "views.pt")
    assert opened["whole"].same[0] == opened["turned"].same[0] == opened["row"].same[0]
    assert opened["whole"].same != opened["row"].same


def test_entries_that_are_not_tensors_are_kept():
    for file in ("checkpoint.pt", "checkpoint_legacy.pt"):
        opened = store.open(HERE / file)
        assert opened.scalars["epoch"] == 7
        assert opened.scalars["best"] is True
        assert opened.extras["name"] == "net"
        assert opened.extras["sizes"] == [1, 2]
        assert opened.extras["shape"] == (3, 4)
        assert opened.extras["dtype"] is dtypes.float16
        assert "complex" not in opened
        assert "optimizer.state.0.step" in opened
        config = store.config_from_file(HERE / file)
        assert config["lr"] == 0.5
        assert config["optimizer"]["groups"] == [{"lr": 0.1, "params": [0, 1]}]
        assert store.config_from_file(HERE / file, "optimizer.groups") == [{"lr": 0.1, "params": [0, 1]}]


def test_a_key_picks_a_part():
    assert list(store.open(HERE / "checkpoint.pt", key="state_dict")) == ["a", "b"]
    assert list(store.open(HERE / "checkpoint.pt", key="optimizer")) == ["state.0.step"]
    with pytest.raises(LoadError, match=r"holds nothing under 'model'; at the top there are .*epoch"):
        store.open(HERE / "checkpoint.pt", key="model")


def test_a_state_dict_loads_without_a_mapping():
    for file in ("state_dict.pt", "state_dict_legacy.pt"):
        net = Net()
        result = net.load_from(HERE / file)
        assert result.unused == result.missing == []
        assert result.sources["fc.2.bias"] == "fc.4.bias"
        assert sorted(result.transposed) == ["fc.0.weight", "fc.1.weight", "fc.2.weight"]
        assert np.array_equal(net.fc[1].weight.val(), EXPECTED["state_dict.pt|fc.2.weight"].T)
        assert np.array_equal(net.norm.running_var.val(), EXPECTED["state_dict.pt|norm.running_var"])


def test_layers_without_parameters_keep_their_number_where_the_module_has_them():
    class Same(Module):
        def __init__(self):
            self.fc = [nn.Linear(3, 4), nn.Relu(), nn.Linear(4, 4), nn.Relu(), nn.Linear(4, 2)]

    assert Same().load_from(HERE / "state_dict.pt").sources["fc.4.bias"] == "fc.4.bias"
    with pytest.raises(LoadError, match=r"missing: fc\.1\.weight"):
        Net().load_from(HERE / "state_dict.pt", contiguous=False)


def test_a_store_in_pytorchs_layout_goes_back_to_torch_as_it_came(tmp_path):
    net = Net()
    net.load_from(HERE / "state_dict.pt")
    net.save_into(tmp_path / "back.safetensors", layout="pytorch", rename=[(r"fc\.2", "fc.4"), (r"fc\.1", "fc.2")])
    back = store.open(tmp_path / "back.safetensors")
    wanted = {n.partition("|")[2]: EXPECTED[n] for n in EXPECTED.files if n.startswith("state_dict.pt|")}
    assert set(back) == set(wanted)
    for name, array in wanted.items():
        assert np.array_equal(back[name], array)
        assert np.asarray(back[name]).dtype == array.dtype


def test_enum_variants_are_left_out_and_the_first_that_fits_is_taken():
    class Wrapped(Module):
        def __init__(self, variant):
            self.layer = {variant: nn.Conv1d(4, 2, 3, bias=False)}

    source = store.open(HERE / "state_dict.pt").rename([("^conv", "layer")])
    net = Wrapped("BaseConv")
    assert net.load_from(source).sources == {"layer.BaseConv.weight": "conv.weight"}
    with pytest.raises(LoadError, match="missing"):
        net.load_from(source, skip_enum_variants=False)
    several = store.store_of({"layer.Wide.weight": np.zeros((9, 4, 3)), "layer.Fits.weight": np.ones((2, 4, 3))})
    assert net.load_from(several, skip_enum_variants=True).sources == {"layer.BaseConv.weight": "layer.Fits.weight"}


# -- attacks


class Attack:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def zipped(value: object, **members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", value if isinstance(value, bytes) else pickle.dumps(value, 2))
        for name, data in members.items():
            archive.writestr("x/" + name.replace("__", "/"), data)
    return file.getvalue()


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "call",
    [
        (os.system, ("touch HACKED",)),
        (eval, ("open('HACKED', 'w')",)),
        (exec, ("open('HACKED', 'w')",)),
        (open, ("HACKED", "w")),
        (__import__, ("antigravity",)),
    ],
)
def test_nothing_in_a_pickle_is_ever_called(call, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = store.open(zipped(pickle.dumps({"a": Attack(*call), "n": 1}, protocol)))
    assert not (tmp_path / "HACKED").exists()
    assert opened.scalars == {"n": 1}
    assert "Unknown" in repr(opened.extras["a"])


def test_attributes_and_items_of_known_functions_cannot_be_changed():
    evil = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x04\x00\x00\x00callNsb."
    store.open(zipped(evil))
    from emberlet.store.formats.torch_tensors import KNOWN

    assert KNOWN["torch._utils._rebuild_tensor_v2"].call is not None


def test_structures_that_share_themselves_are_bounded():
    value: object = {}
    for _ in range(40):
        value = {"a": value, "b": value}
    with pytest.raises(FormatError, match="share too much"):
        store.open(zipped(value))
    value = {"n": 1}
    for _ in range(18):  # a quarter of a million values in a file of a thousand bytes
        value = {"a": value, "b": value}
    with pytest.raises(FormatError, match="share too much"):
        store.open(zipped(value))
    circle: dict[str, object] = {"n": 1}
    circle["me"] = circle
    assert store.open(zipped(circle)).scalars == {"n": 1}


def rebuilt(shape, strides, offset=0, count=4) -> bytes:
    """The pickle of a tensor over storage "0"."""
    ints = lambda ns: pickle.dumps(tuple(ns), 2)[2:-1]  # noqa: E731
    number = lambda n: pickle.dumps(n, 2)[2:-1]  # noqa: E731
    storage = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpu" + number(count) + b"tQ"
    call = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + ints(shape) + ints(strides) + b"\x89NtR"
    return b"\x80\x02}X\1\0\0\0t" + call + b"s."


def test_storages_that_are_missing_compressed_or_big_endian():
    with pytest.raises(FormatError, match="which is not in the file"):
        store.open(zipped(rebuilt((4,), (1,))))
    with pytest.raises(FormatError, match="ends past its storage of 16 bytes"):
        store.open(zipped(rebuilt((8,), (1,), count=8), data__0=bytes(16)))
    with pytest.raises(FormatError, match="is not a storage"):
        store.open(zipped(b"\x80\x02(X\x07\x00\x00\x00storageK\x01tQ."))
    data = np.arange(4, dtype=">f4").tobytes()
    big = store.open(zipped(rebuilt((2, 2), (1, 2)), data__0=data, byteorder=b"big"))
    assert np.asarray(big["t"]).tolist() == [[0, 2], [1, 3]]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", bytes(1000))
    with pytest.raises(FormatError, match="compressed or encrypted"):
        store.open(file.getvalue())
    with pytest.raises(FormatError, match=r"neither \.npy files nor"):
        store.open(zipped(b"x").replace(b"data.pkl", b"data.pkm"))


def test_a_plain_pickle_is_read_and_other_bytes_are_refused():
    assert store.open(pickle.dumps({"a": 1, "b": [1, 2]}, 2)).scalars == {"a": 1}
    with pytest.raises(FormatError):
        store.open(pickle.dumps(3, 2) + b"more")
    with pytest.raises(FormatError, match="cut off"):
        store.open((HERE / "state_dict.pt").read_bytes()[:300])
    assert isinstance(store.open(pickle.dumps(collections.OrderedDict(a=1), 2)).scalars["a"], int)


# -- the files of Burn's own tests


def test_every_file_of_burns_tests_is_read_or_refused(shared):
    refused = []
    for path in sorted((shared / "pytorch").iterdir()):
        try:
            opened = store.open(path)
        except EmberletError as error:
            refused.append(path.name)
            assert str(path) in str(error)
            continue
        assert len(opened) > 0
        for snapshot in opened.values():
            assert np.asarray(snapshot).shape == snapshot.shape
    assert refused == ["broken.pt"]
    assert len(store.open(shared / "safetensors" / "multi_layer.safetensors")) > 0


def test_burns_files_hold_what_burns_tests_say(shared):
    folder = shared / "pytorch"
    assert np.asarray(store.open(folder / "tar_weight_bias.tar")["bias"]).tolist() == pytest.approx([0.01, 0.02])
    assert (
        np.asarray(store.open(folder / "tar_2d_tensor.tar")["matrix"]).tolist()
        == np.arange(1, 13.0).reshape(3, 4).tolist()
    )
    assert list(store.open(folder / "top_level_key__top_level_key.pt", key="my_state_dict")) == [
        "conv1.weight", "conv1.bias",
    ]  # fmt: skip
    config = store.config_from_file(folder / "config__weights_with_config.pt", "my_config")
    assert config["some_str"] == "hello"

    class Convs(Module):
        def __init__(self):
            self.fc = [nn.Conv2d(2, 2, 3) for _ in range(5)]

    result = Convs().load_from(folder / "non_contiguous_indexes__non_contiguous_indexes.pt")
    assert len(result.applied) == 10
    assert emberlet.store is store


def test_an_invalid_storage_is_rejected_whichever_part_is_wrong():
    from emberlet.store.formats.torch_tensors import Storage, StorageType, storage_of

    kind = StorageType(dtypes.float32)
    assert isinstance(storage_of(("storage", kind, "0", "cpu", 4)), Storage)
    for wrong in (
        ("storage", "FloatStorage", "0", "cpu", 4), ("storage", kind, 0, "cpu", 4), ("storage", kind, "0", "cpu", "4"),
        ("storage", kind, "0", "cpu", True), ("storage", kind, "0", "cpu", -1), ("storage", kind, "0", "cpu", 1 << 62),
        ("other", kind, "0", "cpu", 4), ("storage", kind, "0", "cpu"), ["storage", kind, "0", "cpu", 4],
    ):  # fmt: skip
        assert storage_of(wrong) is None
