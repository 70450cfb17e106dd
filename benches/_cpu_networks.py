"""The networks of the CPU benchmark: as ONNX, and their inputs.

Networks of published packages (tools/model_packages.py) are the files themselves. MobileNetV3-Large (Howard et al.
2019, table 1), EfficientNet-lite0 and DNSMOS (Reddy et al. 2021, the convolutions) are built from their tables, with
random weights: the time does not depend on them.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
SHARED = ROOT.parent / "shared" / "models"
CACHE = ROOT / ".cache" / "bench"
LIGHT = (
    "squeezenet", "resnet50", "shufflenet", "inception_v1", "inception_v2", "densenet121", "bvlc_alexnet", "zfnet512",
    "vgg19",
)  # fmt: skip
IMAGE = (1, 3, 224, 224)
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "mnist": ((1, 1, 28, 28),),
    "digits": ((1, 1, 8, 8),),
    "silero": ((1, 576), (2, 1, 128), ()),
    "minilm": ((1, 128, 384),),  # 6 layers of 12 heads
    "llama_step": ((1, 1),),  # a token of a model of 15 million parameters, behind CACHED others
    "squeezenet": (IMAGE,),
    "resnet50": (IMAGE,),
    "mobilenetv3": (IMAGE,),
    "mobilenetv3_qdq": (IMAGE,),
    "efficientnet_lite0": (IMAGE,),
    "yolov8n_320": ((1, 3, 320, 320),),
    "ppocr_det": ((1, 3, 256, 320),),
    "ppocr_rec": ((1, 3, 48, 320),),
    "magika": ((1, 2048),),
    "basic_pitch": ((1, 43844, 1),),
    "dnsmos": ((1, 1, 900, 120),),
    "ddddocr": ((1, 1, 64, 160),),
    "ddddocr_int8": ((1, 1, 64, 160),),
    "squeezenet_qdq": (IMAGE,),
    "resnet50_qdq": (IMAGE,),
    **dict.fromkeys(LIGHT[2:], (IMAGE,)),
}
ISSUED = tuple(name for name in SHAPES if name not in LIGHT[2:])  # those that are measured unless others are named
PACKAGED = {
    "yolov8n_320": "nudenet/320n",
    "ppocr_det": "rapidocr-onnxruntime/ch_PP-OCRv4_det_infer",
    "ppocr_rec": "rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer",
    "magika": "magika/model",
    "basic_pitch": "basic-pitch/nmp",
    "ddddocr": "ddddocr/common",
    "ddddocr_int8": "ddddocr/common_old",
}
LOOSE = ("mobilenetv3_qdq", "squeezenet_qdq", "resnet50_qdq", "ddddocr_int8")
"""Quantized while they run: a number that rounds to the next step changes all that follows. onnxruntime's own results
for mobilenetv3_qdq are as far from those that it gives without its optimizer as from others'."""


def missing(name: str) -> str:
    """Why a network cannot be measured here; empty if it can be."""
    if name in ("mnist", "silero") and not SHARED.is_dir():
        return f"there is no {SHARED}"
    if name in PACKAGED and not _packaged(name).is_file():
        return "its package is not in the cache"
    return ""


def _packaged(name: str) -> Path:
    from tools import model_packages

    return model_packages.FOLDER / f"{PACKAGED[name]}.onnx"


def source(name: str) -> Any:
    """A network as ONNX: a path, or the model itself."""
    if name == "digits":
        return ROOT / "examples" / "digits" / "digits.onnx"
    if name in ("mnist", "silero"):
        return SHARED / {"mnist": "mnist.onnx", "silero": "silero_vad.onnx"}[name]
    if name in PACKAGED:
        return _packaged(name)
    if name == "minilm":
        from _gpu_models import encoder

        return encoder(6, 384, 12, 128)
    if name == "llama_step":
        from tools.networks.decoder import decoder

        return decoder()
    if name in _BUILT:
        return _BUILT[name]()
    if name.endswith("_qdq"):
        return quantized(name, source(name.removesuffix("_qdq")))
    return runpy.run_path(str(ROOT / "benches" / "core.py"))["network"](name)


def inputs(name: str) -> list[Any]:
    """The inputs of a network. The last one of silero is the sampling rate."""
    random = np.random.default_rng(1)
    if name == "magika":
        return [random.integers(0, 257, SHAPES[name][0]).astype(np.int32)]
    return [random.standard_normal(s).astype(np.float32) if s else np.array(16000) for s in SHAPES[name]]


class _Builder:
    """Writes a network, layer by layer: each method returns the name of its result."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.random = np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.shape = shape

    def node(self, kind: str, *given: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, given, [f"n{len(self.nodes)}"], **attributes))
        return f"n{len(self.nodes) - 1}"

    def weight(self, *shape: int) -> str:
        from onnx import numpy_helper

        scale = (2 / max(1, int(np.prod(shape[1:])))) ** 0.5 if len(shape) > 1 else 0.1
        values = (self.random.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, f"w{len(self.weights)}"))
        return f"w{len(self.weights) - 1}"

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        self.weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(self.weights)}"))
        return f"w{len(self.weights) - 1}"

    def conv(self, x: str, given: int, out: int, kernel: int, stride: int = 1, groups: int = 1, then: str = "") -> str:
        w, b = self.weight(out, given // groups, kernel, kernel), self.weight(out)
        y = self.node("Conv", x, w, b, strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)
        return self.activated(y, then)

    def activated(self, x: str, how: str) -> str:
        if how == "relu6":
            return self.node("Clip", x, self.constant(np.float32(0)), self.constant(np.float32(6)))
        return self.node(how, x) if how else x

    def dense(self, x: str, given: int, out: int, then: str = "") -> str:
        return self.activated(self.node("Gemm", x, self.weight(given, out), self.weight(out)), then)

    def model(self, result: str, width: int) -> Any:
        from onnx import TensorProto, helper

        value = helper.make_tensor_value_info
        given = value("image", TensorProto.FLOAT, self.shape)
        out = value(result, TensorProto.FLOAT, (1, width))
        graph = helper.make_graph(self.nodes, "network", [given], [out], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# kernel, channels inside, channels out, whether squeeze-and-excite, activation, stride
_MOBILENET = (
    (3, 16, 16, 0, "Relu", 1), (3, 64, 24, 0, "Relu", 2), (3, 72, 24, 0, "Relu", 1), (5, 72, 40, 1, "Relu", 2),
    (5, 120, 40, 1, "Relu", 1), (5, 120, 40, 1, "Relu", 1), (3, 240, 80, 0, "HardSwish", 2),
    (3, 200, 80, 0, "HardSwish", 1), (3, 184, 80, 0, "HardSwish", 1), (3, 184, 80, 0, "HardSwish", 1),
    (3, 480, 112, 1, "HardSwish", 1), (3, 672, 112, 1, "HardSwish", 1), (5, 672, 160, 1, "HardSwish", 2),
    (5, 960, 160, 1, "HardSwish", 1), (5, 960, 160, 1, "HardSwish", 1),
)  # fmt: skip
# kernel, expansion, channels out, stride, repetitions
_EFFICIENTNET = (
    (3, 1, 16, 1, 1), (3, 6, 24, 2, 2), (5, 6, 40, 2, 2), (3, 6, 80, 2, 3), (5, 6, 112, 1, 3), (5, 6, 192, 2, 4),
    (3, 6, 320, 1, 1),
)  # fmt: skip


def mobilenetv3() -> Any:
    b = _Builder(IMAGE)
    x, width = b.conv("image", 3, 16, 3, 2, then="HardSwish"), 16
    for kernel, inside, out, squeeze, how, stride in _MOBILENET:
        y = b.conv(x, width, inside, 1, then=how) if inside != width else x
        y = b.conv(y, inside, inside, kernel, stride, inside, how)
        if squeeze:
            less = (inside // 4 + 7) // 8 * 8
            s = b.conv(b.node("GlobalAveragePool", y), inside, less, 1, then="Relu")
            y = b.node("Mul", y, b.activated(b.conv(s, less, inside, 1), "HardSigmoid"))
        y = b.conv(y, inside, out, 1)
        x = b.node("Add", x, y) if stride == 1 and width == out else y
        width = out
    x = b.node("Flatten", b.node("GlobalAveragePool", b.conv(x, width, 960, 1, then="HardSwish")))
    return b.model(b.dense(b.dense(x, 960, 1280, "HardSwish"), 1280, 1000), 1000)


def efficientnet_lite0() -> Any:
    b = _Builder(IMAGE)
    x, width = b.conv("image", 3, 32, 3, 2, then="relu6"), 32
    for kernel, expansion, out, first, count in _EFFICIENTNET:
        for n in range(count):
            stride, inside = (first if n == 0 else 1), width * expansion
            y = b.conv(x, width, inside, 1, then="relu6") if expansion > 1 else x
            y = b.conv(b.conv(y, inside, inside, kernel, stride, inside, "relu6"), inside, out, 1)
            x = b.node("Add", x, y) if stride == 1 and width == out else y
            width = out
    x = b.node("Flatten", b.node("GlobalAveragePool", b.conv(x, width, 1280, 1, then="relu6")))
    return b.model(b.dense(x, 1280, 1000), 1000)


def dnsmos() -> Any:
    b = _Builder((1, 1, 900, 120))
    x, width = "image", 1
    for out, pool in ((128, 0), (64, 0), (64, 0), (32, 1), (32, 1), (32, 1), (64, 0)):
        x, width = b.conv(x, width, out, 3, then="Relu"), out
        if pool:
            x = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.node("Flatten", b.node("GlobalMaxPool", x))
    return b.model(b.dense(b.dense(b.dense(x, 64, 128, "Relu"), 128, 64, "Relu"), 64, 3), 3)


_BUILT = {"mobilenetv3": mobilenetv3, "efficientnet_lite0": efficientnet_lite0, "dnsmos": dnsmos}


def quantized(name: str, model: Any) -> Path:
    """onnxruntime's QDQ form of a network of pictures, a scale for each channel of its weights; kept in the cache. With
    unsigned activations onnxruntime is two to four times as fast here as with signed ones."""
    import onnx
    from onnx import version_converter
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    path = CACHE / f"{name}-unsigned.onnx"
    if path.is_file():
        return path
    model = onnx.load(model) if isinstance(model, Path) else model
    if model.opset_import[0].version < 13:  # which have no scale for each channel
        model.ir_version = 8
        model = version_converter.convert_version(model, 13)
        held = {tensor.name for tensor in model.graph.initializer}
        given = [port for port in model.graph.input if port.name not in held]  # what is an input is no constant
        del model.graph.input[:]
        model.graph.input.extend(given)

    class Pictures(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            random = np.random.default_rng(2)
            port = model.graph.input[0].name
            self.left = [{port: random.standard_normal(IMAGE).astype(np.float32)} for _ in range(2)]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    path.parent.mkdir(parents=True, exist_ok=True)
    plain = path.with_suffix(".float.onnx")
    onnx.save(model, plain)
    try:
        # This joins normalizations and convolutions.
        quant_pre_process(str(plain), str(plain), skip_symbolic_shape=True)
        how = {"per_channel": True, "weight_type": QuantType.QInt8, "activation_type": QuantType.QUInt8}
        quantize_static(str(plain), str(path), Pictures(), **how)
    finally:
        plain.unlink()
    return path
