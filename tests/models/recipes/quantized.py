"""Networks rewritten after export: quantized by onnxruntime's tools, halved, or fused by its optimizer."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import transformer, vision
from .recipe import Inputs, Recipe, export, export_traced, normal, seeded, tokens


class Small(nn.Module):
    """A residual CNN small enough to read in quantized form."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 2, 1)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.pointwise = nn.Conv2d(16, 16, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 2, 1)
        self.fc1 = nn.Linear(32, 24)
        self.fc2 = nn.Linear(24, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = F.relu(self.conv1(image))
        x = x + F.leaky_relu(self.pointwise(F.relu(self.depthwise(x))), 0.1)
        x = F.max_pool2d(x, 2)
        x = F.relu(self.conv2(x)).mean((2, 3))
        return self.fc2(torch.sigmoid(self.fc1(x)))


class Feed(nn.Module):
    """A typical case for dynamic quantization: large matrix products between cheap steps, and a recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 32)
        self.query, self.key, self.value = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32)
        self.fc1, self.fc2 = nn.Linear(32, 64), nn.Linear(64, 32)
        self.lstm = nn.LSTM(32, 24)
        self.head = nn.Linear(24, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        weights = F.softmax(self.query(x) @ self.key(x).transpose(1, 2) / 32**0.5, dim=-1)
        x = x + weights @ self.value(x)
        x = x + self.fc2(F.relu(self.fc1(x)))
        x, _ = self.lstm(x.transpose(0, 1))
        return self.head(x[-1])


def _rewrite(proto: onnx.ModelProto, change: Callable[[Path, Path], object]) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        onnx.save(proto, before)
        change(before, after)
        return onnx.load(after)


def _static(form: str, activation: str, per_channel: bool) -> onnx.ModelProto:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Images(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [normal(100 + i, 4, 3, 16, 16) for i in range(8)]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return {"image": self.left.pop()} if self.left else None

    proto = export_traced(
        seeded(Small),
        (torch.zeros(2, 3, 16, 16),),
        inputs=["image"],
        outputs=["logits"],
        dynamic={"image": {0: "batch"}},
        opset=17,
    )
    return _rewrite(
        proto,
        lambda before, after: quantize_static(
            before,
            after,
            Images(),
            quant_format=QuantFormat[form],
            activation_type=QuantType[activation],
            weight_type=QuantType.QInt8,
            per_channel=per_channel,
        ),
    )


def _dynamic() -> onnx.ModelProto:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    proto = export_traced(
        seeded(Feed),
        (torch.zeros(2, 6, dtype=torch.int64),),
        inputs=["tokens"],
        outputs=["scores"],
        dynamic={"tokens": {0: "batch", 1: "length"}},
        opset=17,
    )
    return _rewrite(proto, lambda before, after: quantize_dynamic(before, after, weight_type=QuantType.QInt8))


def _fused(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A graph as onnxruntime's optimizer saves it at its level `extended`, a form in which models are passed on."""
    import onnxruntime

    def optimize(before: Path, after: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(after)
        options.log_severity_level = 3
        onnxruntime.InferenceSession(before, options, providers=["CPUExecutionProvider"])

    return _rewrite(proto, optimize)


def _find(recipes: list[Recipe], name: str) -> Recipe:
    return next(recipe for recipe in recipes if recipe.name == name)


def _images() -> dict[str, Inputs]:
    return {f"batch{n}": {"image": normal(n, n, 3, 16, 16)} for n in (1, 3)}


def _half_images() -> dict[str, Inputs]:
    return {f"batch{n}": {"image": normal(n, n, 3, 32, 32).astype(np.float16)} for n in (1, 2)}


RECIPES = [
    Recipe(
        "quantized_qdq",
        "static quantization, QuantizeLinear and DequantizeLinear around float operators, int8 weights per channel",
        lambda: _static("QDQ", "QUInt8", per_channel=True),
        _images,
        literal=True,
    ),
    Recipe(
        "quantized_qdq_int8", "the same with int8 activations and one scale a tensor",
        lambda: _static("QDQ", "QInt8", per_channel=False), _images, literal=True,
    ),
    Recipe(
        "quantized_qoperator",
        "the same network in integer operators: QLinearConv, and com.microsoft's QLinearAdd and its relatives",
        lambda: _static("QOperator", "QUInt8", per_channel=False),
        _images,
        literal=True,
    ),
    Recipe(
        "quantized_dynamic",
        "dynamic quantization: DynamicQuantizeLinear, MatMulInteger, and com.microsoft's DynamicQuantizeLSTM",
        _dynamic,
        lambda: {f"batch{n}_length{t}": {"tokens": tokens(t, 40, n, t)} for n, t in ((1, 3), (2, 8))},
        literal=True,
    ),
    Recipe(
        "vit_float16",
        "the vision transformer in half precision",
        lambda: export(
            seeded(vision.ViT).half(), (torch.zeros(2, 3, 32, 32, dtype=torch.float16),), inputs=["image"],
            outputs=["logits"], dynamic=[{0: "batch"}], opset=20,
        ),
        _half_images,
        atol=1e-2,
        rtol=1e-2,
        literal=True,  # onnxruntime 1.31's optimizer crashes on this graph
    ),
    Recipe(
        "bert_fused", "the BERT-style encoder as onnxruntime's optimizer leaves it",
        lambda: _fused(transformer.bert(opset=17)), _find(transformer.RECIPES, "bert_traced").cases,
    ),
    Recipe(
        "gpt_fused", "the GPT-style decoder as onnxruntime's optimizer leaves it",
        lambda: _fused(_find(transformer.RECIPES, "gpt_traced").build()),
        _find(transformer.RECIPES, "gpt_traced").cases,
    ),
    Recipe(
        "mobile_cnn_fused", "the mobile CNN as onnxruntime's optimizer leaves it",
        lambda: _fused(_find(vision.RECIPES, "mobile_cnn").build()), _find(vision.RECIPES, "mobile_cnn").cases,
    ),
]  # fmt: skip
