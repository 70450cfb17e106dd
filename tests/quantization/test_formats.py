"""Every scheme through every format: each file either gives the same weights back, or is refused with a reason."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import emberlet
import gguf
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import functional as F
from emberlet import nn, store
from emberlet.codegen.quantized import packing
from emberlet.errors import DTypeError, EmberletError, FormatError, UnsupportedError
from support.rows import every

RNG = np.random.default_rng(4)
FORMATS = ("bpk", "safetensors", "npz", "gguf", "onnx", "onnx nbits")
SCALES = ("float32", "float16", "bfloat16", "float8_e8m0fnu", "float8_e4m3fn")
INTEGERS = [
    {"bits": bits, "mode": mode, "level": level, "scale_dtype": scale, "value_dtype": None}
    for bits, mode, level, scale in itertools.product(
        (8, 4, 2), ("symmetric", "affine"), ("tensor", "channel", 16, 32), SCALES
    )
]
FLOATS = [
    {"bits": bits, "mode": "symmetric", "level": level, "scale_dtype": scale, "value_dtype": value}
    for (bits, value), level, scale in itertools.product(
        [(8, "float8_e4m3fn"), (8, "float8_e5m2"), (4, "float4_e2m1fn")], ("channel", 16), SCALES
    )
]
MORE = [
    {"bits": bits, "mode": "symmetric", "level": level, "scale_dtype": scale, "value_dtype": value}
    for bits, value, level in [(4, "nf4", "channel"), (4, "nf4", 16), (4, "nf4", (4, 4)), (4, None, (4, 4)),
                               (8, None, (4, 4)), (8, "float8_e4m3fn", (4, 4)), (8, None, (128, 128))]
    for scale in SCALES
]  # fmt: skip
IN_GGUF = {(8, "symmetric"): "Q8_0", (4, "symmetric"): "Q4_0", (4, "affine"): "Q4_1"}


def why_not(ending: str, scheme: dict[str, Any]) -> str:
    """Why a format does not hold a scheme; "" if it does."""
    if ending == "gguf":
        if scheme["value_dtype"] is not None or scheme["level"] == (4, 4):
            return "only matrices of integers"
        if (scheme["bits"], scheme["mode"]) not in IN_GGUF or scheme["level"] != 32:
            return "GGUF has no such blocks"
        if scheme["scale_dtype"] in ("float32", "float8_e4m3fn"):
            return "no numbers of float16"
    if ending.startswith("onnx"):
        if scheme["scale_dtype"] == "float8_e4m3fn":
            return "ONNX has no scales of two levels"
        if scheme["value_dtype"] == "nf4":
            return "ONNX has no levels of nf4"
        if scheme["value_dtype"] == "float4_e2m1fn":
            return "onnxruntime reads no weights of float4_e2m1fn"
        narrow = scheme["scale_dtype"] != "float32"
        if scheme["mode"] == "affine" and narrow and zero_points_leave(scheme):
            return "zero points are no integers"
    return ""


def zero_points_leave(scheme: dict[str, Any]) -> bool:
    """Whether zero points by narrow scales are beyond the integers of as many bits."""
    top = (1 << scheme["bits"]) - 1
    net = drawn()
    for rows in (np.asarray(net.fc.weight.val()).T, np.asarray(net.table.weight.val())):
        level = scheme["level"]
        size = rows.shape[1] if isinstance(level, str) else level
        x = rows.reshape(-1, rows.shape[1] // size, size)
        axes = None if level == "tensor" else 2
        low, high = np.minimum(x.min(axes), 0), np.maximum(x.max(axes), 0)
        scale = ((high - low) / np.float32(top)).astype(np.float32)
        if scheme["scale_dtype"] == "float8_e8m0fnu":  # rounded up
            scale = np.exp2(np.ceil(np.log2(scale)))
        elif scheme["scale_dtype"] != "float32":
            scale = scale.astype(getattr(ml_dtypes, scheme["scale_dtype"], np.float16)).astype(np.float32)
        if (np.rint(-low / scale) > top).any():
            return True
    return False


def as_onnx(net: Any, form: str) -> bytes:
    """The network as an ONNX file with its packed weights."""
    x = onnx.helper.make_tensor_value_info("x", 1, ["n", 64])
    ids = onnx.helper.make_tensor_value_info("ids", 7, ["k"])
    y, rows = (onnx.helper.make_tensor_value_info(*z) for z in (("y", 1, ["n", 6]), ("rows", 1, ["k", 64])))
    nodes = [onnx.helper.make_node("MatMul", ["x", "fc.weight"], ["xw"]),
             onnx.helper.make_node("Add", ["xw", "fc.bias"], ["y"]),
             onnx.helper.make_node("Gather", ["table.weight", "ids"], ["rows"])]  # fmt: skip
    held = [onnx.numpy_helper.from_array(np.asarray(value.val(), np.float32), name) for name, value in
            (("fc.weight", net.fc.weight), ("table.weight", net.table.weight), ("fc.bias", net.fc.bias))]  # fmt: skip
    graph = onnx.helper.make_graph(nodes, "g", [x, ids], [y, rows], held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    weights = {f"{name}.weight": packing.Placed(getattr(net, name).weight, False) for name in ("fc", "table")}
    made = packing.packed(model, weights, form)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


def read_by_onnxruntime(data: bytes) -> list[Any]:
    """Both weights, as onnxruntime dequantizes them."""
    options = onnxruntime.SessionOptions()  # optimized, it rounds x to 8 bits
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    given = {"x": np.eye(64, dtype=np.float32), "ids": np.arange(7)}
    y, rows = session.run(["y", "rows"], given)
    return [y, rows]


def network() -> Any:
    net = emberlet.Module()
    net.fc, net.table = nn.Linear(64, 6), nn.Embedding(7, 64)
    return net


def drawn() -> Any:
    """The same weights in each call."""
    net, rng = network(), np.random.default_rng(5)
    for each in (net.fc, net.table):
        w = rng.normal(size=each.weight.shape) * np.exp2(rng.integers(-3, 3, each.weight.shape[0]))[:, None]
        each.weight.set(emberlet.asarray(w.astype(np.float32)))
    net.fc.bias.set(emberlet.zeros(6))
    return net


@every("scheme", INTEGERS + FLOATS + MORE)
def test_a_scheme_comes_back_from_every_format_that_has_it(scheme: dict[str, Any], tmp_path: Path) -> None:
    net = drawn()
    net.quantize_weights(**scheme)
    wanted = [np.asarray(each.weight.val()) for each in (net.fc, net.table)]
    for ending in FORMATS:
        reason, file = why_not(ending, scheme), io.BytesIO()
        name = {"bpk": "burnpack"}.get(ending, ending)
        if ending.startswith("onnx"):
            form = "nbits" if "nbits" in ending else "qdq"
            if reason:
                with pytest.raises(EmberletError, match=reason):
                    as_onnx(net, form)
                continue
            file.write(as_onnx(net, form))
            for real, theirs in zip(wanted, read_by_onnxruntime(file.getvalue()), strict=True):
                np.testing.assert_array_equal(theirs, real)
        elif reason:
            with pytest.raises(EmberletError, match=reason):
                net.save_into(file, format=name)
            continue
        else:
            net.save_into(file, format=name)
        same, wide = network(), network()
        same.quantize_weights(**scheme)
        path = tmp_path / f"m.{ending.partition(' ')[0]}"
        path.write_bytes(file.getvalue())
        opened = store.open(path)
        lost = same.load_from(opened).quantized
        assert max(lost.values(), default=0.0) < (1e-3 if ending == "gguf" else 1e-12), ending
        wide.load_from(opened, layout=None if ending == "gguf" else "burn")
        exact = ending != "gguf" or scheme["mode"] == "symmetric"
        for real, a, b in zip(wanted, (same.fc, same.table), (wide.fc, wide.table), strict=True):
            step = 0.0 if exact else np.abs(real).max() / 7 / 100
            np.testing.assert_allclose(np.asarray(a.weight.val()), real, rtol=1e-6, atol=step)
            np.testing.assert_allclose(np.asarray(b.weight.val()), real, rtol=1e-6, atol=step)


@pytest.mark.parametrize(("form", "kind"), IN_GGUF.items())
def test_ggufs_own_package_reads_the_blocks(form: Any, kind: str, tmp_path: Path) -> None:
    net = network()
    net.quantize_weights(form[0], form[1], 32, scale_dtype="float16")
    net.save_into(tmp_path / "m.gguf", metadata={"general.name": "drawn"})
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    assert reader.get_field("general.name").contents() == "drawn"
    found = {t.name: t for t in reader.tensors}
    assert found["fc.bias"].tensor_type.name == "F32"
    np.testing.assert_array_equal(found["fc.bias"].data, np.asarray(net.fc.bias.val()))
    for name, wanted in (
        ("fc.weight", np.asarray(net.fc.weight.val()).T), ("table.weight", np.asarray(net.table.weight.val()))
    ):  # fmt: skip
        tensor = found[name]
        assert tensor.tensor_type.name == kind
        assert tuple(tensor.shape[::-1]) == wanted.shape
        theirs = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_allclose(
            theirs, wanted, rtol=1e-6, atol=np.abs(wanted).max() / 700 if "affine" in form else 0
        )


def test_floats_and_integers_of_every_dtype_are_ggufs(tmp_path: Path) -> None:
    kinds = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "int8": "I8", "int16": "I16",
             "int32": "I32", "int64": "I64"}  # fmt: skip
    given = {name: emberlet.asarray(RNG.integers(-9, 9, (3, 5))).astype(name) for name in kinds}
    store.save(store.store_of(given), tmp_path / "m.gguf")
    for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors:
        assert tensor.tensor_type.name == kinds[tensor.name]
        if tensor.name != "bfloat16":
            np.testing.assert_array_equal(tensor.data, np.asarray(given[tensor.name]))
    opened = store.open(tmp_path / "m.gguf")
    for name, value in given.items():
        np.testing.assert_array_equal(np.asarray(opened[name].tensor()), np.asarray(value))
    with pytest.raises(EmberletError, match="uint8, which GGUF has no type for"):
        store.save(store.store_of({"x": emberlet.asarray([1]).astype("uint8")}), tmp_path / "n.gguf")
    assert not (tmp_path / "n.gguf").exists()


def test_blocks_of_a_file_are_written_again_as_they_are(tmp_path: Path) -> None:
    raw = gguf.quants.quantize(RNG.normal(size=(5, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q4_0)
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_tensor("w", raw, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    store.open(tmp_path / "a.gguf").save(tmp_path / "b.gguf")
    [tensor] = gguf.GGUFReader(tmp_path / "b.gguf").tensors
    assert tensor.tensor_type.name == "Q4_0"
    np.testing.assert_array_equal(tensor.data.reshape(-1), raw.reshape(-1))


def test_a_convolution_and_a_file_in_burns_layout_are_refused(tmp_path: Path) -> None:
    conv = nn.Conv2d(4, 4, 3)
    conv.quantize_weights(4, level=4)
    with pytest.raises(UnsupportedError, match="only matrices"):
        conv.save_into(tmp_path / "m.gguf")
    with pytest.raises(EmberletError, match="these lie as Burn"):
        store.from_module(nn.Linear(3, 2)).save(tmp_path / "m.gguf")


@pytest.mark.parametrize("align", [8, 64, 4096])
def test_the_alignment_and_version_of_a_source_are_not_those_of_its_copy(align: int, tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "any")
    writer.add_custom_alignment(align)
    writer.add_quantization_version(1)
    rows = RNG.normal(size=(3, 64)).astype(np.float32)
    writer.add_tensor("odd", rows[0, :5].copy())
    writer.add_tensor("w", gguf.quants.quantize(rows, gguf.GGMLQuantizationType.Q4_0), raw_dtype=2)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    opened = store.open(tmp_path / "a.gguf")
    opened.save(tmp_path / "b.gguf", metadata={"general.alignment": "64"})
    reader = gguf.GGUFReader(tmp_path / "b.gguf")
    assert reader.alignment == 32
    version = reader.get_field("general.quantization_version")
    assert (version.contents(), version.types) == (2, [gguf.GGUFValueType.UINT32])
    for tensor, name in zip(reader.tensors, ("odd", "w"), strict=True):
        theirs = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(theirs, np.asarray(opened[name]))
        np.testing.assert_array_equal(np.asarray(store.open(tmp_path / "b.gguf")[name]), theirs)


def test_a_minimum_that_float16_does_not_hold_is_refused(tmp_path: Path) -> None:
    made = nn.Linear(32, 2)
    made.weight.set(emberlet.asarray(np.linspace(-1e5, 0, 64, dtype=np.float32).reshape(32, 2)))
    made.quantize_weights(4, "affine", 32, scale_dtype="float16")
    with pytest.raises(DTypeError, match=r"'weight': the minimum of a block .* does not hold 9?[1-9].*burnpack"):
        made.save_into(tmp_path / "a.gguf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [None, 1 << 64, -(1 << 63) - 1, [1]])
def test_values_that_gguf_has_no_type_for_are_refused(value: Any) -> None:
    made = store.store_of({"a": np.ones(3, np.float32)})
    made.scalars["n"] = value
    with pytest.raises(DTypeError, match=r"the value 'n' is .*64 bits"):
        store.save(made, io.BytesIO(), format="gguf")


def test_names_of_tensors_have_63_bytes_at_most(tmp_path: Path) -> None:
    store.save(store.store_of({"é" + "a" * 61: np.ones(3, np.float32)}), tmp_path / "a.gguf")
    assert len(gguf.GGUFReader(tmp_path / "a.gguf").tensors) == 1
    with pytest.raises(FormatError, match=r"has 64 bytes.*rename="):
        store.save(store.store_of({"é" + "a" * 62: np.ones(3, np.float32)}), io.BytesIO(), format="gguf")


def recurrent_and_convolution() -> Any:
    net = emberlet.Module()
    net.conv, net.rows, net.lstm = nn.Conv2d(8, 6, (2, 4)), nn.Conv1d(4, 4, 16, groups=2), nn.Lstm(32, 8)
    return net


def weights_of(net: Any) -> dict[str, Any]:
    """The dequantized weights of convolutions and of the recurrent layer's matrices, by their names."""
    found = {}
    parts = [f"lstm.{gate}_gate.{part}_transform" for gate in ("input", "cell") for part in ("input", "hidden")]
    for name in (f"{layer}.weight" for layer in ("conv", "rows", *parts)):
        value = net
        for part in name.split("."):
            value = getattr(value, part)
        found[name] = np.asarray(value.val())
    return found


@every("scheme", INTEGERS + FLOATS + MORE, share=3)
def test_convolutions_and_recurrent_layers_come_back(scheme: dict[str, Any], tmp_path: Path) -> None:
    """From emberlet's own formats into layers of the same scheme and into float layers."""
    F.manual_seed(3)
    net = recurrent_and_convolution()
    net.quantize_weights(**scheme)
    wanted = weights_of(net)
    for ending in ("bpk", "safetensors", "npz"):
        net.save_into(tmp_path / f"m.{ending}", overwrite=True)
        same, wide = recurrent_and_convolution(), recurrent_and_convolution()
        same.quantize_weights(**scheme)
        opened = store.open(tmp_path / f"m.{ending}")
        assert max(same.load_from(opened).quantized.values(), default=0.0) < 1e-12, ending
        wide.load_from(opened, layout="burn")
        for each in (same, wide):
            for name, found in weights_of(each).items():
                np.testing.assert_allclose(found, wanted[name], rtol=1e-6, atol=0, err_msg=f"{ending} {name}")
