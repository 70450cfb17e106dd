"""Reading a .tflite file to plain data: tensors, and operators with their options.

Source: tensorflow/compiler/mlir/lite/schema/schema.fbs, read through the package `tflite`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from emberlet.errors import EmberletError, FormatError, UnsupportedError

OPTIONS: dict[str, tuple[str, ...]] = {
    "Conv2D": ("Padding", "StrideW", "StrideH", "FusedActivationFunction", "DilationWFactor", "DilationHFactor"),
    "DepthwiseConv2D": (
        *("Padding", "StrideW", "StrideH", "FusedActivationFunction", "DilationWFactor", "DilationHFactor"),
        "DepthMultiplier",
    ),
    "TransposeConv": ("Padding", "StrideW", "StrideH", "FusedActivationFunction"),
    "FullyConnected": ("FusedActivationFunction", "WeightsFormat", "KeepNumDims"),
    "Pool2D": ("Padding", "StrideW", "StrideH", "FilterWidth", "FilterHeight", "FusedActivationFunction"),
    "Add": ("FusedActivationFunction",),
    "Sub": ("FusedActivationFunction",),
    "Mul": ("FusedActivationFunction",),
    "Div": ("FusedActivationFunction",),
    "L2Norm": ("FusedActivationFunction",),
    "Concatenation": ("Axis", "FusedActivationFunction"),
    "Softmax": ("Beta",),
    "Reshape": ("NewShape",),
    "Reducer": ("KeepDims",),
    "StridedSlice": ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset"),
    "Split": ("NumSplits",),
    "Pack": ("Axis",),
    "Unpack": ("Num", "Axis"),
    "Squeeze": ("SqueezeDims",),
    "LeakyRelu": ("Alpha",),
    "ResizeNearestNeighbor": ("AlignCorners", "HalfPixelCenters"),
    "ResizeBilinear": ("AlignCorners", "HalfPixelCenters"),
    "Gather": ("Axis", "BatchDims"),
    "DepthToSpace": ("BlockSize",),
    "SpaceToDepth": ("BlockSize",),
    "MirrorPad": ("Mode",),
    "BatchMatMul": ("AdjX", "AdjY"),
    "Gelu": ("Approximate",),
    "VarHandle": ("Container", "SharedName"),
    "CallOnce": ("InitSubgraphIndex",),
    "UnidirectionalSequenceLSTM": ("FusedActivationFunction", "CellClip", "TimeMajor"),
}
"""The options read, by the table that holds them. Other operators need none of theirs."""

VECTORS = ("NewShape", "SqueezeDims")

READ = 4  # numbers and characters read for every byte of a file; one that shares nothing takes a byte for each
TABLE = 16  # as many as a table counts for, which takes more bytes than that

Option = int | float | bool | str | tuple[int, ...]


@dataclass(frozen=True)
class FileTensor:
    """scales, zeros: of quantized tensors, one number, or one per index along `axis`; data: of constants."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int
    data: bytes | None

    @property
    def is_quantized(self) -> bool:
        return bool(self.scales)


@dataclass(frozen=True)
class FileOperator:
    """kind: the schema's name ("CONV_2D"); inputs, outputs, intermediates: numbers of tensors, -1 for an absent one;
    intermediates only have a scale."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Option]
    intermediates: tuple[int, ...] = ()

    def integer(self, name: str, default: int = 0) -> int:
        return int(self.options.get(name, default))  # type: ignore[arg-type]


@dataclass(frozen=True)
class FileGraph:
    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def read_file(data: bytes, origin: str) -> tuple[FileGraph, ...]:
    """The subgraphs of a file. Raises FormatError if it is damaged, UnsupportedError without the package."""
    schema = _schema()
    if data[4:8] != b"TFL3":
        raise FormatError(f"{origin}: not a TensorFlow Lite model: the identifier TFL3 is missing")
    try:
        return _Reader(schema, data).graphs()
    except (struct.error, ValueError, TypeError, IndexError, AttributeError, OverflowError, MemoryError) as e:
        # The generated readers follow any offset and may fail with any exception.
        raise FormatError(f"{origin}: damaged: {type(e).__name__}: {e}") from None


def _schema() -> Any:
    try:
        import tflite
    except ImportError:
        raise UnsupportedError(
            "reading .tflite files needs the package tflite: pip install 'emberlet[tflite]'"
        ) from None
    return tflite


@cache
def _names(kind: type) -> dict[int, str]:
    """The names of an enumeration's values."""
    return {v: k for k, v in vars(kind).items() if isinstance(v, int) and not k.startswith("_")}


class _Reader:
    """Offsets in a file may lead to the same bytes any number of times, so what is read is counted: `left` is how many
    numbers, characters and entries of lists may still be. Data that several tensors share are read once."""

    def __init__(self, schema: Any, data: bytes) -> None:
        self.schema = schema
        self.size = len(data)
        self.left = READ * len(data)
        self.buffers: dict[int, bytes | None] = {}
        self.model = schema.Model.GetRootAs(data, 0)

    def graphs(self) -> tuple[FileGraph, ...]:
        return tuple(
            self._graph(self.model.Subgraphs(k)) for k in range(self._count(self.model.SubgraphsLength(), TABLE))
        )

    def _count(self, n: int, each: int = 1) -> int:
        """Check that the file can hold a list of this length, and charge for it: `each` for an item. Raises
        ValueError."""
        if not 0 <= n <= self.size:
            raise ValueError(f"a list of {n} items in {self.size} bytes")
        self.left -= n * each
        if self.left < 0:
            raise ValueError(f"its lists share their bytes: more than {READ} items for every byte of the file")
        return n

    def _text(self, raw: bytes | None) -> str:
        return (raw or b"")[: self._count(len(raw or b""))].decode("utf-8", "replace")

    def _ints(self, length: Callable[[], int], values: Callable[[], Any]) -> tuple[int, ...]:
        if not self._count(length()):
            return ()
        return tuple(int(v) for v in values())

    def _graph(self, g: Any) -> FileGraph:
        tensors = tuple(self._tensor(g.Tensors(i)) for i in range(self._count(g.TensorsLength(), TABLE)))
        operators = tuple(self._operator(g.Operators(i)) for i in range(self._count(g.OperatorsLength(), TABLE)))
        graph = FileGraph(
            tensors,
            operators,
            self._ints(g.InputsLength, g.InputsAsNumpy),
            self._ints(g.OutputsLength, g.OutputsAsNumpy),
        )
        named = [numbers for o in operators for numbers in (o.inputs, o.outputs, o.intermediates)]
        for numbers in (graph.inputs, graph.outputs, *named):
            for n in numbers:
                if not -1 <= n < len(tensors):
                    raise ValueError(f"tensor {n} of {len(tensors)}")
        return graph

    def _tensor(self, t: Any) -> FileTensor:
        shape = self._ints(t.ShapeLength, t.ShapeAsNumpy)
        q = t.Quantization()
        scales: tuple[float, ...] = ()
        zeros: tuple[int, ...] = ()
        axis = 0
        if q is not None and self._count(q.ScaleLength()):
            scales = tuple(float(v) for v in q.ScaleAsNumpy())
            zeros = self._ints(q.ZeroPointLength, q.ZeroPointAsNumpy) or (0,) * len(scales)
            axis = int(q.QuantizedDimension())
        dtype = _names(self.schema.TensorType).get(t.Type(), f"type {t.Type()}")
        if t.Sparsity() is not None:
            raise ValueError("sparse tensors are not supported")
        return FileTensor(self._text(t.Name()), shape, dtype, scales, zeros, axis, self._data(t.Buffer()))

    def _data(self, number: int) -> bytes | None:
        if not 0 <= number < self.model.BuffersLength():
            raise ValueError(f"buffer {number}")
        if number not in self.buffers:
            buffer = self.model.Buffers(number)
            found = self._count(buffer.DataLength())
            self.buffers[number] = bytes(np.asarray(buffer.DataAsNumpy(), np.uint8)) if found else None
        return self.buffers[number]

    def _operator(self, o: Any) -> FileOperator:
        index = o.OpcodeIndex()
        if not 0 <= index < self.model.OperatorCodesLength():
            raise ValueError(f"operator code {index}")
        code = self.model.OperatorCodes(index)
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        kind = _names(self.schema.BuiltinOperator).get(number, f"operator {number}")
        if kind == "CUSTOM":
            kind = f"CUSTOM {self._text(code.CustomCode())}"
        return FileOperator(
            kind,
            self._ints(o.InputsLength, o.InputsAsNumpy),
            self._ints(o.OutputsLength, o.OutputsAsNumpy),
            self._options(o),
            self._ints(o.IntermediatesLength, o.IntermediatesAsNumpy),
        )

    def _options(self, o: Any) -> dict[str, Option]:
        table = _names(self.schema.BuiltinOptions).get(o.BuiltinOptionsType(), "").removesuffix("Options")
        raw = o.BuiltinOptions()
        if table not in OPTIONS or raw is None:
            return {}
        options = getattr(self.schema, f"{table}Options")()
        options.Init(raw.Bytes, raw.Pos)
        found: dict[str, Option] = {}
        for name in OPTIONS[table]:
            if name in VECTORS:
                found[name] = self._ints(getattr(options, f"{name}Length"), getattr(options, f"{name}AsNumpy"))
                continue
            value = getattr(options, name)()
            found[name] = self._text(value) if name in ("Container", "SharedName") else value
        return found


def values(t: FileTensor, what: str) -> npt.NDArray[Any]:
    """The elements of a constant, as they are stored. Raises EmberletError."""
    widths = {
        "FLOAT32": np.float32, "FLOAT16": np.float16, "FLOAT64": np.float64, "INT8": np.int8, "UINT8": np.uint8,
        "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "UINT32": np.uint32, "BOOL": np.bool_,
    }  # fmt: skip
    if t.data is None:
        raise EmberletError(f"{what} must be constant")
    if t.dtype not in widths:
        raise EmberletError(f"{what} is of type {t.dtype}, which is not supported")
    dtype = np.dtype(widths[t.dtype])
    count = int(np.prod([max(n, 0) for n in t.shape], dtype=np.float64)) if t.shape else 1
    if len(t.data) != count * dtype.itemsize or min(t.shape, default=0) < 0:
        raise FormatError(f"{what}: {len(t.data)} bytes for a shape of {t.shape}")
    return np.frombuffer(t.data, dtype.newbyteorder("<")).astype(dtype).reshape(t.shape)
