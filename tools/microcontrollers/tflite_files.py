"""Writing .tflite files, and drawing int8 models at random in that format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite
from flatbuffers import flexbuffers

Rng = np.random.Generator
Array = npt.NDArray[Any]

_SECOND = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "AVERAGE_POOL_2D", "ADD", "SUB", "MUL", "MEAN"),
    *(
        "LOGISTIC",
        "TANH",
        "RELU",
        "RELU6",
        "LEAKY_RELU",
        "QUANTIZE",
        "PAD",
        "CONCATENATION",
        "STRIDED_SLICE",
        "SOFTMAX",
    ),
    *("ABS", "EXP", "GELU", "LOG", "RSQRT", "SQRT", "LOG_SOFTMAX", "L2_NORMALIZATION", "MAXIMUM", "MINIMUM"),
    *("REDUCE_MAX", "REDUCE_MIN", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "TRANSPOSE", "TILE", "MIRROR_PAD"),
    *("SPACE_TO_DEPTH", "SLICE", "GATHER"),
)
"""Operators that take int8 from their second version on."""

_TYPES = {"int8": "INT8", "uint8": "UINT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "float32": "FLOAT32",
          "float16": "FLOAT16", "float64": "FLOAT64", "uint32": "UINT32", "bool": "BOOL", "string": "STRING",
          "resource": "RESOURCE"}  # fmt: skip


@dataclass
class Written:
    """A tensor of a file that is being written."""

    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...] = ()
    zeros: tuple[int, ...] = ()
    axis: int = 0
    data: Array | None = None
    variable: bool = False


@dataclass
class File:
    """A model, or one of its subgraphs. intermediates: tensors of results inside of operators, by their numbers."""

    tensors: list[Written] = field(default_factory=list)
    operators: list[tuple[str, list[int], list[int], str, dict[str, Any]]] = field(default_factory=list)
    intermediates: dict[int, list[int]] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def tensor(self, shape: Sequence[int], dtype: str = "int8", scale: float = 0.0, zero: int = 0) -> int:
        self.tensors.append(
            Written(tuple(shape), dtype, (float(np.float32(scale)),) if scale else (), (zero,) if scale else ())
        )
        return len(self.tensors) - 1

    def variable(self, shape: Sequence[int], dtype: str, scale: float = 0.0, zero: int = 0) -> int:
        n = self.tensor(shape, dtype, scale, zero)
        self.tensors[n].variable = True
        return n

    def constant(self, data: Array, scales: Sequence[float] = (), zeros: Sequence[int] = (), axis: int = 0) -> int:
        given = tuple(float(np.float32(s)) for s in scales)
        self.tensors.append(Written(data.shape, data.dtype.name, given, tuple(zeros), axis, data))
        return len(self.tensors) - 1

    def operator(
        self, kind: str, inputs: Sequence[int], outputs: Sequence[int], options: str = "", **values: Any
    ) -> None:
        self.operators.append((kind, list(inputs), list(outputs), options, values))

    def written(self, *others: File) -> bytes:
        """others: the file's further subgraphs."""
        b = flatbuffers.Builder(1024)
        files = [self, *others]
        codes = sorted({op[0] for file in files for op in file.operators})
        buffers = [self._buffer(b, None)]
        graphs = [file._graph(b, codes, buffers) for file in files]
        root = _table(
            b,
            "Model",
            Version=3,
            OperatorCodes=_offsets(b, [self._code(b, kind) for kind in codes]),
            Subgraphs=_offsets(b, graphs),
            Buffers=_offsets(b, buffers),
        )
        b.Finish(root, b"TFL3")
        return bytes(b.Output())

    def _graph(self, b: Any, codes: list[str], buffers: list[int]) -> int:
        tensors = []
        for number, t in enumerate(self.tensors):
            where = 0
            if t.data is not None:
                where = len(buffers)
                buffers.append(self._buffer(b, t.data))
            tensors.append(self._tensor(b, t, where, f"t{number}"))
        operators = _offsets(b, [self._operator(b, codes, k) for k in range(len(self.operators))])
        inputs, outputs = (b.CreateNumpyVector(np.asarray(v, np.int32)) for v in (self.inputs, self.outputs))
        return _table(b, "SubGraph", Tensors=_offsets(b, tensors), Inputs=inputs, Outputs=outputs, Operators=operators)

    def _buffer(self, b: Any, data: Array | None) -> int:
        if data is None:
            return _table(b, "Buffer")
        return _table(b, "Buffer", Data=b.CreateNumpyVector(np.frombuffer(data.tobytes(), np.uint8)))

    def _tensor(self, b: Any, t: Written, buffer: int, name: str) -> int:
        label = b.CreateString(name)
        shape = b.CreateNumpyVector(np.asarray(t.shape, np.int32))
        values: dict[str, Any] = {"Shape": shape, "Type": getattr(tflite.TensorType, _TYPES[t.dtype])}
        if t.scales:
            scales = b.CreateNumpyVector(np.asarray(t.scales, np.float32))
            zeros = b.CreateNumpyVector(np.asarray(t.zeros, np.int64))
            values["Quantization"] = _table(
                b, "QuantizationParameters", Scale=scales, ZeroPoint=zeros, QuantizedDimension=t.axis
            )
        return _table(b, "Tensor", Buffer=buffer, Name=label, IsVariable=t.variable, **values)

    def _code(self, b: Any, kind: str) -> int:
        builtin, _, custom = kind.partition(" ")
        number = getattr(tflite.BuiltinOperator, builtin)
        name = {"CustomCode": b.CreateString(custom)} if custom else {}
        return _table(
            b,
            "OperatorCode",
            DeprecatedBuiltinCode=min(number, 127),
            BuiltinCode=number,
            Version=2 if kind in _SECOND else 1,
            **name,
        )

    def _operator(self, b: Any, codes: list[str], number: int) -> int:
        kind, inputs, outputs, options, values = self.operators[number]
        made: dict[str, Any] = {}
        if kind.startswith("CUSTOM "):
            made["CustomOptions"] = b.CreateNumpyVector(np.frombuffer(flexbuffers.Dumps(values), np.uint8))
        if number in self.intermediates:
            made["Intermediates"] = b.CreateNumpyVector(np.asarray(self.intermediates[number], np.int32))
        if options:
            vectors = {
                k: b.CreateNumpyVector(np.asarray(v, np.int32)) for k, v in values.items() if isinstance(v, tuple)
            } | {k: b.CreateString(v) for k, v in values.items() if isinstance(v, str)}
            made["BuiltinOptions"] = _table(b, f"{options}Options", **{**values, **vectors})
            made["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, f"{options}Options")
        given = b.CreateNumpyVector(np.asarray(inputs, np.int32))
        taken = b.CreateNumpyVector(np.asarray(outputs, np.int32))
        return _table(b, "Operator", OpcodeIndex=codes.index(kind), Inputs=given, Outputs=taken, **made)


def _table(b: Any, kind: str, **values: Any) -> int:
    getattr(tflite, f"{kind}Start")(b)
    for name, value in values.items():
        getattr(tflite, f"{kind}Add{name}")(b, value)
    return int(getattr(tflite, f"{kind}End")(b))


def _offsets(b: Any, items: Sequence[int]) -> int:
    b.StartVector(4, len(items), 4)
    for item in reversed(items):
        b.PrependUOffsetTRelative(item)
    return int(b.EndVector())


# -- models at random -------------------------------------------------------------------------------------------------


class Drawn:
    """A random model of int8 or uint8 that grows layer by layer from an image."""

    image: tuple[str, ...] = ()
    flat: tuple[str, ...] = ()

    def __init__(self, rng: Rng, dtype: str = "int8") -> None:
        self.image, self.flat = self.image or IMAGE, self.flat or FLAT
        self.rng, self.file, self.dtype = rng, File(), dtype
        self.low = -128 if dtype == "int8" else 0
        shape = (1, int(rng.integers(3, 9)), int(rng.integers(3, 9)), int(rng.integers(1, 9)))
        self.at = self.file.tensor(shape, *self._grid_args())
        self.file.inputs.append(self.at)

    def _grid_args(self) -> tuple[str, float, int]:
        return self.dtype, float(10 ** self.rng.uniform(-2.5, -0.5)), int(self.rng.integers(-128, 128)) + self.low + 128

    @property
    def here(self) -> Written:
        return self.file.tensors[self.at]

    def grown(self, layers: int) -> bytes:
        for _ in range(layers):
            kinds = self.image if len(self.here.shape) == 4 else self.flat
            name = str(self.rng.choice(kinds))
            getattr(self, f"_{name}")()
        self.file.outputs.append(self.at)
        return self.file.written()

    def _to(self, shape: Sequence[int], scale: float | None = None, zero: int | None = None) -> int:
        dtype, s, z = self._grid_args()
        return self.file.tensor(shape, dtype, s if scale is None else scale, z if zero is None else zero)

    def _same(self, shape: Sequence[int]) -> int:
        return self.file.tensor(shape, self.dtype, self.here.scales[0], self.here.zeros[0])

    def _do(self, kind: str, more: Sequence[int], out: int, options: str = "", **values: Any) -> None:
        self.file.operator(kind, [self.at, *more], [out], options, **values)
        self.at = out

    def _activation(self) -> int:
        return int(self.rng.choice([0, 0, 1, 3]))

    def _filter(self, shape: Sequence[int], axis: int, channels: int, taps: int) -> tuple[int, int, float]:
        """Weights, a bias, and a scale for an output that the sums fill."""
        rng = self.rng
        weights = rng.integers(-127, 128, shape).astype(np.int8)
        scales = 10 ** rng.uniform(-3.5, -1.5, channels if rng.random() < 0.7 and self.dtype == "int8" else 1)
        if self.dtype == "uint8":
            own = int(rng.integers(90, 166))
            w = self.file.constant((weights.astype(int) + 128).astype(np.uint8), scales, [own])
        else:
            w = self.file.constant(weights, scales, [0] * len(scales), axis if len(scales) > 1 else 0)
        steps = rng.integers(-20000, 20000, channels).astype(np.int32)
        x = self.here.scales[0]
        bias = self.file.constant(steps, [s * x for s in scales], [0] * len(scales))
        return w, bias, float(x * scales.max() * 50 * taps**0.5 * 10 ** rng.uniform(0, 0.7))

    def _window(self, kernel: tuple[int, int], strided: bool = True) -> tuple[dict[str, int], tuple[int, int]]:
        _, h, w, _ = self.here.shape
        same = bool(self.rng.random() < 0.5) or kernel[0] > h or kernel[1] > w
        sy, sx = (int(v) for v in self.rng.integers(1, 3, 2)) if strided else (1, 1)
        out = (-(-h // sy), -(-w // sx)) if same else ((h - kernel[0]) // sy + 1, (w - kernel[1]) // sx + 1)
        return {"Padding": 0 if same else 1, "StrideH": sy, "StrideW": sx}, out

    def _kernel(self) -> tuple[int, int]:
        kh, kw = (int(v) for v in self.rng.integers(1, 4, 2))
        return kh, kw

    def _conv(self) -> None:
        kernel, n = self._kernel(), int(self.rng.integers(1, 10))
        c = self.here.shape[3]
        w, bias, scale = self._filter((n, *kernel, c), 0, n, kernel[0] * kernel[1] * c)
        window, out = self._window(kernel)
        y = self._to((1, *out, n), scale)
        self._do("CONV_2D", [w, bias], y, "Conv2D", **window, FusedActivationFunction=self._activation(), **_UNDILATED)

    def _depthwise(self) -> None:
        kernel, c = self._kernel(), self.here.shape[3]
        w, bias, scale = self._filter((1, *kernel, c), 3, c, kernel[0] * kernel[1])
        window, out = self._window(kernel)
        y = self._to((1, *out, c), scale)
        more = {"DepthMultiplier": 1, "FusedActivationFunction": self._activation(), **_UNDILATED}
        self._do("DEPTHWISE_CONV_2D", [w, bias], y, "DepthwiseConv2D", **window, **more)

    def _pool(self) -> None:
        kernel = self._kernel()
        window, out = self._window(kernel)
        kind = "MAX_POOL_2D" if self.rng.random() < 0.5 else "AVERAGE_POOL_2D"
        y = self._same((1, *out, self.here.shape[3]))
        sizes = {"FilterHeight": kernel[0], "FilterWidth": kernel[1], "FusedActivationFunction": self._activation()}
        self._do(kind, [], y, "Pool2D", **window, **sizes)

    def _pair(self) -> None:
        """With a tensor computed from the same one, or with a constant."""
        rng, x = self.rng, self.at
        kind = str(rng.choice(["ADD", "SUB", "MUL"]))
        shape = self.here.shape
        if rng.random() < 0.5:
            other = self._to(shape)
            self.file.operator("TANH", [x], [self._tanh_output(shape)])
            self.file.operator("QUANTIZE", [len(self.file.tensors) - 1], [other])
        else:
            c = shape[-1] if rng.random() < 0.7 else 1
            values = (rng.integers(-128, 128, (c,)) + self.low + 128).astype(self.dtype)
            _, scale, zero = self._grid_args()
            other = self.file.constant(values, [scale], [zero])
        a, b = self.here.scales[0], self.file.tensors[other].scales[0]
        scale = float((a * b * 60 if kind == "MUL" else max(a, b)) * 10 ** rng.uniform(-0.2, 0.7))
        y = self._to(shape, scale)
        self._do(kind, [other], y, kind.title(), FusedActivationFunction=self._activation())

    def _tanh_output(self, shape: Sequence[int]) -> int:
        return self.file.tensor(shape, self.dtype, 1 / 128, self.low + 128)

    def _function(self) -> None:
        kind = str(self.rng.choice(["LOGISTIC", "TANH", "RELU", "RELU6", "LEAKY_RELU", "QUANTIZE"]))
        shape = self.here.shape
        if kind == "LOGISTIC":
            self._do(kind, [], self.file.tensor(shape, self.dtype, 1 / 256, self.low))
        elif kind == "TANH":
            self._do(kind, [], self._tanh_output(shape))
        elif kind == "LEAKY_RELU":
            self._do(kind, [], self._to(shape), "LeakyRelu", Alpha=float(self.rng.uniform(0.01, 0.5)))
        else:
            self._do(kind, [], self._to(shape))

    def _mean(self) -> None:
        axes = self.file.constant(np.array([1, 2], np.int32))
        keep = bool(self.rng.random() < 0.5)
        _, _, _, c = self.here.shape
        y = self._to((1, 1, 1, c) if keep else (1, c), self.here.scales[0] * float(self.rng.uniform(0.3, 1.5)))
        self._do("MEAN", [axes], y, "Reducer", KeepDims=keep)

    def _pad(self) -> None:
        pads = self.rng.integers(0, 3, (4, 2)).astype(np.int32)
        pads[[0, 3]] = 0
        shape = [n + int(p.sum()) for n, p in zip(self.here.shape, pads, strict=True)]
        self._do("PAD", [self.file.constant(pads)], self._same(shape))

    def _concat(self) -> None:
        shape = (*self.here.shape[:-1], 2 * self.here.shape[-1])
        self._do("CONCATENATION", [self.at], self._same(shape), "Concatenation", Axis=-1)

    def _cut(self) -> None:
        _, h, w, c = self.here.shape
        begin = [0, int(self.rng.integers(h)), int(self.rng.integers(w)), 0]
        end = [1, int(self.rng.integers(begin[1] + 1, h + 1)), int(self.rng.integers(begin[2] + 1, w + 1)), c]
        bounds = [self.file.constant(np.asarray(v, np.int32)) for v in (begin, end, [1, 1, 1, 1])]
        shape = [b - a for a, b in zip(begin, end, strict=True)]
        self._do("STRIDED_SLICE", bounds, self._same(shape), "StridedSlice")

    def _flatten(self) -> None:
        size = int(np.prod(self.here.shape))
        shape = self.file.constant(np.array([1, size], np.int32))
        self._do("RESHAPE", [shape], self._same((1, size)), "Reshape", NewShape=(1, size))

    def _dense(self) -> None:
        k, n = self.here.shape[-1], int(self.rng.integers(1, 12))
        w, bias, scale = self._filter((n, k), 0, n, k)
        y = self._to((1, n), scale)
        self._do("FULLY_CONNECTED", [w, bias], y, "FullyConnected", FusedActivationFunction=self._activation())

    def _softmax(self) -> None:
        """Of a row that LiteRT takes: its reference kernel ends the process where the exponentials' sum is over 512."""
        if self.here.shape[-1] > 256:
            return
        self._do("SOFTMAX", [], self.file.tensor(self.here.shape, self.dtype, 1 / 256, self.low), "Softmax", Beta=1.0)


_UNDILATED = {"DilationHFactor": 1, "DilationWFactor": 1}

IMAGE = (
    "conv",
    "conv",
    "depthwise",
    "depthwise",
    "pool",
    "pair",
    "function",
    "mean",
    "pad",
    "concat",
    "cut",
    "flatten",
)
FLAT = ("dense", "dense", "pair", "function", "softmax", "concat")


class Drawn16(Drawn):
    """Activations of int16 and weights of int8: products, maxima, and what moves elements."""

    image = ("conv", "conv", "depthwise", "maximum", "pad", "concat", "cut", "flatten")
    flat = ("dense", "dense", "concat")

    def _grid_args(self) -> tuple[str, float, int]:
        return "int16", float(10 ** self.rng.uniform(-5, -3)), 0

    def _filter(self, shape: Sequence[int], axis: int, channels: int, taps: int) -> tuple[int, int, float]:
        rng = self.rng
        weights = rng.integers(-127, 128, shape).astype(np.int8)
        scales = 10 ** rng.uniform(-3.5, -1.5, channels if rng.random() < 0.7 and axis == self._axis(shape) else 1)
        w = self.file.constant(weights, scales, [0] * len(scales), axis if len(scales) > 1 else 0)
        steps = rng.integers(-(1 << 24), 1 << 24, channels).astype(np.int64)
        x = self.here.scales[0]
        bias = self.file.constant(steps, [s * x for s in scales], [0] * len(scales))
        return w, bias, float(x * scales.max() * 50 * taps**0.5 * 10 ** rng.uniform(0, 0.7))

    @staticmethod
    def _axis(shape: Sequence[int]) -> int:
        """The axis that may have a scale each: LiteRT's dense layers on int16 have one for all."""
        return -1 if len(shape) == 2 else 3 if shape[0] == 1 and len(shape) == 4 else 0

    def _maximum(self) -> None:
        kernel = self._kernel()
        window, out = self._window(kernel)
        sizes = {"FilterHeight": kernel[0], "FilterWidth": kernel[1], "FusedActivationFunction": 0}
        self._do("MAX_POOL_2D", [], self._same((1, *out, self.here.shape[3])), "Pool2D", **window, **sizes)


def drawn(seed: int, dtype: str = "int8") -> bytes:
    """A model of a few layers, by its number."""
    rng = np.random.default_rng([seed, 7])
    return (Drawn16(rng, dtype) if dtype == "int16" else Drawn(rng, dtype)).grown(int(rng.integers(2, 9)))
