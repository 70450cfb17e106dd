"""Weights of 8 bits stay so in compiled files, and the loaded model has exactly the dequantized ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import functional as F
from emberlet.host.cli.compile import write
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile as compiled
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from support.onnx_models import with_constants
from support.rows import every

from tools.components import require

Array = np.ndarray[Any, Any]


def drawn(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(low, high, shape, dtype, endpoint=True)


@every("seed", range(12), share=3)
def test_a_file_holds_bytes_and_the_model_has_the_numbers(seed: int, tmp_path: Path) -> None:
    require("gpu-driver")
    rng = np.random.default_rng(seed)
    shape = [(48, 64), (64, 3, 5, 5), (7, 31, 16), (1, 4801)][seed % 4]
    q = drawn(rng, ["int8", "uint8"][seed // 4 % 2], shape)
    axis = int(rng.integers(len(shape))) if seed % 3 else None
    scale = rng.random(() if axis is None else (shape[axis],), np.float32)
    zero = None if seed == 5 else np.full_like(scale, rng.integers(0, 120), dtype=q.dtype)
    order = rng.permutation(len(shape)).tolist()
    weights = [emberlet.asarray(a, backend="numpy") for a in (q, scale)]
    point = None if zero is None else emberlet.asarray(zero, backend="numpy")

    def model(x: Any) -> Any:
        w, s = (t.to_device(x.backend) for t in weights)
        z = None if point is None else point.to_device(x.backend)
        return F.permute_dims(F.dequantize_linear(w, s, z, axis=axis or 0), order) * x

    x = rng.standard_normal([shape[a] for a in order], np.float32)
    example = emberlet.asarray(x, backend="numpy")
    want = np.asarray(model(example))
    for ending in (".wasm", ".plan"):
        path = tmp_path / f"model{ending}"
        plan_file.save(str(path), model, example, inputs=["x"])
        assert 8 * scale.size > q.size or path.stat().st_size < 1.2 * q.nbytes + 4 * scale.size + 14000
        (found,) = plan_file.load(str(path)).run(x)
        np.testing.assert_array_equal(np.asarray(found), want)


@every("seed", range(8), share=2)
def test_convolutions_of_few_pixels_sum_exactly_in_a_file_too(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    pixels, taps, padding = 1 + seed % 4, 1 + seed % 3, seed // 4
    channels, out, kind = int(rng.integers(1, 40)), [4, 16, 33, 64][seed % 4], ["int8", "uint8"][seed % 2]
    x = rng.standard_normal((1, channels, max(1, pixels + taps - 1 - 2 * padding)), np.float32)
    w, scale = drawn(rng, kind, (out, channels, taps)), np.float32(0.01)

    def model(x: Any) -> Any:
        weight = emberlet.asarray(w, backend=x.backend)
        levels, step, zero = F.dynamic_quantize_linear(x)
        total = F.conv_integer(levels, weight, zero, 0 if kind == "int8" else 128, padding=padding)
        return total, step * scale

    example = emberlet.asarray(x, backend="numpy")
    want = [np.asarray(y) for y in model(example)]
    tensor = emberlet.asarray(x, backend="wasm")
    plan_file.save(str(tmp_path / "model.wasm"), model, example, inputs=["x"])
    for found in (compiled(model, tensor, backend="wasm")(tensor), plan_file.load(str(tmp_path / "model.wasm")).run(x)):
        for y, exact in zip(found, want, strict=True):
            np.testing.assert_array_equal(np.asarray(y), exact)


@every("seed", range(12), share=3)
def test_products_of_dequantized_operands_are_exact_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = ["int8", "uint8"]
    x_scale = np.float32(rng.random())
    if seed % 2:
        x, w = drawn(rng, kinds[seed // 2 % 2], (2, 8, 9, 7)), drawn(rng, "int8", (12, 8, 3, 3))
        scales = rng.random(12, np.float32)
        spread = scales.reshape(12, 1, 1, 1)
    else:
        x, w = drawn(rng, kinds[seed // 2 % 2], (3, 5, 40)), drawn(rng, kinds[seed // 4 % 2], (40, 24))
        scales = rng.random(24, np.float32) if seed % 4 else rng.random((), np.float32)
        spread = scales
    points = [np.asarray(rng.integers(0, 100), t.dtype) for t in (x, w)]
    w_points = np.full(scales.shape, points[1], w.dtype)
    axis = 0 if seed % 2 else 1

    def product(x: Any, w: Any, s: Any, zx: Any, zw: Any) -> Any:
        x = F.dequantize_linear(x, float(x_scale), zx)
        w = F.dequantize_linear(w, s, zw, axis=axis)
        return F.conv(x, w, padding=1) if seed % 2 else x @ w

    wide = [(x - points[0].astype(np.float64)) * float(x_scale), (w - points[1].astype(np.float64)) * spread]
    function = (lambda a, b: F.conv(a, b, padding=1)) if seed % 2 else (lambda a, b: a @ b)
    want = np.asarray(function(*[emberlet.asarray(a, dtype="float64", backend="numpy") for a in wide]))
    for backend in ("wasm", "native"):
        tensors = [emberlet.asarray(a, backend=backend) for a in (x, w, scales, points[0], w_points)]
        for found in (product(*tensors), compiled(product, *tensors, backend=backend)(*tensors)):
            np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


@every("kind, backend", [(k, b) for k in ("differences", "casts") for b in ("wasm", "native")])
def test_integers_that_wrap_are_not_read_as_weights(kind: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")

    def product(q: Any, point: Any, w: Any, scale: Any) -> Any:
        q = q - point if kind == "differences" else q.astype("uint8")
        return (q.astype("float32") * scale) @ (w.astype("float32") * scale)

    q = np.array([[5, 200], [1, 2]], np.uint8) if kind == "differences" else np.array([[-1, 5], [-128, 2]], np.int8)
    arrays = [q, np.uint8(10), np.eye(2, dtype=np.int8), np.float32(0.5)]
    want = (q - np.uint8(10) if kind == "differences" else q.astype(np.uint8)) * np.float32(0.25)
    tensors = [emberlet.asarray(a, backend=backend) for a in arrays]
    for found in (product(*tensors), compiled(product, *tensors, backend=backend)(*tensors)):
        np.testing.assert_array_equal(np.asarray(found), want)


@every("kind", ["differences", "casts", "offsets", "narrow offsets"])
def test_a_file_has_the_numbers_of_integers_that_wrap(kind: str, tmp_path: Path) -> None:
    require("gpu-driver")
    q = drawn(np.random.default_rng(5), "uint8" if kind == "differences" else "int8", (50, 100))
    weights = emberlet.asarray(q, backend="numpy")

    def model(x: Any) -> Any:
        w = weights.to_device(x.backend)
        if kind == "offsets":
            return x + (w.astype("int32") - 123456789)
        if kind == "narrow offsets":
            return x * ((w.astype("int16") - np.int16(32700)).astype("float32") * 0.5)
        w = w - np.uint8(10) if kind == "differences" else w.astype("uint8")
        return x * (w.astype("float32") * 0.5)

    x = np.ones((50, 100), np.int32 if kind == "offsets" else np.float32)
    want = np.asarray(model(emberlet.asarray(x, backend="numpy")))
    for ending in (".wasm", ".plan"):
        path = str(tmp_path / f"model{ending}")
        plan_file.save(path, model, emberlet.asarray(x, backend="numpy"), inputs=["x"])
        (found,) = plan_file.load(path).run(x)
        np.testing.assert_array_equal(np.asarray(found), want)


def network(path: Path, rng: np.random.Generator) -> None:
    """A convolution, a relu and two products, with most of the weights in the products."""
    text = """network (float[n, 3, 8, 8] x) => (float[n, 100] y) { c = Conv<pads = [1, 1, 1, 1]>(x, w0, b0)  r = Relu(c)
        f = Flatten(r)  g = Gemm<transB = 1>(f, w1, b1)  y = MatMul(g, w2) }"""
    shapes = {"w0": (8, 3, 3, 3), "b0": (8,), "w1": (256, 512), "b1": (256,), "w2": (256, 100)}
    held = {n: rng.standard_normal(s).astype(np.float32) / 9 for n, s in shapes.items()}
    onnx.save(with_constants(text, 17, **held), path)


class Samples(CalibrationDataReader):
    def __init__(self, x: Array) -> None:
        self.left = iter(x)

    def get_next(self) -> dict[str, Array] | None:
        x = next(self.left, None)
        return None if x is None else {"x": x[None]}


@pytest.mark.parametrize("activations", ["QUInt8", "QInt8", "QInt16"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.needs("gpu-driver")
def test_onnxruntimes_qdq_models_stay_as_small_as_they_are(activations: str, per_channel: bool, tmp_path: Path) -> None:
    """Results are within a level of onnxruntime's. Plans of open and of fixed sizes give the same where products are
    sums of integers; 16-bit activations have sums of floats, whose order depends on the rows."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((16, 3, 8, 8)).astype(np.float32)
    source, model = tmp_path / "float.onnx", tmp_path / "model.onnx"
    network(source, rng)
    quantize_static(
        source, model, Samples(x), quant_format=QuantFormat.QDQ, activation_type=QuantType[activations],
        weight_type=QuantType.QInt8, per_channel=per_channel,
    )  # fmt: skip
    plain = onnxruntime.SessionOptions()  # as written: its optimized products round 16-bit activations to 8 bits
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, plain, providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": x[:1]})
    (scale,) = [numpy_helper.to_array(t) for t in onnx.load(model).graph.initializer if t.name == "y_scale"]
    for ending in (".wasm", ".plan"):
        out = tmp_path / f"model{ending}"
        write(str(model), str(out), ["n=1"], [], None)
        assert out.stat().st_size < model.stat().st_size + 90000  # kernels; the weights are 157 KB
        (found,) = plan_file.load(str(out)).run(x[:1])
        assert off_by(found, want, scale) <= 1, ending
        if ending == ".wasm":
            write(str(model), str(out), ["n=1..4"], [], None)
            (open_,) = plan_file.load(str(out)).run(np.repeat(x[:1], 3, axis=0))
            assert off_by(open_, found, scale) <= (activations == "QInt16")
            assert off_by(open_, want, scale) <= 1


def off_by(found: Any, want: Any, scale: Array) -> int:
    """The largest difference of two results in levels of a scale."""
    return int(np.abs(np.rint((np.asarray(found) - np.asarray(want)) / scale)).max())
