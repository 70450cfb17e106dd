"""GGUF, .npz and ONNX files as stores, compared with their own libraries."""

from __future__ import annotations

import io
import zipfile

import gguf
import ml_dtypes
import numpy as np
import onnx
import pytest
from emberlet import dtypes, store
from emberlet.backend import get_backend
from emberlet.errors import FormatError
from onnx import TensorProto, helper, numpy_helper
from support.rows import every

# -- GGUF


def gguf_file(path, tensors, align=None):
    """Written by the gguf package. tensors: name -> (array, kind or None); bytes for a kind."""
    writer = gguf.GGUFWriter(path, "llama")
    if align:
        writer.add_custom_alignment(align)
    writer.add_name("tiny")
    writer.add_uint32("llama.block_count", 3)
    writer.add_float32("rate", 0.5)
    writer.add_array("tokens", ["a", "bc", "ü"])
    writer.add_array("scores", [1, 2, 3])
    writer.add_bool("flag", True)
    for name, (array, kind) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=None if kind is None else gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_blocks_are_dequantized_without_numpy_the_same(tmp_path, monkeypatch):
    from emberlet.store.formats import gguf_blocks

    for kind, block in gguf_blocks.BLOCKS.items():
        raw = np.random.default_rng(kind).integers(0, 60, block.nbytes, dtype=np.uint8).tobytes()
        there = gguf_blocks.dequantize(memoryview(raw), block, (1, block.weights_each)).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(gguf_blocks, "host_backend", lambda: get_backend("python"))
            here = gguf_blocks.dequantize(memoryview(raw), block, (1, block.weights_each))
        assert here.backend.name == "python"
        np.testing.assert_allclose(here.tolist(), there, rtol=1e-6)


def test_gguf_tensors_metadata_and_alignment(tmp_path):
    arrays = {
        "f": np.arange(6, dtype=np.float32).reshape(2, 3), "h": np.float16([1.5, 2]), "i": np.int32([[1], [2]]),
        "d": np.float64([0.1]),
    }  # fmt: skip
    bits = np.asarray([1, 2.5], ml_dtypes.bfloat16).view(np.uint16).view(np.uint8).reshape(1, 4)
    for align in (None, 256):
        gguf_file(tmp_path / "m.gguf", {**{n: (a, None) for n, a in arrays.items()}, "b": (bits, "BF16")}, align)
        opened = store.open(tmp_path / "m.gguf", zero_copy=True)
        for name, array in arrays.items():
            assert np.array_equal(np.asarray(opened[name]), array)
        assert opened["b"].dtype is dtypes.bfloat16
        assert np.asarray(opened["b"]).astype(np.float32).tolist() == [[1.0, 2.5]]
        assert opened.metadata["general.name"] == "tiny"
        assert opened.scalars["llama.block_count"] == 3
        assert opened.scalars["flag"] is True
        assert opened.extras["tokens"] == ["a", "bc", "ü"]
        assert opened.layout == "pytorch"


def test_a_gguf_type_that_is_not_read_refuses_its_tensor_only(tmp_path):
    raw = np.zeros((1, 82), np.uint8)
    gguf_file(tmp_path / "m.gguf", {"q2": (raw, "IQ2_S"), "f": (np.float32([1]), None)})
    opened = store.open(tmp_path / "m.gguf")
    assert opened.tensor("f").tolist() == [1.0]
    with pytest.raises(FormatError, match=r"'q2'.*type 22.*Q4_0"):
        opened.tensor("q2")


# -- .npz

ARRAYS = {
    "f": np.arange(6, dtype=np.float32).reshape(2, 3), "fortran": np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
    "b": np.array([True, False]), "scalar": np.array(7, np.int16), "empty": np.zeros((0, 2)), "a/b": np.float16([1]),
}  # fmt: skip


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("zero_copy", [False, True])
def test_npz_files_of_numpy_are_read(write, zero_copy, tmp_path):
    write(tmp_path / "x.npz", texts=np.array(["a"]), **ARRAYS)
    opened = store.open(tmp_path / "x.npz", zero_copy=zero_copy)
    for name, array in ARRAYS.items():
        assert np.array_equal(np.asarray(opened[name]), array)
        assert opened[name].dtype.name == array.dtype.name
    assert opened.extras == {"texts": "an array of <U1, which is not read"}


def test_npz_files_are_written_for_numpy(tmp_path):
    store.store_of(ARRAYS).save(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as found:
        assert {n: found[n].tolist() for n in found.files} == {n: a.tolist() for n, a in ARRAYS.items()}


def test_npz_that_lie_about_their_size_are_refused(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\1\0" + b"v\0" + b"{'descr':'<f4','fortran_order':False,'shape':(9,)}")
    with pytest.raises(FormatError, match="npy"):
        store.open(file.getvalue())
    with pytest.raises(FormatError, match="cut off"):
        store.open(file.getvalue()[:-30])


# -- ONNX


def model(initializers, path=None, **options):
    graph = helper.make_graph([], "g", [], [], initializer=initializers)
    made = helper.make_model(graph, producer_name="torch")
    helper.set_model_props(made, {"author": "me"})
    if path:
        onnx.save(made, path, **options)
    return made.SerializeToString()


@pytest.mark.parametrize("raw", [True, False])
@every("name", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT64", "INT32", "INT16", "INT8", "UINT8",
                                  "UINT16", "UINT32", "UINT64", "BOOL", "INT4", "UINT4", "UINT2", "FLOAT8E4M3FN",
                                  "FLOAT6E2M3", "FLOAT6E3M2", "FLOAT4E2M1"])  # fmt: skip
def test_initializers_are_what_onnx_reads(name, raw):
    kind = getattr(TensorProto, name)
    values = np.array([[0, 1, 1], [1, 0, 1]]) * (1 if name == "BOOL" else 3)
    if raw:
        array = values.astype(helper.tensor_dtype_to_np_dtype(kind))
        made = numpy_helper.from_array(array, "w")
    else:
        made = helper.make_tensor("w", kind, values.shape, values.reshape(-1).tolist())
    opened = store.open(model([made]), format="onnx")
    assert np.asarray(opened["w"]).astype(float).tolist() == values.tolist()
    assert opened.metadata == {"producer": "torch", "author": "me"}


def test_external_data_is_read_from_beside_the_model_only(tmp_path):
    array = np.arange(2000, dtype=np.float32)
    model([numpy_helper.from_array(array, "w")], tmp_path / "m.onnx", save_as_external_data=True, location="m.data",
          size_threshold=0)  # fmt: skip
    assert np.array_equal(np.asarray(store.open(tmp_path / "m.onnx")["w"]), array)
    for location in ("../m.data", "/etc/passwd", ""):
        made = onnx.load(tmp_path / "m.onnx", load_external_data=False)
        made.graph.initializer[0].external_data[0].value = location
        (tmp_path / "evil.onnx").write_bytes(made.SerializeToString())
        with pytest.raises(FormatError, match="is not in the model's folder"):
            store.open(tmp_path / "evil.onnx").tensor("w")


def test_what_is_no_onnx_model_is_refused():
    for data, says in [(b"", "holds no graph"), (b"\xff" * 20, "does not end"), (b"\x3a\x7f", "goes past its message")]:
        with pytest.raises(FormatError, match=says):
            store.open(data, format="onnx")
    made = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    made.dims[0] = 1 << 20
    with pytest.raises(FormatError, match="fewer elements"):
        store.open(model([made]), format="onnx")
    long = helper.make_tensor("w" * (1 << 20), TensorProto.FLOAT, [1], [1.0])
    assert list(store.open(model([long]), format="onnx")) == ["w" * (1 << 20)]
    long.name += "w"
    with pytest.raises(FormatError, match="a text field holds no text"):
        store.open(model([long]), format="onnx")
    strings = helper.make_tensor("s", TensorProto.STRING, [1], [b"x"])
    assert store.open(model([strings]), format="onnx").extras["s"].endswith("type 8, which is not read")
