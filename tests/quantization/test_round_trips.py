"""Drawn schemes and shapes through every format that has them: odd shapes, one row, blocks that do not fill a channel,
and nothing. What a file says is computed by NumPy from the reading of the format's own package, or read by onnxruntime
and the gguf package. Board builds read the ONNX files, too."""

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
import safetensors
from emberlet import nn, store
from emberlet.codegen.quantized import packing
from emberlet.errors import DTypeError, UnsupportedError
from emberlet.micro.builder.from_ir import read_graph
from support.rows import every

SCALES = ("float32", "float16", "bfloat16", "float8_e8m0fnu", "float8_e4m3fn")
LEVELS = ("tensor", "channel", 8, 32, (4, 8), (3, 16))
VALUES = [(8, None), (4, None), (2, None), (8, "float8_e4m3fn"), (8, "float8_e5m2"), (4, "float4_e2m1fn"), (4, "nf4")]
SHAPES = [(33, 5), (3, 1), (40, 1), (1, 8), (7, 3), (100, 2), (16, 9), (5, 33), (40, 40), (0, 4), (4, 0)]
LAYERS = {"dense": lambda shape: nn.Linear(*shape, bias=False), "table": lambda shape: nn.Embedding(*shape)}
RECORDED = ("float32", "float16", "bfloat16", "uint8")  # the dtypes of Burn's records
IN_SAFETENSORS = {"F32": "<f4", "F16": "<f2", "BF16": "bfloat16", "F8_E8M0": "float8_e8m0fnu",
                  "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "U8": "u1"}  # fmt: skip
Scheme = dict[str, Any]


def rows(count: int, values: list[tuple[int, str | None]]) -> list[tuple[Scheme, tuple[int, int], str]]:
    """Schemes, shapes and layers; every value, mode, level, dtype of scales, shape and layer is among them."""
    rng, found = np.random.default_rng(35), []
    cycles = [itertools.cycle(rng.permutation(len(x))) for x in (values, LEVELS, SCALES, SHAPES)]
    for k in range(count):
        v, level, scale, shape = (next(c) for c in cycles)
        bits, value = values[v]
        mode = "affine" if value is None and k % 3 else "symmetric"
        scheme = {"bits": bits, "mode": mode, "level": LEVELS[level], "value_dtype": value}
        scheme["scale_dtype"] = SCALES[scale]
        found.append((scheme, SHAPES[shape], ("dense", "table")[int(rng.integers(2))]))
    return found


def network(shape: tuple[int, int], kind: str) -> Any:
    net = emberlet.Module()
    net.layer = LAYERS[kind](shape)
    return net


def drawn(scheme: Scheme, shape: tuple[int, int], kind: str) -> Any:
    """A network with a quantized layer, whose channels differ in size."""
    rng, net = np.random.default_rng(5), network(shape, kind)
    x = rng.normal(size=shape) * np.exp2(rng.integers(-3, 3, shape[:1]))[:, None]
    net.layer.weight.set(emberlet.asarray(x.astype(np.float32)))
    net.quantize_weights(**scheme)
    return net


def real(net: Any) -> Any:
    return np.asarray(net.layer.weight.val())


def by_safetensors(data: bytes) -> dict[str, Any]:
    """The tensors of a file as the safetensors package reads them; floats as float32."""
    held = {}
    for name, part in safetensors.deserialize(data):
        raw = np.frombuffer(bytes(part["data"]), np.uint8)
        if part["dtype"] == "F4":
            raw = np.stack([raw & 15, raw >> 4], 1).reshape(-1)
            held[name] = raw.view(ml_dtypes.float4_e2m1fn).astype(np.float32).reshape(part["shape"])
        else:
            x = raw.view(np.dtype(IN_SAFETENSORS[part["dtype"]])).reshape(part["shape"])
            held[name] = x if part["dtype"] == "U8" else x.astype(np.float32)
    return held


def by_numpy(held: dict[str, Any], net: Any) -> Any:
    """The weight that the tensors of a file stand for, as docs/store.md says."""
    weight = net.layer.weight
    parts = {name.removeprefix("layer.weight."): x for name, x in held.items()}
    if "layer.weight" in held:  # too small to be quantized
        return held["layer.weight"]
    if 0 in weight.shape:
        return np.zeros(weight.shape, np.float32)
    values, channels = parts["values"], weight.shape[weight.axis]
    if values.dtype == np.uint8:
        shifts = np.arange(0, 8, weight.bits, dtype=np.uint8)
        values = (values[..., None] >> shifts & ((1 << weight.bits) - 1)).reshape(*values.shape[:2], -1)
    scale = parts["scale"].astype(np.float32) * parts.get("tensor_scale", np.float32(1))
    scale = np.repeat(scale.reshape(-1, values.shape[1]), weight.rows, 0)[:channels, :, None]
    if "levels" in parts:
        x = parts["levels"][values]
    elif values.dtype != np.uint8:
        x = values
    else:
        zero = parts.get("zero_point")
        x = values - (np.float32(1 << (weight.bits - 1)) if zero is None else zero.reshape(*values.shape[:2], 1))
    found = (x * scale).reshape(channels, -1)[:, : weight.count]
    return found if weight.axis == 0 else found.T


def check(net: Any, source: Any, scheme: Scheme, shape: tuple[int, int], kind: str, exact: bool = True) -> None:
    """A layer of the same scheme takes what a file holds as it is, unless it holds floats, and a float layer its
    numbers."""
    same, wide, wanted = network(shape, kind), network(shape, kind), real(net)
    wide.load_from(source, layout="burn")
    np.testing.assert_allclose(real(wide), wanted, rtol=1e-6, atol=0)
    same.quantize_weights(**scheme)
    lost = same.load_from(source, layout="burn").quantized
    if exact:
        assert max(lost.values(), default=0.0) < 1e-6
        np.testing.assert_allclose(real(same), wanted, rtol=1e-6, atol=0)


@every("scheme, shape, kind", rows(420, VALUES), share=6)
def test_own_files_are_what_numpy_reads(scheme: Scheme, shape: tuple[int, int], kind: str, tmp_path: Path) -> None:
    net = drawn(scheme, shape, kind)
    for form in ("burnpack", "safetensors", "npz"):
        file = io.BytesIO()
        net.save_into(file, format=form)
        if form != "burnpack":
            held = (
                by_safetensors(file.getvalue()) if form == "safetensors" else dict(np.load(io.BytesIO(file.getvalue())))
            )
            np.testing.assert_allclose(by_numpy(held, net), real(net), rtol=1e-6, atol=0)
        check(net, store.open(file.getvalue()), scheme, shape, kind)
    file = io.BytesIO()
    net.save_into(file, format="burnpack", names="burn")
    integers = scheme["mode"] == "symmetric" and scheme["value_dtype"] is None and scheme["scale_dtype"] != SCALES[-1]
    check(net, store.open(file.getvalue()), scheme, shape, kind, exact=integers)
    stored = {param.val().dtype.name for param in net.params()}
    for recorder in (store.NamedMpkFileRecorder(), store.PrettyJsonFileRecorder()):
        if not stored <= {*RECORDED}:
            with pytest.raises(DTypeError, match=r"records hold no .*; write a burnpack or safetensors"):
                net.save_file(tmp_path / "net", recorder)
            continue
        net.save_file(tmp_path / "net", recorder)
        [path] = tmp_path.glob("net*")
        check(net, store.open(path), scheme, shape, kind)
        path.unlink()


def as_onnx(net: Any, kind: str, form: str) -> bytes:
    """A product with the weight, or a look-up of its rows."""
    w = real(net)
    node = ["MatMul", ["x", "w"]] if kind == "dense" else ["Gather", ["w", "x"]]
    x = onnx.helper.make_tensor_value_info("x", *([1, ["n", w.shape[0]]] if kind == "dense" else [7, ["n"]]))
    y = onnx.helper.make_tensor_value_info("y", 1, ["n", w.shape[1]])
    held = [onnx.numpy_helper.from_array(w.astype(np.float32), "w")]
    graph = onnx.helper.make_graph([onnx.helper.make_node(*node, ["y"])], "g", [x], [y], held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    made = packing.packed(model, {"w": packing.Placed(net.layer.weight, False)}, form)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


@every("scheme, shape, kind", rows(360, VALUES[:5]), share=6)
def test_onnx_files_are_what_onnxruntime_reads(scheme: Scheme, shape: tuple[int, int], kind: str) -> None:
    net = drawn(scheme, shape, kind)
    if not hasattr(net.layer.weight, "scheme") or 0 in shape:  # onnxruntime has no products of nothing
        return
    for form in ("qdq", "nbits"):
        try:
            data = as_onnx(net, kind, form)
        except UnsupportedError as error:
            narrow = scheme["mode"] == "affine" and scheme["scale_dtype"] != "float32"
            assert scheme["scale_dtype"] == SCALES[-1] or (narrow and "zero points" in str(error))
            continue
        options = onnxruntime.SessionOptions()  # optimized, it rounds x to 8 bits
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        x = np.eye(shape[0], dtype=np.float32) if kind == "dense" else np.arange(shape[0])
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], real(net))
        board = read_graph(data, "net")
        last = board.run({"x": x[-1:].astype(np.float32)})[board.outputs[0]]
        np.testing.assert_allclose(last.reshape(-1), real(net)[-1], rtol=1e-6, atol=0)
        opened = store.open(data, format="onnx").rename([("^w", "layer.weight")])
        check(net, opened, scheme, shape, kind)


@pytest.mark.parametrize("kind", ["dense", "table"])
@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("length", [32, 96, 40, 16])
def test_gguf_files_are_what_the_gguf_package_reads(length: int, count: int, kind: str, tmp_path: Path) -> None:
    shape = (length, count) if kind == "dense" else (count, length)
    for bits, mode, name in ((8, "symmetric", "Q8_0"), (4, "symmetric", "Q4_0"), (4, "affine", "Q4_1")):
        scheme = {"bits": bits, "mode": mode, "level": 32, "scale_dtype": "float16"}
        net = drawn(scheme, shape, kind)
        path = tmp_path / f"{name}.gguf"
        if length % 32:
            with pytest.raises(DTypeError, match="rows that blocks of 32 fill"):
                net.save_into(path)
            continue
        net.save_into(path)
        [tensor] = gguf.GGUFReader(path).tensors
        assert tensor.tensor_type.name == name
        theirs = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        wanted = real(net).T if kind == "dense" else real(net)
        atol = np.abs(wanted).max() / 700 if mode == "affine" else 0  # a minimum of float16
        np.testing.assert_allclose(theirs.reshape(wanted.shape), wanted, rtol=1e-6, atol=atol)
        again = network(shape, kind)
        again.quantize_weights(**scheme)
        assert max(again.load_from(path, layout="pytorch").quantized.values(), default=0.0) < 1e-3
        np.testing.assert_allclose(real(again), real(net), rtol=1e-6, atol=atol)
