"""Stores: opening, partial reads, views, and loading and saving modules."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import emberlet
import numpy as np
import pytest
from emberlet import dtypes, nn, store
from emberlet.errors import DTypeError, EmberletError, FormatError, LoadError
from emberlet.module import Module
from emberlet.tensor import Tensor
from hypothesis import given, settings
from hypothesis import strategies as st


class Net(Module):
    def __init__(self, width: int = 3) -> None:
        self.encoder = [nn.Linear(2, width), nn.Linear(width, width)]
        self.norm = nn.BatchNorm(width)
        self.head = nn.Conv2d(width, 2, 3)

    def numbers(self) -> dict[str, list[float]]:
        return {name: p.val().tolist() for name, p in self.named_params()}


def filled(width: int = 3) -> Net:
    """A Net with distinct values."""
    net, at = Net(width), 0
    for param in net.params():
        param.set(emberlet.arange(at, at + param.size, dtype="float32").reshape(param.shape))
        at += param.size
    return net


ENDINGS = [".bpk", ".safetensors"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("zero_copy", [False, True])
def test_a_module_comes_back_from_every_format(ending, zero_copy, tmp_path):
    path = tmp_path / ("net" + ending)
    net, again = filled(), Net()
    assert net.save_into(path, metadata={"by": "me"}) == path.stat().st_size
    opened = store.open(path, zero_copy=zero_copy)
    assert opened.metadata["by"] == "me"
    result = again.load_from(opened)
    assert again.numbers() == net.numbers()
    assert sorted(result.applied) == sorted(net.numbers())
    assert not (result.missing or result.unused or result.wrong or result.skipped or result.transposed)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_snapshot_tells_its_shape_before_it_is_read(ending, tmp_path):
    filled().save_into(tmp_path / ("net" + ending))
    snapshot = store.open(tmp_path / ("net" + ending))["encoder.0.weight"]
    assert (snapshot.name, snapshot.dtype, snapshot.shape, snapshot.nbytes) == (
        "encoder.0.weight", dtypes.float32, (2, 3), 24,
    )  # fmt: skip
    assert np.asarray(snapshot).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.asarray(snapshot, np.float64).dtype == np.float64
    assert snapshot.tensor("python").backend.name == "python"
    assert bytes(snapshot.raw()) == np.arange(6, dtype="<f4").tobytes()


def test_a_store_is_a_mapping():
    opened = store.open(store.dumps(store.from_module(filled())))
    assert len(opened) == len(list(opened)) == 10
    assert "norm.weight" in opened
    assert opened.get("nothing") is None
    with pytest.raises(LoadError, match=r"'norm\.wieght'.*norm\.weight"):
        opened["norm.wieght"]
    with pytest.raises(KeyError):
        opened["x"]


def test_reading_copies_unless_asked_not_to():
    data = bytearray(store.dumps(store.from_module(filled()), "safetensors"))
    copied, shared = (store.open(data, zero_copy=z)["norm.weight"].tensor("numpy") for z in (False, True))
    before = copied.tolist()
    at = data.find(np.asarray(before, np.float32).tobytes())
    data[at : at + 4] = np.float32(77).tobytes()
    assert copied.tolist() == before
    assert shared.tolist()[0] == 77


@pytest.mark.skipif(os.name != "posix", reason="the file is shortened while it is open")
@pytest.mark.parametrize("ending", ENDINGS)
def test_truncating_a_file_that_is_open_raises_and_what_was_read_stays(ending, tmp_path):
    path = tmp_path / ("net" + ending)
    filled().save_into(path)
    opened = store.open(path)
    read = {name: s.tensor() for name, s in opened.items()}
    os.truncate(path, 64)
    for name, tensor in read.items():
        assert tensor.tolist() is not None
        with pytest.raises(FormatError, match="was truncated"):
            opened.tensor(name)


# -- views


def test_filters_take_patterns_names_and_functions():
    opened = store.from_module(filled())
    assert list(opened.filter(r"^norm\.")) == ["norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"]
    assert list(opened.filter([r"^norm\.w", r"head.*bias$"])) == ["norm.weight", "head.bias"]
    assert list(opened.filter(store.Filter(regex="^head", exact="norm.bias"))) == [
        "norm.bias", "head.weight", "head.bias",
    ]  # fmt: skip
    assert list(opened.filter(lambda name, container: "mean" in name)) == ["norm.running_mean"]
    assert len(opened.filter(store.Filter("norm") | store.Filter(exact=["head.bias"]))) == 5
    with pytest.raises(EmberletError, match="pattern is malformed"):
        opened.filter("(")


def test_filters_of_modules_see_the_containers():
    kept = store.from_module(filled(), filter=lambda name, container: container.split(".")[-1] == "Linear")
    assert list(kept) == ["encoder.0.weight", "encoder.0.bias", "encoder.1.weight", "encoder.1.bias"]
    kept = store.from_module(filled(), filter=lambda name, container: container == "Net.BatchNorm")
    assert next(iter(kept)) == "norm.weight"


def test_renames_chain_and_show_what_they_did():
    opened = store.from_module(filled()).rename([(r"^encoder\.(\d)", r"enc.h\1"), ("weight$", "w")])
    assert ("encoder.0.weight", "enc.h0.w") in opened.names
    assert "from 'encoder.0.weight'" in repr(opened["enc.h0.w"])
    assert list(opened.rename({"head.w": "h"}))[-2] == "h"
    with pytest.raises(LoadError, match="would both be called 'x'"):
        opened.rename(lambda name: "x")
    for bad in ((r"(", "x"), ("a", r"\2")):
        with pytest.raises(EmberletError, match="cannot rename"):
            opened.rename([bad])


def test_list_numbers_become_contiguous():
    names = ["fc.0.w", "fc.2.w", "fc.10.w", "fc.10.3.b", "other", "7.1", "7.5", "a.007", "a.8"]
    opened = store.Store({n: store.Snapshot(n, dtypes.float32, ()) for n in names}, format="x")
    assert list(opened.contiguous()) == ["fc.0.w", "fc.1.w", "fc.2.w", "fc.2.0.b", "other", "0.0", "0.1", "a.0", "a.1"]


def test_precisions_and_halves_are_made_on_reading():
    opened = store.store_of({"f": np.float32([1.5]), "i": np.int64([7]), "big": np.int64([1 << 40])})
    assert {n: s.dtype.name for n, s in opened.half().items()} == {"f": "float16", "i": "int64", "big": "int64"}
    half = opened.precision("half")
    assert half["i"].dtype is dtypes.int16
    assert half["i"].tensor().tolist() == [7]
    with pytest.raises(DTypeError, match="'big' holds integers"):
        half["big"].tensor()


def test_stores_are_merged_and_the_later_one_wins(tmp_path):
    base, special = filled(), Net()
    special.load_from({n: Tensor.__add__(t, 100.0) for n, t in base.to_record().items()}, layout="burn")
    merged = store.merge(base, store.from_module(special, filter="^encoder"))
    target = Net()
    target.load_from(merged)
    assert target.numbers()["head.bias"] == base.numbers()["head.bias"]
    assert target.numbers()["encoder.0.bias"] == special.numbers()["encoder.0.bias"]
    with pytest.raises(LoadError, match="different layouts"):
        store.merge(base, store.from_module(base, layout="pytorch"))


# -- loading


def test_a_module_takes_values_from_another_one_in_part():
    source, target = filled(), Net()
    before = target.numbers()["head.bias"]
    result = target.load_from(source, filter=["^encoder", "^norm"])
    assert sorted(result.skipped) == ["head.bias", "head.weight"]
    assert target.numbers()["encoder.1.weight"] == source.numbers()["encoder.1.weight"]
    assert target.numbers()["head.bias"] == before
    source.encoder[0].weight.set(emberlet.zeros((2, 3)))
    assert target.numbers()["encoder.0.weight"] != [[0.0] * 3] * 2


def test_missing_names_are_refused_with_similar_ones_and_nothing_changes():
    target = Net()
    before = target.numbers()
    with pytest.raises(LoadError) as caught:
        target.load_from(store.from_module(filled()).rename([("norm", "nrom")]))
    result = caught.value.result
    assert "missing: norm.weight (in the file: nrom.weight" in str(caught.value)
    assert result.suggestions["norm.weight"][0] == "nrom.weight"
    assert len(result.unused) == len(result.missing) == 4
    assert "4 missing" in str(result)
    assert target.numbers() == before


def test_part_of_a_module_is_loaded_on_request():
    target = Net()
    result = target.load_from(store.from_module(filled(), filter="^head"), partial=True)
    assert result.applied == ["head.weight", "head.bias"]
    assert len(result.missing) == 8


@pytest.mark.parametrize("partial", [False, True])
def test_a_value_that_does_not_fit_refuses_the_load(partial):
    target = Net()
    before = target.numbers()
    with pytest.raises(LoadError, match=r"encoder\.0\.bias.*\(4,\).*\(3,\)"):
        target.load_from(filled(4), partial=partial)
    assert target.numbers() == before
    result = target.load_from(filled(4), validate=False)
    assert "head.bias" in result.applied
    assert "encoder.0.bias" in result.wrong


def test_a_load_may_be_limited_to_classes_of_layers():
    result = Net().load_from(filled(), filter=lambda name, container: container.endswith("Conv2d"))
    assert result.applied == ["head.weight", "head.bias"]


# -- layouts


@pytest.mark.parametrize("ending", ENDINGS)
def test_pytorchs_layout_goes_out_and_comes_back(ending, tmp_path):
    path = tmp_path / ("net" + ending)
    net, again = filled(), Net()
    net.save_into(path, layout="pytorch")
    opened = store.open(path)
    assert opened.layout == "pytorch"
    assert opened["encoder.0.weight"].shape == (3, 2)
    assert opened["norm.num_batches_tracked"].dtype is dtypes.int64
    result = again.load_from(opened)
    assert result.transposed == ["encoder.0.weight", "encoder.1.weight"]
    assert result.unused == []
    assert again.numbers() == net.numbers()
    with pytest.raises(LoadError, match="'pytorch'"):
        again.load_from(opened, layout="burn")


def test_a_square_matrix_of_unknown_layout_is_refused_and_others_are_told_by_their_shape():
    net, again = filled(), Net()
    plain = {n: np.asarray(t) for n, t in net.to_record().items()}
    with pytest.raises(LoadError, match=r"encoder\.1\.weight: is square.*pass layout="):
        again.load_from(plain)
    again.load_from(plain, layout="burn")
    assert again.numbers() == net.numbers()
    turned = {n: v.T if v.ndim == 2 else v for n, v in plain.items()}
    again.load_from(turned, layout="pytorch")
    assert again.numbers() == net.numbers()
    result = again.load_from(turned, filter=r"encoder\.0")
    assert result.transposed == ["encoder.0.weight"]


def test_converting_a_store_keeps_what_it_says_of_its_layout(tmp_path):
    filled().save_into(tmp_path / "a.safetensors", layout="pytorch")
    store.open(tmp_path / "a.safetensors").half().save(tmp_path / "b.bpk")
    again = Net()
    again.load_from(tmp_path / "b")
    assert again.numbers() == filled().numbers()


# -- saving


def test_a_file_that_exists_is_replaced_only_on_request(tmp_path):
    path = tmp_path / "net.bpk"
    filled().save_into(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        Net().save_into(path)
    with pytest.raises(EmberletError, match="overwrite=True"):
        Net().save_into(tmp_path / "net")
    assert path.read_bytes() == before
    Net().save_into(path, overwrite=True)
    assert path.read_bytes() != before


@pytest.mark.parametrize("format", ["burnpack", "safetensors"])
def test_a_save_that_fails_leaves_the_old_file(format, tmp_path):
    path = tmp_path / "net"
    filled().save_into(path, format=format)
    before = path.read_bytes()

    def fail(backend):
        raise OSError("the disk is full")

    bad = store.Store({"t": store.Snapshot("t", dtypes.float32, (3,), make=fail)}, format="x")
    with pytest.raises(OSError, match="the disk is full"):
        store.save(bad, path, format=format)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["net"]


def test_saving_filters_renames_and_narrows(tmp_path):
    file = io.BytesIO()
    filled().save_into(
        file,
        format="safetensors",
        filter="^(norm|head.w)",
        rename=[("^norm", "bn")],
        precision="half",
        metadata={"a": "b"},
    )
    opened = store.open(file.getvalue())
    norms = ["bn.bias", "bn.running_mean", "bn.running_var", "bn.weight"]
    assert sorted(opened) == [*norms, "head.weight"]
    assert opened["head.weight"].dtype is dtypes.float16
    assert {opened[name].dtype for name in norms} == {dtypes.float32}
    assert opened.metadata["a"] == "b"


def test_shared_parameters_are_written_once_in_a_burnpack(tmp_path):
    net = filled()
    net.again = net.head
    size = len(store.dumps(store.from_module(filled())))
    net.save_into(tmp_path / "n.bpk")
    assert (tmp_path / "n.bpk").stat().st_size <= size + 256
    again = Net()
    again.again = again.head
    again.load_from(tmp_path / "n.bpk")
    assert again.numbers() == net.numbers()


def test_only_known_formats_are_written(tmp_path):
    with pytest.raises(EmberletError, match="'onnx'"):
        filled().save_into(tmp_path / "x", format="onnx")
    with pytest.raises(EmberletError, match="is not a pair of texts"):
        filled().save_into(tmp_path / "x", metadata={"a": 1})
    assert list(tmp_path.iterdir()) == []


# -- safetensors


def test_safetensors_own_library_reads_what_is_written_and_the_reverse(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    net = filled()
    net.save_into(tmp_path / "a.safetensors", metadata={"k": "v"})
    theirs = library.load_file(tmp_path / "a.safetensors")
    assert {n: v.tolist() for n, v in theirs.items()} == net.numbers()
    arrays = {
        "h": np.float16([1.5]), "d": np.float64([[2.5]]), "b": np.array([True, False]), "e": np.zeros((0, 3), np.int8),
        "s": np.array(7, np.uint16), "q": np.int64([-1]),
    }  # fmt: skip
    library.save_file(arrays, tmp_path / "b.safetensors", metadata={"format": "np"})
    opened = store.open(tmp_path / "b.safetensors")
    for name, array in arrays.items():
        found = np.asarray(opened[name])
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert np.array_equal(found, array)
    assert opened.metadata == {"format": "np"}
    assert store.dumps(opened, "safetensors") == (tmp_path / "b.safetensors").read_bytes()


@pytest.mark.parametrize("dtype", [d.name for d in dtypes.ALL if d.kind != "string"])
def test_every_dtype_survives_both_formats_or_is_refused_by_name(dtype):
    values = emberlet.asarray([0.0, 1.0, 1.0, 0.0]).astype(dtype)
    one = store.store_of({"x": values})
    for format in ("burnpack", "safetensors"):
        try:
            data = store.dumps(one, format)
        except DTypeError as error:
            assert format == "safetensors"
            assert dtype in ("int4", "int2", "uint4", "uint2")
            assert "a burnpack can" in str(error)
            continue
        found = store.open(data).tensor("x")
        assert found.dtype is dtypes.dtype(dtype)
        assert found.astype("float32").tolist() == [0, 1, 1, 0] or dtype == "float8_e8m0fnu"


def test_shards_are_written_together_and_read_by_their_index(tmp_path):
    net, again = filled(), Net()
    net.save_into(tmp_path / "model.safetensors", shard=60)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names[-1] == "model.safetensors.index.json"
    assert len(names) > 3
    for opened in (tmp_path, tmp_path / names[-1]):
        again.load_from(opened)
        assert again.numbers() == net.numbers()
    index = json.loads((tmp_path / names[-1]).read_text(encoding="utf-8"))
    assert index["metadata"]["total_size"] == 4 * net.num_params()
    with pytest.raises(EmberletError, match="exists; overwrite=True"):
        net.save_into(tmp_path / "model.safetensors", shard=60)


def test_files_of_no_known_format_are_refused(tmp_path):
    (tmp_path / "x.dat").write_bytes(b"hello, this is text")
    with pytest.raises(FormatError, match=r"x\.dat"):
        store.open(tmp_path / "x.dat")
    with pytest.raises(FormatError, match="unknown format 'tarball'"):
        store.open(b"", format="tarball")
    with pytest.raises(FileNotFoundError):
        store.open(tmp_path / "gone.safetensors")


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
shapes = st.lists(st.integers(0, 3), max_size=3)
kinds = st.sampled_from(["float32", "float16", "int64", "uint8", "bool", "float64"])


@settings(max_examples=60)
@given(
    tensors=st.dictionaries(names, st.tuples(kinds, shapes), max_size=5),
    metadata=st.dictionaries(names, names, max_size=3),
    format=st.sampled_from(["burnpack", "safetensors"]),
)
def test_any_names_and_shapes_come_back(tensors, metadata, format):
    metadata = {k: v for k, v in metadata.items() if (k, v) != ("format", "pt") and not k.startswith("emberlet.")}
    tensors.pop("__metadata__", None)
    made = {n: (np.arange(np.prod(s, dtype=int)).reshape(s) % 2).astype(k) for n, (k, s) in tensors.items()}
    opened = store.open(store.dumps(store.store_of(made), format, metadata))
    assert {n: (np.asarray(s).dtype.name, np.asarray(s).tolist()) for n, s in opened.items()} == {
        n: (v.dtype.name, v.tolist()) for n, v in made.items()
    }
    assert {k: v for k, v in opened.metadata.items() if k != "emberlet.layout"} == metadata


def test_a_path_may_be_any_kind_of_path(tmp_path):
    filled().save_into(str(tmp_path / "net"))
    assert Path(tmp_path / "net.bpk").exists()
    assert len(store.open(str(tmp_path / "net"))) == 10
